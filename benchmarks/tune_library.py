"""`python -m benchmarks.tune_library`, which `tests.campaigns.tuning.tune_library` describes."""

from __future__ import annotations

from tests.campaigns.tuning.tune_library import main

if __name__ == "__main__":
    main()
