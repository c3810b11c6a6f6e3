"""What a loop's ops cost on a machine: unit times and precedences, in slots.

Units are shared: an op's time on the MMA unit or VALU counts the waves of its SIMD, that on the LDS port and the DMA
path all waves of the workgroup. A wave issues one instruction a slot, of whatever kind, those that set up a DMA
included. Latencies are planning numbers (see `rota.targets.device.Rates`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from rota.program.kinds import Home, OpKind, Unit
from rota.program.loop_spec import LoopOp, LoopSpec, Read
from rota.program.machine import Fact
from rota.targets.device import Rates, Timing


class OpTime(NamedTuple):
    """An op holds `unit` for `occupancy` slots; its result is ready `latency` slots after it started.

    It takes `issue` turns of its wave; 0 for the many instructions of a tile, which leave turns between them.
    """

    unit: Unit
    occupancy: int
    latency: int
    issue: int = 0


class Precedence(NamedTuple):
    """start(later, iteration k + distance) >= start(earlier, iteration k) + delay; `why` in words.

    `of` is the value whose copies the distance counts, if it counts any.
    """

    earlier: int
    later: int
    delay: int
    distance: int
    why: str
    of: str = ""


class OwnTime(NamedTuple):
    """What an op takes for one wave alone: of its unit, until its result is ready, and of the registers it reads."""

    occupancy: int
    latency: int
    held: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopTimes:
    """Timings per op, and how busy each unit is per iteration, with DMA writes into LDS and all issue turns.

    `groups` of waves run apart: a timing is one group's share, and the others follow with theirs.
    """

    timings: tuple[OpTime, ...]
    busy: tuple[tuple[Unit, int], ...]
    groups: int = 1

    @property
    def least_interval(self) -> int:
        """No schedule starts iterations faster than its busiest unit allows."""
        return max((count for _, count in self.busy), default=1)

    @property
    def turns(self) -> int:
        return sum(timing.issue for timing in self.timings)

    def latency(self, unit: Unit) -> int:
        """How long the slowest op of a unit takes after it has released the unit."""
        return max((t.latency - t.occupancy for t in self.timings if t.unit is unit), default=0)


def time_loop(spec: LoopSpec, unit: Timing, groups: int = 1) -> LoopTimes:
    alone = all(op.instructions == 1 for op in spec.ops if op.kind.unit is not Unit.VALU)
    timings = tuple(_time(op, spec, unit, groups, alone=alone) for op in spec.ops)
    busy = {each: groups * sum(t.occupancy for t in timings if t.unit is each) for each in Unit}
    landed = sum(op.moved for op in spec.ops if op.kind is OpKind.DMA)
    busy[Unit.LDS] += unit.rates.slots(-(-landed // unit.rates.lds_write.value))
    busy[Unit.ISSUE] = sum(_count_turns(op, unit) for op in spec.ops)
    loads = tuple((each, count) for each, count in busy.items() if count)
    return LoopTimes(timings=timings, busy=loads, groups=groups)


def find_precedences(
    spec: LoopSpec, times: LoopTimes, copies: Mapping[str, int], own: Sequence[OwnTime] | None = None
) -> Iterator[Precedence]:
    """Flow from writers to readers, and from readers to the write that reuses their copy in a later iteration.

    With its `own` times a wave waits only for its own part of what is in registers.
    """
    own = own or tuple(OwnTime(t.occupancy, t.latency, t.occupancy) for t in times.timings)
    number = {op.name: index for index, op in enumerate(spec.ops)}
    turns = {value.name: _find_register_turns(spec, value.name) for value in spec.values}
    for reader, op in enumerate(spec.ops):
        for read in op.reads:
            home = spec.value(read.value).home
            for made_by in spec.writers_of(read) if home is not Home.ACCUMULATOR else ():
                writer = number[made_by.name]
                # A matrix op adds to the result of another as soon as that has left the unit, if it stays in place.
                adds = made_by.kind is op.kind is OpKind.MMA and any(
                    spec.value(w).into == read.value for w in op.writes
                )
                delay = own[writer].occupancy if adds else own[writer].latency
                delay = times.timings[writer].latency if home is Home.LDS else delay
                yield Precedence(writer, reader, delay, read.distance, f"{op.name} uses {read.value}")
            first, after, later = turns[read.value]
            for taken_by in spec.writers_of(read) if home is Home.LDS else spec.writers(after):
                writer = number[taken_by.name]
                if writer != reader:  # an op may overwrite what it reads itself
                    held = times.timings[reader].latency if home is Home.LDS else own[reader].held
                    held = max(held, 1)  # of two ops in one slot either may come first
                    why = f"{taken_by.name} overwrites the copy of {read.value} that {op.name} reads"
                    between = later * copies.get(first, 1) - read.distance
                    yield Precedence(reader, writer, held, between, why, first if later else "")
    read_by_some = {read.value for op in spec.ops for read in op.reads}
    for value in spec.values:
        first, after, later = turns[value.name]
        for made_by in spec.writers(value.name) if after != value.name else ():
            for taken_by in spec.writers(after):
                writer, taker = number[made_by.name], number[taken_by.name]
                # What is read is waited for by its readers; what nothing reads must still have landed.
                delay = max(own[writer].occupancy if value.name in read_by_some else own[writer].latency, 1)
                why = f"{taken_by.name} writes the registers of {value.name} after {made_by.name}"
                yield Precedence(writer, taker, delay, later * copies.get(first, 1), why, first if later else "")


def find_spans(spec: LoopSpec, times: LoopTimes) -> Iterator[Precedence]:
    """What tiles in LDS cost as a whole, around three moments of each that are numbered after the ops.

    The writers of a tile hold their unit one after the other, all of them are over before the first reader starts, and
    these hold theirs one after the other before the copy is overwritten.  No precedence between two ops says that.
    """
    number = {op.name: index for index, op in enumerate(spec.ops)}
    moment = len(spec.ops)
    for value in spec.values:
        groups: dict[Read, list[int]] = {}
        for index, op in enumerate(spec.ops) if value.home is Home.LDS else ():
            for read in op.reads:
                if read.value == value.name:
                    groups.setdefault(read, []).append(index)
        for read, readers in groups.items():
            writers = [number[op.name] for op in spec.writers_of(read)]
            begins, landed, freed = moment, moment + 1, moment + 2
            moment = freed + 1
            why = f"what lands of {value.name} is read, and overwritten"
            yield from (Precedence(begins, op, 0, 0, why) for op in writers)
            yield from (Precedence(op, landed, times.timings[op].latency, 0, why) for op in writers)
            yield from (Precedence(landed, op, 0, read.distance, why) for op in readers)
            yield from (Precedence(op, freed, max(times.timings[op].latency, 1), -read.distance, why) for op in readers)
            yield Precedence(begins, landed, _span([times.timings[op] for op in writers]), 0, why)
            yield Precedence(landed, freed, _span([times.timings[op] for op in readers]), 0, why)
            yield Precedence(freed, begins, 0, 0, why, value.name)


def _span(timings: Sequence[OpTime]) -> int:
    """The least slots from the first start of ops to the last one's result; they hold their unit in turn."""
    if len({each.unit for each in timings}) > 1:
        return max(each.latency for each in timings)
    held = [max(each.occupancy, each.issue) for each in timings]
    return sum(held) - max(held) + min(each.latency for each in timings)


def _find_register_turns(spec: LoopSpec, name: str) -> tuple[str, str, int]:
    """Whose registers a value has, which value takes them next, and whether in a later iteration."""
    turns = spec.registers_of(name)
    place = turns.index(name) + 1
    return turns[0], turns[place % len(turns)], place // len(turns)


def least_copies(spec: LoopSpec) -> dict[str, int]:
    """The fewest copies of tiles and registers that leave an order.

    A version that is read d iterations later must outlive d - 1 younger ones; and one more if its reader also needs the
    value of its own iteration. Values that share registers share their copies, counted for the first of them.
    """
    feeds: dict[str, set[str]] = {op.name: set() for op in spec.ops}
    for op in spec.ops:
        for read in op.reads:
            for writer in spec.writers_of(read) if read.distance == 0 else ():
                feeds[writer.name].add(op.name)
    least: dict[str, int] = {}
    for value in spec.values:
        if value.home in (Home.REGISTERS, Home.LDS) and not value.into:
            turns = spec.registers_of(value.name)
            fed = _find_dependents(spec, Read(value=value.name), feeds)
            needed = [
                read.distance + (op.name in (_find_dependents(spec, read, feeds) if read.parts else fed))
                for op in spec.ops
                for read in op.reads
                if read.value in turns
            ]
            least[value.name] = max([1, *needed])
    return least


def _find_dependents(spec: LoopSpec, read: Read, feeds: Mapping[str, set[str]]) -> set[str]:
    """Ops that depend on what is read, within one iteration."""
    return {op for writer in spec.writers_of(read) for op in _find_reached(writer.name, feeds)}


def _find_reached(start: str, feeds: Mapping[str, set[str]]) -> set[str]:
    """Ops that depend on `start` within one iteration."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for op in feeds[waiting.pop()] - found:
            found.add(op)
            waiting.append(op)
    return found


def _time(op: LoopOp, spec: LoopSpec, unit: Timing, groups: int, *, alone: bool) -> OpTime:
    rates = unit.rates
    waves_per_simd = -(-spec.waves // (rates.simds.value * groups))
    if op.kind.unit is Unit.DMA:
        busy = _transfer(op, rates, rates.dma, groups)
        return OpTime(Unit.DMA, busy, busy + rates.slots(rates.dma_latency.value), _count_turns(op, unit) * alone)
    if op.kind.unit is Unit.LDS:
        busy = _transfer(op, rates, rates.lds_rate(op.kind), groups)
        return OpTime(Unit.LDS, busy, busy + rates.slots(rates.lds_latency.value), int(alone))
    if op.kind is OpKind.MMA:
        busy = op.instructions * rates.passes(op.instruction, op.bits) * waves_per_simd
        return OpTime(Unit.MMA, busy, busy + unit.result_turns.value, int(alone))
    busy = op.instructions * rates.valu_slots(op.kind) * waves_per_simd
    return OpTime(Unit.VALU, busy, busy, op.instructions * alone)


def _count_turns(op: LoopOp, unit: Timing) -> int:
    """Issue turns of an op's instructions, those that set up a DMA included."""
    return op.instructions * (1 + unit.dma_setup.fact.value * (op.kind is OpKind.DMA))


def _transfer(op: LoopOp, rates: Rates, rate: Fact, groups: int) -> int:
    return rates.slots(-(-op.moved // (rate.value * groups)))


# What no execution can beat.
#
# Planning takes all waves to be in step and whole slots for every op, so that its bounds hold for such schedules
# only. Waves that drift apart wait for their own share of a unit, not for that of the others, and the clocks of
# several ops may share a slot. What is bounded here holds for them, and in the cycle model, too.


class WaveBounds(NamedTuple):
    """Slots that the busiest unit needs for an iteration, and the precedences that every execution keeps."""

    least_interval: int
    precedences: tuple[Precedence, ...]


def bound_times(spec: LoopSpec, unit: Timing, copies: Mapping[str, int]) -> WaveBounds:
    """The least that units and waves need for one iteration."""
    times = time_loop(spec, unit)
    moved = [_time_data_movement(op, unit) for op in spec.ops]
    timings = tuple(
        timing._replace(latency=(busy + latency) // unit.rates.clocks_per_slot.value)
        for timing, (busy, latency) in zip(times.timings, moved, strict=True)
    )
    own = tuple(_time_one_wave(op, unit, spec.waves) for op in spec.ops)
    landed = sum(op.moved for op in spec.ops if op.kind is OpKind.DMA) // unit.rates.lds_write.value
    clocks = {each: sum(busy for t, (busy, _) in zip(timings, moved, strict=True) if t.unit is each) for each in Unit}
    clocks[Unit.LDS] += landed
    turns = [count for each, count in times.busy if each not in (Unit.LDS, Unit.DMA)]
    moving = [unit.rates.slots(clocks[each]) for each in (Unit.LDS, Unit.DMA)]
    return WaveBounds(
        least_interval=max([1, *turns, *moving]),
        precedences=tuple(find_precedences(spec, replace(times, timings=timings), copies, own)),
    )


def _time_data_movement(op: LoopOp, unit: Timing) -> tuple[int, int]:
    """Clocks for which an op's data, of all waves, holds its path or port, and the latency after that."""
    rates = unit.rates
    if op.kind.unit is Unit.DMA:
        return op.moved // rates.dma.value, rates.dma_latency.value
    if op.kind.unit is Unit.LDS:
        return op.moved // rates.lds_rate(op.kind).value, rates.lds_latency.value
    return 0, 0


def _time_one_wave(op: LoopOp, unit: Timing, waves: int) -> OwnTime:
    """Times of one wave; registers that are read are free once the last instruction is issued."""
    if op.kind is OpKind.MMA:
        passes = unit.rates.passes(op.instruction, op.bits)
        busy = op.instructions * passes
        return OwnTime(busy, busy + unit.result_turns.value, busy - passes + 1)
    if op.kind.unit is Unit.VALU:
        each = unit.rates.valu_slots(op.kind)
        return OwnTime(op.instructions * each, op.instructions * each, (op.instructions - 1) * each + 1)
    busy, latency = _time_data_movement(op, unit)
    return OwnTime(0, (busy // waves + latency) // unit.rates.clocks_per_slot.value, op.instructions)
