"""`python -m benchmarks.doors`, which `tests.campaigns.pages.doors` describes."""

from __future__ import annotations

from tests.campaigns.pages.doors import main

if __name__ == "__main__":
    raise SystemExit(main())
