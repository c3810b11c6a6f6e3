"""`python -m benchmarks.whole_attention`, which `tests.campaigns.whole.whole_attention` describes."""

from __future__ import annotations

import sys

from tests.campaigns.whole.whole_attention import main

if __name__ == "__main__":
    sys.exit(main())
