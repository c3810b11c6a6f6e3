"""Slack that no schedule has: takes what is asked of a loop, gives whether simple bounds rule it out.

Without units what remains is a system of differences: precedences, the stages within which ops start, the slots of
pinned ones, and a pivot for each handover, which stands behind what is handed over and ahead of who takes it.  A cycle
that is too long refutes all of it, in a thousandth of the time that a solver takes to say so.  Where there is but one
barrier, all pivots are instances of it, so that the time from one to another is a multiple of the interval; loads and
reads that have to fit between two of them may be more than their unit does in that time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from rota.order.modulo.choice import Choice, Meeting
from rota.order.modulo.longest import Arc, Cycle, longest_gaps, longest_starts

Gaps = Mapping[int, Mapping[int, int]]
"""From one pivot to another, in intervals."""


def out_of_reach(choice: Choice, ii: int, *, barriers: int, stages: int, landing: int, reading: int) -> bool:
    """Is there no schedule of so many barriers and stages in which loads and reads may be so late?

    False says nothing.
    """
    count = len(choice.problem.ops) + 1
    arcs = [*choice.problem.arcs, *_within(choice, stages), *choice.apart(reading)]
    met = choice.meetings(landing, reading)
    for pivot, meeting in enumerate(met, count):
        arcs += _around(pivot, meeting, choice)
    start = longest_starts(count + len(met), arcs, ii)
    if isinstance(start, Cycle):
        return True
    if barriers != 1:
        return False
    between = _between_instances(range(count, count + len(met)), arcs, ii, start)
    return between is None or _crowded(choice, ii, met, between)


def _within(choice: Choice, stages: int) -> Iterator[Arc]:
    """From and to the start of the last stage, which stands behind the ops as one more."""
    last = len(choice.problem.ops)
    for op in range(last):
        slot = None if choice.staged else choice.pinned.get(op)
        yield Arc(last, op, 0 if slot is None else slot, stages - 1 if slot is None else 0)
        yield Arc(op, last, 1 if slot is None else -slot, 1 if slot is None else 0)


def _around(pivot: int, meeting: Meeting, choice: Choice) -> Iterator[Arc]:
    handover, slack, behind = meeting
    for op in handover.before:
        yield Arc(op, pivot, choice.problem.ops[op].latency + slack, 0)
    for op in handover.after:
        yield Arc(pivot, op, behind, handover.distance)


def _between_instances(pivots: Sequence[int], arcs: Sequence[Arc], ii: int, start: Sequence[int]) -> Gaps | None:
    """Whole intervals from one pivot to another, at least; None if they close a cycle that is too long."""
    least = longest_gaps(pivots, arcs, ii, dict(enumerate(start))).least
    place = {pivot: number for number, pivot in enumerate(pivots)}
    whole = [Arc(place[one], place[two], -(-gap // ii), 0) for one, row in least.items() for two, gap in row.items()]
    starts = longest_starts(len(place), whole, 0)
    if isinstance(starts, Cycle):
        return None
    return longest_gaps(range(len(place)), whole, 0, dict(enumerate(starts))).least


def _crowded(choice: Choice, ii: int, met: Sequence[Meeting], between: Gaps) -> bool:
    """Do units have too much to do from one instance of the only barrier to another?"""
    windows = {op: window for op in range(len(choice.problem.ops)) if (window := _window(op, choice, ii, met, between))}
    for resource in choice.problem.resources:
        holds = [
            (windows[op].shifted(use.offset, ii), use.occupancy)
            for op, described in enumerate(choice.problem.ops)
            for use in described.uses
            if op in windows and use.resource == resource.name and resource.capacity == 1
        ]
        for outer in {window for window, _ in holds}:
            for length in {window.length for window, _ in holds}:
                inside = [held for window, held in holds if (window.first - outer.first) % ii + window.length <= length]
                # All but the last are over before it starts.
                if inside and sum(inside) - max(inside) > length:
                    return True
    return False


class _Window(NamedTuple):
    """The slots, counted from the barrier, in which an op may start: the first one, and how many follow."""

    first: int
    length: int

    def shifted(self, offset: int, ii: int) -> _Window:
        """The slots of a use that begins so much later."""
        return _Window((self.first + offset) % ii, self.length)


def _window(op: int, choice: Choice, ii: int, met: Sequence[Meeting], between: Gaps) -> _Window | None:
    """The shortest of those that leave out some of the interval."""
    found = []
    for first, (behind_it, _, behind) in enumerate(met):
        for second, (ahead_of_it, slack, _) in enumerate(met):
            if op in behind_it.after and op in ahead_of_it.before and first in between.get(second, {}):
                begins = behind - behind_it.distance * ii
                ends = -between[second][first] * ii - choice.problem.ops[op].latency - slack
                found.append(_Window(begins % ii, ends - begins))
    return min((each for each in found if 0 <= each.length < ii), key=lambda each: each.length, default=None)
