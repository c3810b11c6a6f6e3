"""`python -m benchmarks.fuzz_json`, which `tests.campaigns.schedules.fuzz_json` describes."""

from __future__ import annotations

import sys

from tests.campaigns.schedules.fuzz_json import main

if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
