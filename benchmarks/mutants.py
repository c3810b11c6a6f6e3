"""`python -m benchmarks.mutants`, which `tests.campaigns.schedules.mutants` describes."""

from __future__ import annotations

import sys

from tests.campaigns.schedules.mutants import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
