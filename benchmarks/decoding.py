"""`python -m benchmarks.decoding`, which `tests.campaigns.machine_code.decoding` describes."""

from __future__ import annotations

import sys

from tests.campaigns.machine_code.decoding import main

if __name__ == "__main__":
    sys.exit(main())
