"""`python -m benchmarks.tune_cluster`, which `tests.campaigns.tuning.tune_cluster` describes."""

from __future__ import annotations

from tests.campaigns.tuning.tune_cluster import main

if __name__ == "__main__":
    main()
