"""Phases from start times: takes a loop by values and when its ops start, gives prologue, kernel and epilogue entries.

Period n executes op i for iteration n - stage(i).  The prologue is the periods in which iterations only begin, the
kernel `unroll` periods in which all stages are busy, the epilogue those in which they only end.  It is unrolled by the
number of copies of its values, so that every buffer slot is a constant.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rota.declare.check import check_ints
from rota.declare.effects import Action, Counter, Effect, Place, Space, Version
from rota.declare.op import OpDesc
from rota.declare.values import Home, LoopOp, LoopSpec, Work
from rota.declare.vocabulary import LoopTag, OpRole, Phase
from rota.errors import several
from rota.program.entry import ScheduleEntry

_ROLES = {
    Work.LOAD: (LoopTag.LOAD, OpRole.GLOBAL_LOAD),
    Work.FRAGMENT: (LoopTag.FRAGMENT, OpRole.FRAGMENT_LOAD),
    Work.MMA: (LoopTag.MMA, OpRole.COMPUTE),
    Work.VALU: (LoopTag.VALU, OpRole.VALU_COMPUTE),
    Work.STORE: (LoopTag.STORE, OpRole.SHARED_STORE),
}
_ACTIONS: dict[Work, tuple[Action, Counter | None]] = {
    Work.FRAGMENT: (Action.LDS_READ, Counter.LGKM),
    Work.STORE: (Action.LDS_WRITE, Counter.LGKM),
    Work.MMA: (Action.COMPUTE, None),
    Work.VALU: (Action.COMPUTE, None),
}


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
        """How many iterations begin between op's own and the period in which it runs."""
        return self.starts[op] // self.interval

    def __str__(self) -> str:
        late = f"; loads may be {self.landing_slack} slots late, reads {self.read_slack}" if self.barriers else ""
        turns = "; issue turns left to the order" if self.turns_left else ""
        stages, barriers = several(self.stages, "stage"), several(len(self.barriers), "barrier")
        return f"{stages}, unroll {self.unroll}, {barriers} an iteration{late}{turns}"

    @property
    def stages(self) -> int:
        """Iterations under way at once."""
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

    prologue: tuple[ScheduleEntry, ...]
    kernel: tuple[ScheduleEntry, ...]
    epilogue: tuple[ScheduleEntry, ...]
    times: Mapping[Phase, tuple[int, ...]]
    trip_tiles: tuple[int, int]


def derive_loop_phases(spec: LoopSpec, placement: Placement, remainder: int = 0) -> UnrolledLoop:
    """Entries without any synchronisation; `remainder` more iterations run outside the loop."""
    stages, unroll = placement.stages, placement.unroll
    maker = _EntryMaker(spec, placement)
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
    """Makes the entries of a phase, period by period, each period in the order of its slots."""

    def __init__(self, spec: LoopSpec, placement: Placement) -> None:
        self.spec = spec
        self.placement = placement
        self.copies: Mapping[str, int] = dict(placement.copies)
        # Values that share registers have the number, and the copies, of the first of them.
        self.first = {value.name: spec.registers_of(value.name)[0] for value in spec.values}
        self.number = {value.name: index for index, value in enumerate(spec.values)}
        self.home = {value.name: value.home for value in spec.values}
        self.order = sorted(range(len(spec.ops)), key=lambda op: (placement.starts[op] % placement.interval, op))

    def phase(self, phase: Phase, periods: Sequence[range], offset: int) -> tuple[ScheduleEntry, ...]:
        """`periods` are the stages that run in each; iterations count from `offset` on."""
        return tuple(
            ScheduleEntry(
                op=self._desc(op, offset + period - self.placement.stage(op)),
                time_slot=place,
                phase=phase,
                effect=self._effect(op, offset + period - self.placement.stage(op)),
            )
            for place, (period, op) in enumerate(self._running(periods))
        )

    def times(self, periods: Sequence[range]) -> tuple[int, ...]:
        """When the entries of these periods start."""
        interval = self.placement.interval
        return tuple(period * interval + self.placement.starts[op] % interval for period, op in self._running(periods))

    def _running(self, periods: Sequence[range]) -> Iterator[tuple[int, int]]:
        for period, stages in enumerate(periods):
            yield from ((period, op) for op in self.order if self.placement.stage(op) in stages)

    def _desc(self, index: int, iteration: int) -> OpDesc:
        op = self.spec.ops[index]
        tag, role = _ROLES[op.work]
        slot = iteration % max((self.copies.get(self.first[name], 1) for name in self._values(op)), default=1)
        return OpDesc(tag=tag, stage=slot, subtile=index, role=role, label=op.name, source=op.source)

    def _effect(self, index: int, iteration: int) -> Effect:
        op = self.spec.ops[index]
        action, counter = _ACTIONS.get(op.work) or self._load(op)
        wants = tuple(
            (place, Version(read.value, iteration - read.distance))
            for read in op.reads
            for place in self._places(read.value, iteration - read.distance)
        )
        makes = tuple(
            (place, Version(value, iteration))
            for value in op.writes
            if self.home[value] is not Home.ACCUMULATOR
            for place in self._places(value, iteration, writer=op)
        )
        sums = tuple(
            place for value in op.writes if self.home[value] is Home.ACCUMULATOR for place in self._places(value, 0)
        )
        return Effect(
            action=action,
            counter=counter,
            tokens=op.instructions if counter else 0,
            reads=tuple(place for place, _ in wants),
            writes=(*(place for place, _ in makes), *sums),
            instance=Version(op.name, iteration),
            wants=wants,
            makes=makes,
        )

    def _load(self, op: LoopOp) -> tuple[Action, Counter | None]:
        to_lds = any(self.home[value] is Home.LDS for value in op.writes)
        return Action.DMA if to_lds else Action.GLOBAL_TO_REGISTER, Counter.VM

    def _places(self, value: str, iteration: int, writer: LoopOp | None = None) -> tuple[Place, ...]:
        """Where a value of an iteration lies: an LDS tile in as many parts as ops write it, each part on its own."""
        home, first = self.home[value], self.first[value]
        number = self.number[first]
        if home is Home.ACCUMULATOR:
            return (Place(Space.ACCUMULATOR, -1, number, 0),)
        slot = iteration % self.copies.get(first, 1)
        if home is Home.REGISTERS:
            return (Place(Space.REGISTER, number, slot, 0),)
        parts = self.spec.writers(value)
        return tuple(Place(Space.LDS, number, slot, part) for part, op in enumerate(parts) if writer in (None, op))

    @staticmethod
    def _values(op: LoopOp) -> tuple[str, ...]:
        return (*op.writes, *(read.value for read in op.reads))
