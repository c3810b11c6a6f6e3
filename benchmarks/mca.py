"""`python -m benchmarks.mca`, which `tests.campaigns.schedules.mca` describes."""

from __future__ import annotations

import sys

from tests.campaigns.schedules.mca import main

if __name__ == "__main__":
    sys.exit(main())
