"""`python -m benchmarks.proof_agreement`, which `tests.campaigns.machine_code.proof_agreement` describes."""

from __future__ import annotations

import sys

from tests.campaigns.machine_code.proof_agreement import main

if __name__ == "__main__":
    sys.exit(main())
