"""`python -m benchmarks.repair_loop`, which `tests.campaigns.machine_code.repair_loop` describes."""

from __future__ import annotations

import sys

from tests.campaigns.machine_code.repair_loop import main

if __name__ == "__main__":
    sys.exit(main())
