"""`python -m benchmarks.check_kernels`, which `tests.campaigns.machine_code.check_kernels` describes."""

from __future__ import annotations

from tests.campaigns.machine_code.check_kernels import main

if __name__ == "__main__":
    main()
