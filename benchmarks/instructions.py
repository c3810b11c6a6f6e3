"""`python -m benchmarks.instructions`, which `tests.campaigns.machine_code.instructions` describes."""

from __future__ import annotations

import sys

from tests.campaigns.machine_code.instructions import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
