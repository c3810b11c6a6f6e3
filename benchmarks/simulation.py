"""`python -m benchmarks.simulation`, which `tests.campaigns.schedules.simulation` describes."""

from __future__ import annotations

from tests.campaigns.schedules.simulation import main

if __name__ == "__main__":
    main()
