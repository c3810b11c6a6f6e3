"""`python -m benchmarks.reference_tables`, which `tests.campaigns.pages.reference_tables` describes."""

from __future__ import annotations

from tests.campaigns.pages.reference_tables import page

if __name__ == "__main__":
    print(page(), end="")
