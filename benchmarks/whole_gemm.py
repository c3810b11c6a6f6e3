"""`python -m benchmarks.whole_gemm`, which `tests.campaigns.whole.whole_gemm` describes."""

from __future__ import annotations

import sys

from tests.campaigns.whole.whole_gemm import main

if __name__ == "__main__":
    sys.exit(main())
