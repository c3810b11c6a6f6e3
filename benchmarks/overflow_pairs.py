"""`python -m benchmarks.overflow_pairs`, which `tests.campaigns.machine_code.overflow_pairs` describes."""

from __future__ import annotations

import sys

from tests.campaigns.machine_code.overflow_pairs import main

if __name__ == "__main__":
    sys.exit(main())
