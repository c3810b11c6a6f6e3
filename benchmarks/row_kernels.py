"""`python -m benchmarks.row_kernels`, which `tests.campaigns.machine_code.row_kernels` describes."""

from __future__ import annotations

import sys

from tests.campaigns.machine_code.row_kernels import main

if __name__ == "__main__":
    sys.exit(main())
