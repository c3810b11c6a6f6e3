"""`python -m benchmarks.improved_kernels`, which `tests.campaigns.machine_code.improved_kernels` describes."""

from __future__ import annotations

import sys

from tests.campaigns.machine_code.improved_kernels import main

if __name__ == "__main__":
    sys.exit(main())
