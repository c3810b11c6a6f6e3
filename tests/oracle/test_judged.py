"""Proof and oracle agree on drawn programs of both front ends and edits of them: a share of `benchmarks/oracle.py`."""

from __future__ import annotations

import pytest

from tests.oracle.judge import Tally, judge_many

UNTRACED = pytest.mark.no_cover  # hundreds of programs; those by roles, which are small, cover the same lines


@pytest.mark.thorough  # runs for seconds
@pytest.mark.parametrize(
    ("front_end", "programs"),
    [
        pytest.param("by stages", 120, marks=UNTRACED),
        pytest.param("by values", 120, marks=UNTRACED),
        pytest.param("by values, solved", 4, marks=UNTRACED),
        ("by roles", 80),
    ],
)
def test_the_proof_says_what_the_oracle_says(front_end: str, programs: int) -> None:
    tally = Tally()
    for verdict in judge_many(front_end, programs, first_seed=1_000_000):
        tally.add(verdict)
    assert not tally.disputed, "\n".join(map(str, tally.disputed))
    assert tally.counts[front_end, "both accept"] > programs // 8
    assert tally.counts[front_end, "both refuse"] > programs // 4
