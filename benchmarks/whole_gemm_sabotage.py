"""`python -m benchmarks.whole_gemm_sabotage`, which `tests.campaigns.whole.whole_gemm_sabotage` describes."""

from __future__ import annotations

import sys

from tests.campaigns.whole.whole_gemm_sabotage import main

if __name__ == "__main__":
    sys.exit(main())
