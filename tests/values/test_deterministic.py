"""The same schedule every time: a share of `python -m benchmarks.deterministic`."""

from __future__ import annotations

import pytest

from tests.campaigns.schedules.deterministic import busy, digests
from tests.campaigns.schedules.zoo import rows


@pytest.mark.thorough  # compiles, or starts commands
def test_a_busy_machine_and_another_hash_seed_change_nothing() -> None:
    small = next(number for number, row in enumerate(rows()) if "128x128" in row.loop.name and row.grain == "tile")
    with busy():
        assert len(digests(small, times=2)) == 1
