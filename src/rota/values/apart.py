"""What no execution can beat: takes a loop by values and its rates, gives times at the least, waves each on their own.

Planning takes all waves to be in step and whole slots for every op, so that its bounds hold for such schedules only.
Waves that drift apart wait for their own share of a unit, not for that of the others, and the clocks of several ops may
share a slot.  What is bounded here holds for them, and in the cycle model, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from rota.program.kinds import OpKind, Unit
from rota.program.loop_spec import LoopOp, LoopSpec
from rota.targets.timing import Timing
from rota.values.op_times import OwnTime, Precedence, precedences, time_loop, valu_slots


class Apart(NamedTuple):
    """How many slots the busiest unit needs for an iteration, and the precedences that every execution keeps."""

    least_interval: int
    precedences: tuple[Precedence, ...]


def time_apart(spec: LoopSpec, unit: Timing, copies: Mapping[str, int]) -> Apart:
    """The least that units and waves need for one iteration."""
    times = time_loop(spec, unit)
    moved = [_moving(op, unit) for op in spec.ops]
    timings = tuple(
        timing._replace(latency=(busy + latency) // unit.rates.clocks_per_slot.value)
        for timing, (busy, latency) in zip(times.timings, moved, strict=True)
    )
    own = tuple(_own(op, unit, spec.waves) for op in spec.ops)
    landed = sum(op.moved for op in spec.ops if op.kind is OpKind.DMA) // unit.rates.lds_write.value
    clocks = {each: sum(busy for t, (busy, _) in zip(timings, moved, strict=True) if t.unit is each) for each in Unit}
    clocks[Unit.LDS] += landed
    turns = [count for each, count in times.busy if each not in (Unit.LDS, Unit.DMA)]
    moving = [unit.rates.slots(clocks[each]) for each in (Unit.LDS, Unit.DMA)]
    return Apart(
        least_interval=max([1, *turns, *moving]),
        precedences=tuple(precedences(spec, replace(times, timings=timings), copies, own)),
    )


def _moving(op: LoopOp, unit: Timing) -> tuple[int, int]:
    """Clocks for which what an op moves, of all waves, holds its path or port, and the latency behind that."""
    rates = unit.rates
    if op.kind.unit is Unit.DMA:
        return op.moved // rates.dma.value, rates.dma_latency.value
    if op.kind.unit is Unit.LDS:
        return op.moved // rates.lds_rate(op.kind).value, rates.lds_latency.value
    return 0, 0


def _own(op: LoopOp, unit: Timing, waves: int) -> OwnTime:
    """Of one wave; registers that are read are free once the last instruction is issued."""
    if op.kind is OpKind.MMA:
        passes = unit.rates.passes(op.instruction, op.bits)
        busy = op.instructions * passes
        return OwnTime(busy, busy + unit.result_turns.value, busy - passes + 1)
    if op.kind.unit is Unit.VALU:
        each = valu_slots(op, unit.rates)
        return OwnTime(op.instructions * each, op.instructions * each, (op.instructions - 1) * each + 1)
    busy, latency = _moving(op, unit)
    return OwnTime(0, (busy // waves + latency) // unit.rates.clocks_per_slot.value, op.instructions)
