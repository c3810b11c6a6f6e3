"""Computations in turn: takes the kinds of op that a wave issues, gives slots in which each has a turn of its own.

The spine, whose unit is held longest, comes evenly.  The others fill the gaps, each kind in its own order and spread
over the interval: of what fits, what is due first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from rota.order.modulo.longest import Arc, Cycle, longest_starts


class Issued(NamedTuple):
    """An op: the turns of its wave that go to it, and the slots until its unit takes the next."""

    op: int
    turns: int
    holds: int


def weave(spine: Sequence[Issued], kinds: Sequence[Sequence[Issued]], ii: int) -> dict[int, int] | None:
    """A slot for each op, all within one interval; None if what is spread so doesn't fit."""
    slots = dict(_evenly(spine, ii))
    due = dict(pair for kind in kinds for pair in _evenly(kind, ii))
    waiting = [list(reversed(kind)) for kind in kinds]
    free = [0] * len(kinds)
    gaps = [(slots[each.op] + each.turns, after) for each, after in zip(spine, [*slots.values(), ii][1:], strict=True)]
    for begin, end in gaps or [(0, ii)]:
        now = begin
        while now < end:
            fitting = [k for k, left in enumerate(waiting) if left and free[k] <= now and now + left[-1].turns <= end]
            if not fitting:
                now += 1
                continue
            first = min(fitting, key=lambda k: due[waiting[k][-1].op])
            op, turns, holds = waiting[first].pop()
            slots[op], free[first] = now, now + holds
            now += turns
    return None if any(waiting) or any(_overlaps(kind, slots, ii) for kind in (spine, *kinds)) else slots


def _evenly(kind: Sequence[Issued], ii: int) -> Iterator[tuple[int, int]]:
    total, before = sum(each.holds for each in kind), 0
    for op, _, holds in kind:
        yield op, before * ii // max(total, 1)
        before += holds


def _overlaps(kind: Sequence[Issued], slots: Mapping[int, int], ii: int) -> bool:
    """Is the unit held twice, within the interval or around its end?"""
    if not kind:
        return False
    return slots[kind[-1].op] + kind[-1].holds > slots[kind[0].op] + ii or any(
        slots[first.op] + first.holds > slots[second.op] for first, second in pairwise(kind)
    )


def has_stages(slots: Mapping[int, int], arcs: Sequence[Arc], ii: int) -> bool:
    """Can ops in these slots be put into stages that keep every arc between two of them?"""
    number = {op: place for place, op in enumerate(slots)}
    between = [
        Arc(number[p], number[c], -((slots[c] + distance * ii - slots[p] - delay) // ii), 0)
        for p, c, delay, distance in arcs
        if p in number and c in number
    ]
    return not isinstance(longest_starts(len(number), between, 0), Cycle)
