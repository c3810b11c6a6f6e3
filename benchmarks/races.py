"""`python -m benchmarks.races`, which `tests.campaigns.schedules.races` describes."""

from __future__ import annotations

import sys

from tests.campaigns.schedules.races import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
