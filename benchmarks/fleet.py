"""`python -m benchmarks.fleet`, which `tests.campaigns.fleet.fleet` describes."""

from __future__ import annotations

import sys

from tests.campaigns.fleet.fleet import main

if __name__ == "__main__":
    sys.exit(main())
