"""Phases from start times: prologue, kernel and epilogue of a loop by values.

Period n executes op i for iteration n - stage(i). In the prologue iterations only begin, in the kernel's `unroll`
periods all stages are busy, in the epilogue iterations only end. The kernel is unrolled by the number of copies of its
values, so that every buffer slot is a constant.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rota.check import check_ints
from rota.errors import Concern, Finding, several
from rota.program.entry import Effect, Entry, Op, Place, Space, Version, Work
from rota.program.kinds import Home, Phase
from rota.program.loop_spec import LoopOp, LoopSpec
from rota.program.machine import Machine
from rota.values.op_times import LoopTimes

_UNVERSIONED = {Home.ACCUMULATOR: Space.ACCUMULATOR, Home.MEMORY: Space.MEMORY}
"""Homes that take in what every iteration brings; nothing in the loop reads them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """When each op starts, in slots, how often iterations start, and how many copies each value has.

    `barriers` are the slots of the loop's barriers, where the search for starts placed them; then no load holds up its
    barrier unless it is `landing_slack` slots late, and no read its first use unless it is `read_slack` late.  Where
    `turns_left`, two instructions of a wave may want the same turn, and one of them starts a little late.
    """

    interval: int
    starts: tuple[int, ...]
    copies: tuple[tuple[str, int], ...]
    barriers: tuple[int, ...] = ()
    landing_slack: int = 0
    read_slack: int = 0
    turns_left: bool = False

    def __post_init__(self) -> None:
        check_ints(self, ("interval",), least=1)

    def stage(self, op: int) -> int:
        """How many iterations begin between the op's own and the period in which it runs."""
        return self.starts[op] // self.interval

    def __str__(self) -> str:
        late = f"; loads may be {self.landing_slack} slots late, reads {self.read_slack}" if self.barriers else ""
        turns = "; issue turns left to the order" if self.turns_left else ""
        stages, barriers = several(self.stages, "stage"), several(len(self.barriers), "barrier")
        most = "at most " if self.turns_left else ""  # every other iteration may do
        return f"{stages}, unroll {self.unroll}, {most}{barriers} an iteration{late}{turns}"

    @property
    def stages(self) -> int:
        """Iterations in flight at once."""
        return max((start // self.interval for start in self.starts), default=0) + 1

    @property
    def unroll(self) -> int:
        """Periods after which every value is back in its first copy."""
        return math.lcm(1, *(count for _, count in self.copies))


@dataclass(frozen=True, slots=True, kw_only=True)
class UnrolledLoop:
    """The phases, and the K-tiles they compute: `unroll` per trip, the rest outside the loop.

    `times` say for each phase when its entries start, in slots from the beginning of the phase.
    """

    prologue: tuple[Entry, ...]
    kernel: tuple[Entry, ...]
    epilogue: tuple[Entry, ...]
    times: Mapping[Phase, tuple[int, ...]]
    trip_tiles: tuple[int, int]


def derive_loop_phases(spec: LoopSpec, placement: Placement, machine: Machine, remainder: int = 0) -> UnrolledLoop:
    """Entries without any synchronisation; `remainder` more iterations run outside the loop."""
    stages, unroll = placement.stages, placement.unroll
    maker = _EntryMaker(spec, placement, machine)
    ramp = stages - 1
    periods = {
        Phase.PROLOGUE: [range(n + 1) for n in range(ramp)],
        Phase.KERNEL: [range(stages)] * unroll,
        Phase.EPILOGUE: [range(max(n - remainder + 1, 0), stages) for n in range(remainder + ramp)],
    }
    return UnrolledLoop(
        prologue=maker.phase(Phase.PROLOGUE, periods[Phase.PROLOGUE], 0),
        kernel=maker.phase(Phase.KERNEL, periods[Phase.KERNEL], ramp - unroll),
        epilogue=maker.phase(Phase.EPILOGUE, periods[Phase.EPILOGUE], ramp - unroll),
        times={phase: maker.times(running) for phase, running in periods.items()},
        trip_tiles=(unroll, ramp + remainder),
    )


class _EntryMaker:
    """Makes the entries of a phase, period by period, each in the order of its slots."""

    def __init__(self, spec: LoopSpec, placement: Placement, machine: Machine) -> None:
        self.spec = spec
        self.counters = {op.kind: machine.counter_of(op.kind) for op in spec.ops}
        self.placement = placement
        self.copies: Mapping[str, int] = dict(placement.copies)
        # Values that share registers have the name, and the copies, of the first of them.
        self.first = {value.name: spec.registers_of(value.name)[0] for value in spec.values}
        self.home = {value.name: value.home for value in spec.values}
        self.order = sorted(range(len(spec.ops)), key=lambda op: (placement.starts[op] % placement.interval, op))

    def phase(self, phase: Phase, periods: Sequence[range], offset: int) -> tuple[Entry, ...]:
        """`periods` are the stages that run in each; iterations count from `offset`."""
        return tuple(
            Entry(
                op=self._op(op, offset + period - self.placement.stage(op)),
                time_slot=place,
                phase=phase,
                effect=self._effect(op, offset + period - self.placement.stage(op)),
            )
            for place, (period, op) in enumerate(self._running(periods))
        )

    def times(self, periods: Sequence[range]) -> tuple[int, ...]:
        interval = self.placement.interval
        return tuple(period * interval + self.placement.starts[op] % interval for period, op in self._running(periods))

    def _running(self, periods: Sequence[range]) -> Iterator[tuple[int, int]]:
        for period, stages in enumerate(periods):
            yield from ((period, op) for op in self.order if self.placement.stage(op) in stages)

    def _op(self, index: int, iteration: int) -> Op:
        op = self.spec.ops[index]
        slot = iteration % max((self.copies.get(self.first[name], 1) for name in self._values(op)), default=1)
        work = Work(op.instructions, -(-op.moved // (op.instructions * self.spec.waves)), op.instruction, op.bits)
        return Op(kind=op.kind, name=op.name, copy=slot, work=work, source=op.source, declared=op)

    def _effect(self, index: int, iteration: int) -> Effect:
        op = self.spec.ops[index]
        counter = self.counters[op.kind]
        wants = tuple(
            (place, Version(read.value, iteration - read.distance))
            for read in op.reads
            for place in self._places(read.value, iteration - read.distance, self.spec.writers_of(read))
        )
        makes = tuple(
            (place, Version(value, iteration))
            for value in op.writes
            if self.home[value] not in _UNVERSIONED
            for place in self._places(value, iteration, (op,))
        )
        sums = tuple(
            Place(_UNVERSIONED[self.home[value]], value) for value in op.writes if self.home[value] in _UNVERSIONED
        )
        return Effect(
            kind=op.kind,
            counter=counter,
            tokens=op.instructions if counter else 0,
            reads=tuple(place for place, _ in wants),
            writes=(*(place for place, _ in makes), *sums),
            instance=Version(op.name, iteration),
            wants=wants,
            makes=makes,
        )

    def _places(self, value: str, iteration: int, writers: tuple[LoopOp, ...]) -> tuple[Place, ...]:
        """Where an op puts its part of a value; an LDS tile has as many parts as ops write it."""
        home, first = self.home[value], self.first[value]
        slot = iteration % self.copies.get(first, 1)
        if home is Home.REGISTERS:
            return (Place(Space.REGISTER, first, slot),)
        parts = self.spec.writers(value)
        return tuple(Place(Space.LDS, value, slot, part) for part, op in enumerate(parts) if op in writers)

    @staticmethod
    def _values(op: LoopOp) -> tuple[str, ...]:
        return (*op.writes, *(read.value for read in op.reads))


# Registers that are live at once.
#
# A value is live from the issue of its writer, since what a read of LDS brings may land at any time from then on,
# to the end of its last reader. Values that share registers count once. Inputs and accumulators are live
# throughout.
#
# The most that are live at once is the least that any allocation of registers needs. One that never moves a value
# may need more, since lives go round with the loop; one register for every copy is always enough.

_MOST_NAMED = 6
_THROUGHOUT = (Home.ACCUMULATOR, Home.INPUT)


class Holder(NamedTuple):
    """A value and the registers per lane of all its live copies."""

    value: str
    registers: int


class Live(NamedTuple):
    """The most registers that are live at once, and who holds them then, the largest first."""

    registers: int
    holders: tuple[Holder, ...]


class _Held(NamedTuple):
    """A live copy: its value, whose registers it is in, and which of them."""

    value: str
    first: str
    copy: int


class _Life(NamedTuple):
    """The live range of one version: whose registers, and from when to when, in slots of its iteration."""

    value: str
    first: str
    begins: int
    ends: int


def find_most_live(loop: LoopSpec, placement: Placement, times: LoopTimes) -> Live:
    """The moment at which the steady loop holds the most registers."""
    copies, lives = dict(placement.copies), tuple(_find_live_ranges(loop, placement, times))
    # The most is live just when something begins, and one interval is like the next.
    moments = sorted({life.begins % placement.interval for life in lives})
    each = [(), *(tuple(_find_live_copies(lives, copies, moment, placement)) for moment in moments)]
    fullest = max(each, key=lambda holding: _held(loop, holding))
    return Live(_held(loop, fullest), _holders(loop, fullest))


def find_least_live(loop: LoopSpec) -> Live:
    """Registers live in every schedule: what stays, and what one op reads and makes."""
    each = [(), *(_list_operands(loop, op) for op in loop.ops)]
    fullest = max(each, key=lambda holding: _held(loop, holding))
    return Live(_held(loop, fullest), _holders(loop, fullest))


def report_too_many(loop: LoopSpec, live: Live, limit: int, message: str) -> Finding:
    """L104 with the largest holders and where they are made."""
    made_by = {name: op for op in reversed(loop.ops) for name in op.writes}
    concerns = []
    for value, registers in live.holders[:_MOST_NAMED]:
        maker = made_by.get(value)
        role = f"holds {registers} registers" + ("" if maker is None else f", made by {maker.name}")
        concerns.append(Concern(label=value, role=role, source=None if maker is None else maker.source))
    rest = live.holders[_MOST_NAMED:]
    others = ((f"{len(rest)} smaller holders", sum(each.registers for each in rest)),) if rest else ()
    return Finding(
        "L104",
        message,
        concerns=tuple(concerns),
        evidence=(("registers live at once", live.registers), ("limit", limit), *others),
        fixes=("a smaller tile per wave", "into=... lets a value take over registers that are no longer needed"),
    )


def _list_operands(loop: LoopSpec, op: LoopOp) -> tuple[_Held, ...]:
    """What an op reads and makes; an older version of its result may share the registers it writes."""
    made = {loop.registers_of(name)[0] for name in op.writes}
    held: dict[tuple[str, int], str] = {}
    for name, distance in (*((read.value, read.distance) for read in op.reads), *((name, 0) for name in op.writes)):
        if loop.value(name).home is Home.REGISTERS:
            first = loop.registers_of(name)[0]
            held[first, 0 if first in made else distance] = name
    return tuple(_Held(name, first, version) for (first, version), name in held.items())


def _find_live_ranges(loop: LoopSpec, placement: Placement, times: LoopTimes) -> Iterator[_Life]:
    """The live range of each register value of iteration 0."""
    begins: dict[str, int] = {}
    ends: dict[str, int] = {}
    for start, op, timing in zip(placement.starts, loop.ops, times.timings, strict=True):
        begins |= dict.fromkeys(op.writes, start)
        uses = [(name, start + max(timing.latency, 1)) for name in op.writes]
        held = start + max(timing.occupancy, 1)
        uses += [(read.value, held + read.distance * placement.interval) for read in op.reads]
        for name, over in uses:
            ends[name] = max(ends.get(name, over), over)
    for value in loop.values:
        if value.home is Home.REGISTERS:
            yield _Life(value.name, loop.registers_of(value.name)[0], begins[value.name], ends[value.name])


def _find_live_copies(
    lives: Sequence[_Life], copies: Mapping[str, int], moment: int, placement: Placement
) -> Iterator[_Held]:
    """The copies live at a moment, each once."""
    interval = placement.interval
    taken: set[tuple[str, int]] = set()
    for value, first, begins, ends in lives:
        # Iterations k with begins <= moment - k x interval < ends.
        last, before = (moment - begins) // interval, (moment - ends) // interval
        for iteration in range(before + 1, last + 1):
            copy = iteration % copies.get(first, 1)
            if (first, copy) not in taken:
                taken.add((first, copy))
                yield _Held(value, first, copy)


def _held(loop: LoopSpec, holding: Sequence[_Held]) -> int:
    sizes = {value.name: value.size for value in loop.values}
    always = sum(value.size for value in loop.values if value.home in _THROUGHOUT)
    return always + sum(sizes[first] for _, first, _ in holding)


def _holders(loop: LoopSpec, holding: Sequence[_Held]) -> tuple[Holder, ...]:
    sizes = {value.name: value.size for value in loop.values}
    held = {value.name: value.size for value in loop.values if value.home in _THROUGHOUT}
    for value, first, _ in holding:
        held[value] = held.get(value, 0) + sizes[first]
    return tuple(sorted((Holder(*each) for each in held.items()), key=lambda each: (-each.registers, each.value)))
