"""What one wave executes for a trip count: its memory ops, computes and barriers.

All of this follows from program order alone; the clock decides when it happens.
"""

from __future__ import annotations

import enum
from collections import Counter as Tally, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rota.errors import several
from rota.execute.lazy_numpy import Ints, np
from rota.program.entry import Effect, Entry, Place, Space
from rota.program.kinds import GLOBAL_LOADS, LDS_READS, OpKind, Phase, Unit
from rota.program.lowered import LoweredProgram

GARBAGE = -1
"""The number of a K-tile that doesn't exist; also what poisoned or undefined memory holds."""

UNWRITTEN = -2
"""What memory holds that no write has begun to."""

_HELD = (Space.LDS, Space.REGISTER, Space.ACCUMULATOR)
"""Where a later op of the program may look."""


class Line(enum.Enum):
    """In which order the memory ops of a wave land among themselves."""

    DS = "LDS reads and writes: in program order, which is the LDS's own"
    REGISTER = "global memory to registers, on a counter that counts in order: in program order"
    ANY = "everything else: in any order"


class MemoryOp(NamedTuple):
    """One memory op of a wave; where values have versions, `tile`, `source` and `block` say nothing."""

    step: int
    cover: int  # the first step after which it is complete, the trace's length if there is none
    line: Line
    counter: str | None
    tile: int = GARBAGE  # the K-tile that it fetches
    source: int | None = None  # the memory op whose registers a store writes to LDS
    block: int = 0  # the part of the operand that it moves


class Compute(NamedTuple):
    """One compute: the memory ops that loaded its operands' registers last, None where nothing did."""

    step: int
    operands: tuple[int | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """The program of one role, unrolled for one trip count; ops that order and move nothing are left out."""

    steps: tuple[tuple[Entry, int], ...]
    positions: tuple[int, ...]  # of each step's entry in the list of its phase
    barriers: tuple[int, ...]  # steps that arrive, wait or both, and end an epoch
    memory: tuple[MemoryOp, ...]
    reads: dict[Place, tuple[int, ...]]
    writes: dict[Place, tuple[int, ...]]
    computes: dict[Place, tuple[Compute, ...]]

    def __str__(self) -> str:
        barriers = several(len(self.barriers), "barrier")
        return f"{several(len(self.steps), 'step')}, {several(len(self.memory), 'memory op')}, {barriers}"

    def where(self, ordinal: int) -> str:
        entry, trip = self.steps[ordinal]
        return f"{entry} (trip {trip})" if entry.phase is Phase.KERNEL else str(entry)


def trace_of(program: LoweredProgram, role: int, trip_count: int, *, compiler_waits: bool) -> Trace:
    walk = _Walk(program, trip_count, compiler_waits=compiler_waits)
    trips = {Phase.PROLOGUE: (0,), Phase.KERNEL: range(1, trip_count + 1), Phase.EPILOGUE: (trip_count + 1,)}
    for phase, numbers in trips.items():
        own = [(number, entry) for number, entry in enumerate(program.phase(phase)) if entry.executed_by(role)]
        walk.execute(own, numbers)
    return walk.trace()


class _Walk:
    """Walks the entries in program order and keeps, per counter, what is still in flight."""

    def __init__(self, program: LoweredProgram, trip_count: int, *, compiler_waits: bool) -> None:
        self._program = program
        self._machine = program.machine
        names = [counter.name for counter in program.machine.counters]
        self._ordered = {name: program.machine.counts_in_order(name) for name in names}
        self._tiles = program.total_tiles(trip_count)
        loads = (entry.effect for entry in program.entries if entry.effect.kind is OpKind.DMA)
        self._loaded_tiles = {place[:2] for effect in loads for place in effect.writes}
        self._compiler_waits = compiler_waits
        self._steps: list[tuple[Entry, int]] = []
        self._positions: list[int] = []
        self._barriers: list[int] = []
        self._memory: list[MemoryOp] = []
        self._covers: dict[int, int] = {}
        self._reads: dict[Place, list[int]] = {}
        self._writes: dict[Place, list[int]] = {}
        self._computes: dict[Place, list[Compute]] = {}
        self._issued: Tally[str | None] = Tally()
        # What no counter tracks queues under None, which no wait names.
        self._pending: dict[str | None, deque[tuple[int, int]]] = {key: deque() for key in (*names, None)}
        self._loaded_by: dict[Place, int] = {}
        self._fetches: Tally[Place] = Tally()
        # Ops that order and move nothing have no handler.
        self._handlers: dict[OpKind, Callable[[Entry, int, int], None]]
        self._handlers = {OpKind.WAIT: self._wait, OpKind.BARRIER: self._barrier}
        for kind in OpKind:
            if kind.computes:
                self._handlers[kind] = self._compute
            elif kind.unit is Unit.DMA:
                self._handlers[kind] = self._load if kind in GLOBAL_LOADS else self._global_store
            elif kind.unit is Unit.LDS:
                self._handlers[kind] = self._lds_read if kind in LDS_READS else self._lds_write

    def execute(self, entries: Sequence[tuple[int, Entry]], trips: Sequence[int]) -> None:
        """The numbered entries of a phase, trip by trip; a wait or a register's use covers memory ops before it."""
        busy = [(number, entry) for number, entry in entries if entry.effect.kind in self._handlers]
        for trip in trips:
            for number, entry in busy:
                self._positions.append(number)
                self._steps.append((entry, trip))
                self._handlers[entry.effect.kind](entry, trip, len(self._steps) - 1)

    def trace(self) -> Trace:
        """Everything that was walked over; what no step covered is covered by the end."""
        never = len(self._steps)
        return Trace(
            steps=tuple(self._steps),
            positions=tuple(self._positions),
            barriers=tuple(self._barriers),
            memory=tuple(op._replace(cover=self._covers.get(index, never)) for index, op in enumerate(self._memory)),
            reads={place: tuple(ops) for place, ops in self._reads.items()},
            writes={place: tuple(ops) for place, ops in self._writes.items()},
            computes={place: tuple(ops) for place, ops in self._computes.items()},
        )

    def _load(self, entry: Entry, trip: int, ordinal: int) -> None:
        effect = entry.effect
        to_registers = effect.kind is OpKind.GLOBAL_LOAD and self._counts_in_order(effect.counter)
        self._use_addresses(effect, ordinal)
        self._start(effect, ordinal, Line.REGISTER if to_registers else Line.ANY, tile=self._fetch(entry, trip))

    def _global_store(self, entry: Entry, trip: int, ordinal: int) -> None:
        """It takes its registers when it issues, and then only keeps its counter busy."""
        self._use_addresses(entry.effect, ordinal)
        self._start(entry.effect, ordinal, Line.ANY)

    def _lds_read(self, entry: Entry, trip: int, ordinal: int) -> None:
        """A part of a tile that loads fill is a block; of any other tile, the registers say which slice they hold."""
        tile = next((place for place in entry.effect.reads if place[:2] in self._loaded_tiles), None)
        block = next((register.copy for register in entry.effect.writes), 0) if tile is None else tile.part
        self._use_addresses(entry.effect, ordinal)
        self._start(entry.effect, ordinal, Line.DS, block=block)

    def _lds_write(self, entry: Entry, trip: int, ordinal: int) -> None:
        loads = [self._use(register, ordinal) for register in entry.effect.reads]
        self._start(entry.effect, ordinal, Line.DS, source=next(iter(loads), None))

    def _compute(self, entry: Entry, trip: int, ordinal: int) -> None:
        loads = tuple(self._use(register, ordinal) for register in entry.effect.reads)
        for place in entry.effect.writes:  # from here on it holds a result, which is there at once
            self._use(place, ordinal)
            self._loaded_by.pop(place, None)
            if place.space is Space.ACCUMULATOR and loads:
                self._computes.setdefault(place, []).append(Compute(ordinal, loads))

    def _wait(self, entry: Entry, trip: int, ordinal: int) -> None:
        counter, count = entry.effect.counter, entry.effect.wait_value
        if counter is None or count >= self._machine.no_wait(counter):
            return
        if count and not self._ordered[counter]:  # it leaves some of them in flight, and any may be among these
            return
        pending = self._pending[counter]
        while pending and self._issued[counter] - pending[0][1] >= count:
            self._covers[pending.popleft()[0]] = ordinal

    def _barrier(self, entry: Entry, trip: int, ordinal: int) -> None:
        self._barriers.append(ordinal)

    def _use_addresses(self, effect: Effect, ordinal: int) -> None:
        """A memory op uses the registers of its addresses, and a compiler keeps its result after older ones."""
        for place in effect.reads:
            if place.space is not Space.LDS:
                self._use(place, ordinal)
        for place in effect.writes:
            older = self._loaded_by.get(place)
            if place.space is Space.REGISTER and older is not None:
                same = self._memory[older].counter == effect.counter
                if not (same and self._counts_in_order(effect.counter)):
                    self._use(place, ordinal)

    def _start(self, effect: Effect, ordinal: int, line: Line, **data: Any) -> None:
        index, counter = len(self._memory), effect.counter
        self._memory.append(MemoryOp(ordinal, -1, line, counter, **data))
        for place in effect.writes:
            if place.space in _HELD:
                self._writes.setdefault(place, []).append(index)
                self._loaded_by[place] = index
        for place in effect.reads:
            self._reads.setdefault(place, []).append(index)
        self._issued[counter] += effect.tokens
        self._pending[counter].append((index, self._issued[counter]))

    def _counts_in_order(self, counter: str | None) -> bool:
        return counter is not None and self._ordered[counter]

    def _fetch(self, entry: Entry, trip: int) -> int:
        effect = entry.effect
        tile = self._program.k_of(entry.phase, trip) + (effect.fetches or 0)
        if effect.fetches is None:
            tile = self._fetches[effect.writes[0]]
            self._fetches[effect.writes[0]] += 1
        return tile if 0 <= tile < self._tiles else GARBAGE

    def _use(self, register: Place, ordinal: int) -> int | None:
        """The memory op that loaded `register` last; under compiler waits its use waits for it and all before it."""
        load = self._loaded_by.get(register)
        if load is None or not self._compiler_waits or load in self._covers:
            return load
        counter = self._memory[load].counter
        pending, covered = self._pending[counter], None
        # The compiler's wait is a counted one, too, unless it is for the youngest op.
        if not self._counts_in_order(counter) and pending[-1][0] != load:
            return load
        while covered != load:
            covered, _ = pending.popleft()
            self._covers[covered] = ordinal
        return load


def writer_of_slices(writers: Sequence[int], slices: int) -> list[int]:
    """The wave that writes each slice of a tile: there are as many as waves, and the writers share them out."""
    return [writers[number * len(writers) // slices] for number in range(slices)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workgroup:
    """`waves` of each role, and what a wave of each role executes."""

    program: LoweredProgram
    traces: tuple[Trace, ...]
    waves: int
    _writers: dict[Place, list[int]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        roles: dict[Place, set[int]] = {}
        for entry in self.program.entries:
            # A role that executes an op that isn't its own writes as well.
            executing = range(len(self.traces)) if entry.roles is None else entry.roles
            for place in entry.effect.writes:
                roles.setdefault(place, set()).update(executing, self.program.doing(entry.op.name))
        for place, own in roles.items():
            self._writers[place] = self._waves_of_roles(own)

    @property
    def size(self) -> int:
        """Waves of all roles; wave w belongs to role w // waves."""
        return len(self.traces) * self.waves

    def trace_of(self, wave: int) -> Trace:
        return self.traces[wave // self.waves]

    def waves_of(self, role: int) -> slice:
        return slice(role * self.waves, (role + 1) * self.waves)

    def doing(self, op: str) -> list[int]:
        """The waves that do an op; all, if none does, since then it is missing everywhere."""
        return self._waves_of_roles(self.program.doing(op) or range(len(self.traces)))

    def writers(self, place: Place) -> list[int]:
        """The waves that write a place; all, if nobody does, since then it is missing everywhere."""
        return self._writers.get(place) or list(range(self.size))

    def per_wave(self, rows: Sequence[Sequence[int]], padding: int) -> Ints:
        """A row per role as an array [wave, column], short rows filled up."""
        table = np.full((len(rows), max(map(len, rows))), padding, dtype=np.intp)
        for row, values in zip(table, rows, strict=True):
            row[: len(values)] = values
        return np.repeat(table, self.waves, axis=0)

    def _waves_of_roles(self, roles: Iterable[int]) -> list[int]:
        return [role * self.waves + number for role in sorted(roles) for number in range(self.waves)]
