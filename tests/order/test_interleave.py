"""Kinds of op woven: each in its own order and evenly, no two in one turn, no unit held twice."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, strategies as st

from rota.order.graph import Arc
from rota.order.modulo.handover import Issued, has_stages, weave


@st.composite
def kinds(draw: st.DrawFn) -> list[list[Issued]]:
    found, op = [], 0
    for _ in range(draw(st.integers(1, 4))):
        turns = draw(st.lists(st.integers(1, 3), max_size=8))
        extra = draw(st.integers(0, 4))
        found.append([Issued(op + place, each, each + extra) for place, each in enumerate(turns)])
        op += len(turns)
    return found


@given(kinds(), st.integers(1, 60))
def test_what_is_woven_fits(woven: list[list[Issued]], ii: int) -> None:
    slots = weave(woven[0], woven[1:], ii)
    if slots is None:
        return
    turns = [(slots[each.op] + turn) % ii for kind in woven for each in kind for turn in range(each.turns)]
    assert len(set(turns)) == len(turns) == sum(each.turns for kind in woven for each in kind)
    for kind in woven:
        for first, second in pairwise(kind):
            assert slots[second.op] >= slots[first.op] + first.holds
        if kind:
            assert slots[kind[0].op] + ii >= slots[kind[-1].op] + kind[-1].holds


@given(st.integers(1, 12), st.integers(1, 8))
def test_ops_of_one_turn_fill_every_gap(count: int, gap: int) -> None:
    spine = [Issued(op, 1, gap + 1) for op in range(count)]
    rest = [Issued(op, 1, 1) for op in range(count, count + count * gap)]
    slots = weave(spine, [rest], count * (gap + 1))
    assert slots is not None
    assert [slots[each.op] for each in spine] == list(range(0, count * (gap + 1), gap + 1))
    assert sorted(slots.values()) == list(range(count * (gap + 1)))


def test_a_long_op_waits_for_a_gap_that_holds_it() -> None:
    spine, long, short = [Issued(0, 1, 4), Issued(1, 1, 4)], [Issued(2, 3, 3)], [Issued(3, 1, 1), Issued(4, 1, 1)]
    assert weave(spine, [short, long], 8) == {0: 0, 1: 4, 3: 1, 4: 2, 2: 5}


def test_nothing_is_woven_of_nothing_or_of_too_much() -> None:
    assert weave([], [], 8) == {}
    assert weave([], [[], [Issued(0, 0, 0)]], 8) == {0: 0}
    assert weave([], [[Issued(0, 3, 3), Issued(1, 3, 3)]], 5) is None
    assert weave([Issued(0, 1, 4), Issued(1, 1, 4)], [], 7) is None  # the second would still hold the unit
    assert weave([Issued(0, 1, 4)], [[Issued(1, 4, 4)]], 4) is None  # no gap holds it


def test_slots_that_no_stages_mend() -> None:
    # Around the cycle 3 + 3 slots must pass within one iteration of 8; the wrong way round that takes two.
    slots, cycle = {0: 0, 1: 4}, [Arc(0, 1, 3, 0), Arc(1, 0, 3, 1)]
    assert has_stages(slots, cycle, 8)
    assert not has_stages({0: 0, 1: 2}, cycle, 8)
    assert has_stages({0: 0, 1: 2}, [Arc(0, 1, 3, 0), Arc(1, 0, 3, 2)], 8)
    assert has_stages({0: 0}, cycle, 8)  # what is not in a slot yet can still move
