"""`python -m benchmarks.emission`, which `tests.campaigns.pages.emission` describes."""

from __future__ import annotations

import sys

from tests.campaigns.pages.emission import main

if __name__ == "__main__":
    sys.exit(main())
