"""Slack that no schedule has: takes what is asked of a loop, gives whether precedences alone rule it out.

Units are ignored here.  What remains is a system of differences: precedences, the stages within which ops start, the
slots of pinned ones, and a pivot for each handover, which stands behind what is handed over and ahead of who takes it.
A cycle that is too long refutes all of it, in a thousandth of the time that a solver takes to say so.  Where there is
but one barrier, all pivots are instances of it, so that the time from one to another is a multiple of the interval.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rota.order.modulo.choice import Choice, Meeting
from rota.order.modulo.longest import Arc, Cycle, longest_gaps, longest_starts


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
    pivots = range(count, count + len(met))
    return barriers == 1 and _between_instances(pivots, arcs, ii, start)


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


def _between_instances(pivots: Sequence[int], arcs: Sequence[Arc], ii: int, start: Sequence[int]) -> bool:
    """Do whole intervals between pivots close a cycle that is too long?"""
    least = longest_gaps(pivots, arcs, ii, dict(enumerate(start))).least
    place = {pivot: number for number, pivot in enumerate(pivots)}
    # In intervals: a gap is rounded up to a whole number of them.
    whole = [Arc(place[one], place[two], -(-gap // ii), 0) for one, row in least.items() for two, gap in row.items()]
    return isinstance(longest_starts(len(place), whole, 0), Cycle)
