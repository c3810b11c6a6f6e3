"""`python -m benchmarks.hazard_twins`, which `tests.campaigns.hazards.hazard_twins` describes."""

from __future__ import annotations

from tests.campaigns.hazards.hazard_twins import page

if __name__ == "__main__":
    print(page(), end="")
