"""`python -m benchmarks.licences`, which `tests.campaigns.pages.licences` describes."""

from __future__ import annotations

from tests.campaigns.pages.licences import main

if __name__ == "__main__":
    raise SystemExit(main())
