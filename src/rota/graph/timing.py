"""What a loop's ops cost on a machine: takes a loop by values and its rates, gives unit times and precedences in slots.

Units are shared: an op's time on the MMA unit or VALU counts the waves of its SIMD, that on the LDS port and the DMA
path all waves of the workgroup.  Latencies are planning numbers (see `targets.rates`).
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from rota.declare.values import Home, LoopOp, LoopSpec, Work
from rota.targets.machine import Fact
from rota.targets.rates import SIMDS, Rates, slots


class Unit(enum.Enum):
    """What an op occupies; each unit takes one op at a time."""

    MMA = "MMA unit"
    VALU = "VALU"
    LDS = "LDS port"
    DMA = "DMA path"


class Timing(NamedTuple):
    """An op holds `unit` for `occupancy` slots; its result is there `latency` slots after it started."""

    unit: Unit
    occupancy: int
    latency: int


class Precedence(NamedTuple):
    """start(later, iteration k + distance) >= start(earlier, iteration k) + delay; `why` in words."""

    earlier: int
    later: int
    delay: int
    distance: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopTimes:
    """Timings per op, and how busy each unit is per iteration, DMA writes into LDS included.

    `groups` of waves run apart: a timing is that of one group's share, and the others follow with theirs.
    """

    timings: tuple[Timing, ...]
    busy: tuple[tuple[Unit, int], ...]
    groups: int = 1

    @property
    def least_interval(self) -> int:
        """No schedule starts iterations faster than its busiest unit allows."""
        return max((count for _, count in self.busy), default=1)

    def latency(self, unit: Unit) -> int:
        """How long the slowest op of a unit takes beyond the time for which it holds the unit."""
        return max((t.latency - t.occupancy for t in self.timings if t.unit is unit), default=0)


def time_loop(spec: LoopSpec, rates: Rates, groups: int = 1) -> LoopTimes:
    """Timings of all ops and the load of all units."""
    timings = tuple(_timing(op, spec, rates, groups) for op in spec.ops)
    busy = {unit: groups * sum(t.occupancy for t in timings if t.unit is unit) for unit in Unit}
    landed = sum(op.moved for op in spec.ops if op.work is Work.LOAD)
    busy[Unit.LDS] += slots(-(-landed // rates.lds_write.value))
    loads = tuple((unit, count) for unit, count in busy.items() if count)
    return LoopTimes(timings=timings, busy=loads, groups=groups)


def precedences(spec: LoopSpec, times: LoopTimes, copies: Mapping[str, int]) -> Iterator[Precedence]:
    """Flow from writers to readers; and from readers to the write that takes their copy for a later iteration."""
    number = {op.name: index for index, op in enumerate(spec.ops)}
    for reader, op in enumerate(spec.ops):
        for read in op.reads:
            home, count = spec.value(read.value).home, copies.get(read.value, 1)
            for made_by in spec.writers(read.value):
                writer = number[made_by.name]
                if home is not Home.ACCUMULATOR:
                    latency = times.timings[writer].latency
                    yield Precedence(writer, reader, latency, read.distance, f"{op.name} uses {read.value}")
                if writer != reader:  # an op may overwrite what it reads itself
                    held = times.timings[reader].latency if home is Home.LDS else times.timings[reader].occupancy
                    why = f"{made_by.name} overwrites the copy of {read.value} that {op.name} reads"
                    yield Precedence(reader, writer, held, count - read.distance, why)


def least_register_copies(spec: LoopSpec) -> dict[str, int]:
    """Copies without which no order exists: an op that needs a value and an older version of it needs both at once."""
    feeds: dict[str, set[str]] = {op.name: set() for op in spec.ops}
    for op in spec.ops:
        for read in op.reads:
            for writer in spec.writers(read.value) if read.distance == 0 else ():
                feeds[writer.name].add(op.name)
    least: dict[str, int] = {}
    for value in spec.values:
        if value.home is Home.REGISTERS:
            (writer,) = spec.writers(value.name)
            fed = _reached(writer.name, feeds)
            late = [r.distance for op in spec.ops if op.name in fed for r in op.reads if r.value == value.name]
            least[value.name] = 1 + max(late, default=0)
    return least


def _reached(start: str, feeds: Mapping[str, set[str]]) -> set[str]:
    """Ops that depend on `start` within one iteration."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for op in feeds[waiting.pop()] - found:
            found.add(op)
            waiting.append(op)
    return found


def _timing(op: LoopOp, spec: LoopSpec, rates: Rates, groups: int) -> Timing:
    waves_per_simd = -(-spec.waves // (SIMDS * groups))
    if op.work is Work.LOAD:
        busy = _transfer(op, rates.dma, groups)
        return Timing(Unit.DMA, busy, busy + slots(rates.dma_latency.value))
    if op.work in (Work.FRAGMENT, Work.STORE):
        busy = _transfer(op, rates.lds_read if op.work is Work.FRAGMENT else rates.lds_write, groups)
        return Timing(Unit.LDS, busy, busy + slots(rates.lds_latency.value))
    if op.work is Work.MMA:
        busy = op.instructions * rates.passes(op.instruction) * waves_per_simd
        return Timing(Unit.MMA, busy, busy)
    busy = op.instructions * waves_per_simd
    return Timing(Unit.VALU, busy, busy)


def _transfer(op: LoopOp, rate: Fact, groups: int) -> int:
    return slots(-(-op.moved // (rate.value * groups)))
