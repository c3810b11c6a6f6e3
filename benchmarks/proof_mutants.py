"""`python -m benchmarks.proof_mutants`, which `tests.campaigns.machine_code.proof_mutants` describes."""

from __future__ import annotations

import sys

from tests.campaigns.machine_code.proof_mutants import main

if __name__ == "__main__":
    sys.exit(main())
