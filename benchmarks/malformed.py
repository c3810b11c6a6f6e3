"""`python -m benchmarks.malformed`, which `tests.campaigns.machine_code.malformed` describes."""

from __future__ import annotations

import sys

from tests.campaigns.machine_code.malformed import main

if __name__ == "__main__":
    sys.exit(main())
