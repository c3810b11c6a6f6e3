"""`python -m benchmarks.memory_mutants`, which `tests.campaigns.machine_code.memory_mutants` describes."""

from __future__ import annotations

import sys

from tests.campaigns.machine_code.memory_mutants import main

if __name__ == "__main__":
    sys.exit(main())
