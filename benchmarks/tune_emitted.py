"""`python -m benchmarks.tune_emitted`, which `tests.campaigns.tuning.tune_emitted` describes."""

from __future__ import annotations

from tests.campaigns.tuning.tune_emitted import main

if __name__ == "__main__":
    main()
