"""`python -m benchmarks.hazards`, which `tests.campaigns.hazards.hazards` describes."""

from __future__ import annotations

import sys

from tests.campaigns.hazards.hazards import main

if __name__ == "__main__":
    sys.exit(main())
