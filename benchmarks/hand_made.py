"""`python -m benchmarks.hand_made`, which `tests.campaigns.schedules.hand_made` describes."""

from __future__ import annotations

import sys

from tests.campaigns.schedules.hand_made import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
