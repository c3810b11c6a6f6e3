"""`python -m benchmarks.naive`, which `tests.campaigns.pages.naive` describes."""

from __future__ import annotations

import sys

from tests.campaigns.pages.naive import main

if __name__ == "__main__":
    sys.exit(main())
