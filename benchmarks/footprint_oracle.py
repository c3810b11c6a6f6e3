"""`python -m benchmarks.footprint_oracle`, which `tests.campaigns.machine_code.footprint_oracle` describes."""

from __future__ import annotations

import sys

from tests.campaigns.machine_code.footprint_oracle import main

if __name__ == "__main__":
    sys.exit(main())
