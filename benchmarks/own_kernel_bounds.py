"""`python -m benchmarks.own_kernel_bounds`, which `tests.campaigns.machine_code.own_kernel_bounds` describes."""

from __future__ import annotations

import sys

from tests.campaigns.machine_code.own_kernel_bounds import main

if __name__ == "__main__":
    sys.exit(main())
