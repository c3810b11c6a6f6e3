"""`python -m benchmarks.predict`, which `tests.campaigns.pages.predict` describes."""

from __future__ import annotations

import sys

from tests.campaigns.pages.predict import main

if __name__ == "__main__":
    main(sys.argv[1:])
