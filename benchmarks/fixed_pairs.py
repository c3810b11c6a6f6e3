"""`python -m benchmarks.fixed_pairs`, which `tests.campaigns.machine_code.fixed_pairs` describes."""

from __future__ import annotations

import sys

from tests.campaigns.machine_code.fixed_pairs import main

if __name__ == "__main__":
    sys.exit(main())
