"""`python -m benchmarks.hand_over_mutants`, which `tests.campaigns.machine_code.hand_over_mutants` describes."""

from __future__ import annotations

import sys

from tests.campaigns.machine_code.hand_over_mutants import main

if __name__ == "__main__":
    sys.exit(main())
