"""The cycle model's own speed, for an idle machine, and its growth."""

from __future__ import annotations

import pytest

from tests.campaigns.schedules.simulation import measure
from tests.campaigns.undisturbed import slowdown

pytestmark = pytest.mark.no_cover  # tracing is what would be measured


def test_a_hundred_thousand_instructions_a_second_and_linear_growth() -> None:
    short, long = measure(8, 10), measure(8, 40)
    assert long.entries / long.seconds * slowdown() > 100_000
    assert long.issued > 3.5 * short.issued
    assert long.seconds / long.issued < 2 * short.seconds / short.issued
