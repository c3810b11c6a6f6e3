"""`python -m benchmarks.deterministic`, which `tests.campaigns.schedules.deterministic` describes."""

from __future__ import annotations

import sys

from tests.campaigns.schedules.deterministic import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
