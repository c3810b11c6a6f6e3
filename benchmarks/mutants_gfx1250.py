"""`python -m benchmarks.mutants_gfx1250`, which `tests.campaigns.machine_code.mutants_gfx1250` describes."""

from __future__ import annotations

import sys

from tests.campaigns.machine_code.mutants_gfx1250 import main

if __name__ == "__main__":
    sys.exit(main())
