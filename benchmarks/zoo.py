"""`python -m benchmarks.zoo`, which `tests.campaigns.schedules.zoo` describes."""

from __future__ import annotations

from tests.campaigns.schedules.zoo import main

if __name__ == "__main__":
    main()
