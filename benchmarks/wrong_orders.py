"""`python -m benchmarks.wrong_orders`, which `tests.campaigns.machine_code.wrong_orders` describes."""

from __future__ import annotations

import sys

from tests.campaigns.machine_code.wrong_orders import main

if __name__ == "__main__":
    sys.exit(main())
