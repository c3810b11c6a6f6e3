"""`python -m benchmarks.verdict_table`, which `tests.campaigns.fleet.verdict_table` describes."""

from __future__ import annotations

import sys

from tests.campaigns.fleet.verdict_table import main

if __name__ == "__main__":
    sys.exit(main())
