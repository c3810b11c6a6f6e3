"""Slots for computations: takes a loop's problem and times, gives slots that a search for barriers and slack keeps.

With computations in their slots the search has only what serves them left to place, which makes it quick.
"""

from __future__ import annotations

from rota.order.modulo.interleave import Issued, has_stages, weave
from rota.order.modulo.modulo_problem import ModuloProblem
from rota.program.kinds import Unit
from rota.values.op_times import LoopTimes

_COMPUTE = (Unit.MMA, Unit.VALU)
_ROOM_FOR_TURNS = 0.9  # of the interval: with more instructions, each one's turn is not found beside all else


def turns_are_scarce(times: LoopTimes, ii: int) -> bool:
    """Does a wave issue something in nearly every slot?"""
    return times.turns > _ROOM_FOR_TURNS * ii


def spread(times: LoopTimes, ii: int) -> dict[int, int]:
    """The ops of the busiest unit in the order in which the author declared them, spread evenly over the interval.

    Of the many orders of what keeps a unit busy throughout one is as good as another, and the author's has a reason.
    """
    busy = dict(times.busy)
    spine = max(_COMPUTE, key=lambda unit: busy.get(unit, 0))
    turns, now = {}, 0
    for op, timing in enumerate(times.timings):
        if timing.unit is spine:
            turns[op] = now * ii // busy[spine]
            now += timing.occupancy
    return turns


def interleaved(problem: ModuloProblem, times: LoopTimes, ii: int) -> dict[int, int] | None:
    """Slots in which computations don't collide, wherever on the cycle the vector ops of an iteration begin."""
    kinds: dict[Unit, list[Issued]] = {unit: [] for unit in Unit}
    for op, (unit, occupancy, _, issue) in enumerate(times.timings):
        kinds[unit].append(Issued(op, issue, max(occupancy, issue) if unit in _COMPUTE else issue))
    vector = kinds[Unit.VALU]
    others = [kind for unit, kind in kinds.items() if unit not in _COMPUTE]
    for first in range(len(vector)):
        slots = weave(kinds[Unit.MMA], [*others, vector[first:] + vector[:first]], ii)
        if slots is not None:
            pinned = {each.op: slots[each.op] for each in (*kinds[Unit.MMA], *vector)}
            if has_stages(pinned, problem.arcs, ii):
                return pinned
    return None
