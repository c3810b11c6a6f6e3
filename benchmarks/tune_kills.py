"""`python -m benchmarks.tune_kills`, which `tests.campaigns.tuning.tune_kills` describes."""

from __future__ import annotations

from tests.campaigns.tuning.tune_kills import main

if __name__ == "__main__":
    main()
