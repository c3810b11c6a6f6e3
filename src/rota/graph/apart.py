"""What no execution can beat: takes a loop by values and its rates, gives times at the least, waves each on their own.

Planning takes all waves to be in step and whole slots for every op, so that its bounds hold for such schedules only.
Waves that drift apart wait for their own share of a unit, not for that of the others, and the clocks of several ops may
share a slot.  What is bounded here holds for them, and in the cycle model, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from rota.declare.values import LoopOp, LoopSpec, Work
from rota.graph.timing import OwnTime, Precedence, Unit, precedences, time_loop
from rota.targets.rates import CLOCKS_PER_SLOT, slots
from rota.targets.timing import Timing


class Apart(NamedTuple):
    """How many slots the busiest unit needs for an iteration, and the precedences that every execution keeps."""

    least_interval: int
    precedences: tuple[Precedence, ...]


def time_apart(spec: LoopSpec, unit: Timing, copies: Mapping[str, int]) -> Apart:
    """The least that units and waves need for one iteration."""
    times = time_loop(spec, unit)
    moved = [_moving(op, unit) for op in spec.ops]
    timings = tuple(
        timing._replace(latency=(busy + latency) // CLOCKS_PER_SLOT)
        for timing, (busy, latency) in zip(times.timings, moved, strict=True)
    )
    own = tuple(_own(op, unit, spec.waves) for op in spec.ops)
    landed = sum(op.moved for op in spec.ops if op.work is Work.LOAD) // unit.rates.lds_write.value
    clocks = {each: sum(busy for t, (busy, _) in zip(timings, moved, strict=True) if t.unit is each) for each in Unit}
    clocks[Unit.LDS] += landed
    turns = [count for each, count in times.busy if each not in (Unit.LDS, Unit.DMA)]
    return Apart(
        least_interval=max([1, *turns, slots(clocks[Unit.LDS]), slots(clocks[Unit.DMA])]),
        precedences=tuple(precedences(spec, replace(times, timings=timings), copies, own)),
    )


def _moving(op: LoopOp, unit: Timing) -> tuple[int, int]:
    """Clocks for which what an op moves, of all waves, holds its path or port, and the latency behind that."""
    rates = unit.rates
    if op.work is Work.LOAD:
        return op.moved // rates.dma.value, rates.dma_latency.value
    if op.work in (Work.FRAGMENT, Work.STORE):
        rate = rates.lds_read if op.work is Work.FRAGMENT else rates.lds_write
        return op.moved // rate.value, rates.lds_latency.value
    return 0, 0


def _own(op: LoopOp, unit: Timing, waves: int) -> OwnTime:
    """Of one wave; registers that are read are free once the last instruction is issued."""
    if op.work is Work.MMA:
        passes = unit.rates.passes(op.instruction)
        busy = op.instructions * passes
        return OwnTime(busy, busy + unit.result_turns.value, busy - passes + 1)
    if op.work is Work.VALU:
        return OwnTime(op.instructions, op.instructions, op.instructions)
    busy, latency = _moving(op, unit)
    return OwnTime(0, (busy // waves + latency) // CLOCKS_PER_SLOT, op.instructions)
