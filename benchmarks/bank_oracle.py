"""`python -m benchmarks.bank_oracle`, which `tests.campaigns.machine_code.bank_oracle` describes."""

from __future__ import annotations

import sys

from tests.campaigns.machine_code.bank_oracle import main

if __name__ == "__main__":
    sys.exit(main())
