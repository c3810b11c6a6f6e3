from __future__ import annotations

import pytest

from rota.simulate.steady import period_of


@pytest.mark.parametrize(
    ("seen", "period"),
    [
        ("", 0),
        ("aaa", 0),  # the first trip doesn't count
        ("xaaa", 1),
        ("xababa", 0),
        ("xababab", 2),
        ("xyabcabcabc", 3),
        ("xabcabdabc", 0),
        ("xabcdabcdabcd", 4),
        ("xabcdeabcdeabcde", 0),  # too long to be told from a drift
        ("aaaab", 0),
    ],
)
def test_a_period_is_seen_three_times_after_the_first_trip(seen: str, period: int) -> None:
    assert period_of(seen) == period
