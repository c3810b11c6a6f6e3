"""`python -m benchmarks.tune_regret`, which `tests.campaigns.tuning.tune_regret` describes."""

from __future__ import annotations

from tests.campaigns.tuning.tune_regret import main

if __name__ == "__main__":
    main()
