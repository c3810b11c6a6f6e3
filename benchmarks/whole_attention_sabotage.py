"""`python -m benchmarks.whole_attention_sabotage`, which `tests.campaigns.whole.whole_attention_sabotage` describes."""

from __future__ import annotations

import sys

from tests.campaigns.whole.whole_attention_sabotage import main

if __name__ == "__main__":
    sys.exit(main())
