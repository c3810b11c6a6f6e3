"""What one wave executes: takes a loop's steps and a trip count, gives the wave's memory ops, computes and barriers.

All of this follows from program order alone.  When things happen is the clock's business.
"""

from __future__ import annotations

import enum
from collections import Counter as Tally
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from rota.declare.effects import Action, Counter, Effect, Place, Space
from rota.declare.vocabulary import Phase
from rota.program.loop import LoopSteps, Step

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

GARBAGE = -1
"""The number of a K-tile that doesn't exist; also what poisoned or undefined memory holds."""

UNWRITTEN = -2
"""What memory holds that nobody has begun to write."""

NO_WAIT = {Counter.VM: 63, Counter.LGKM: 15}
"""From this count on a wait waits for nothing: the field's all-ones value on gfx9 (6 bits and 4 bits)."""


class Line(enum.Enum):
    """In which order the memory ops of a wave land among themselves."""

    DS = "LDS reads and writes: in program order"
    REGISTER = "global memory to registers: in program order, as vmcnt counts them"
    DMA = "global memory to LDS: in any order"


class MemoryOp(NamedTuple):
    """One memory op of a wave, by ordinals of the trace's steps.

    `cover` is the first step behind which it is complete, the trace's length if there is none.  `tile` is the K-tile
    it fetches; `source` the memory op whose registers a store writes to LDS; `block` the part of the operand it moves.
    In a loop declared by values these three say nothing: its data follow from what its ops mean.
    """

    step: int
    cover: int
    line: Line
    tile: int = GARBAGE
    source: int | None = None
    block: int = 0


class Compute(NamedTuple):
    """One compute: the memory ops that loaded its A and B registers last, None where nothing did."""

    step: int
    operands: tuple[int | None, int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """The program of one wave group, unrolled for one trip count; ops that order and move nothing are left out."""

    steps: tuple[tuple[Step, int], ...]
    barriers: tuple[int, ...]
    memory: tuple[MemoryOp, ...]
    reads: dict[Place, tuple[int, ...]]
    writes: dict[Place, tuple[int, ...]]
    computes: dict[Place, tuple[Compute, ...]]

    def __str__(self) -> str:
        return f"{len(self.steps)} steps, {len(self.memory)} memory ops, {len(self.barriers)} barriers"

    def where(self, ordinal: int) -> str:
        """A step as a reader of the schedule finds it."""
        step, trip = self.steps[ordinal]
        place = f"kernel, trip {trip}" if step.entry.phase is Phase.KERNEL else step.entry.phase.value.lower()
        return f"{step.entry} ({place})"


class Workgroup(NamedTuple):
    """The waves that run together: `waves` of each group, and what a wave of each group executes."""

    traces: tuple[Trace, ...]
    waves: int

    @property
    def size(self) -> int:
        """Waves of all groups; wave w belongs to group w // waves."""
        return len(self.traces) * self.waves

    def trace_of(self, wave: int) -> Trace:
        """What one wave executes."""
        return self.traces[wave // self.waves]

    def waves_of(self, group: int) -> slice:
        """The waves of one group."""
        return slice(group * self.waves, (group + 1) * self.waves)

    def per_wave(self, rows: Sequence[Sequence[int]], padding: int) -> NDArray[np.intp]:
        """A row per group as an array [wave, column], short rows filled up."""
        import numpy as np

        table = np.full((len(rows), max(map(len, rows))), padding, dtype=np.intp)
        for row, values in zip(table, rows, strict=True):
            row[: len(values)] = values
        return np.repeat(table, self.waves, axis=0)


def trace_of(steps: LoopSteps, group: int, trip_count: int, *, compiler_waits: bool) -> Trace:
    """What every wave of `group` executes."""
    walk = _Walk(steps, trip_count, compiler_waits=compiler_waits)
    trips = {Phase.PROLOGUE: (0,), Phase.KERNEL: range(1, trip_count + 1), Phase.EPILOGUE: (trip_count + 1,)}
    for phase, numbers in trips.items():
        executed = [step for step in steps.phase(phase) if step.group in (None, group)]
        walk.execute(executed, numbers)
    return walk.trace()


class _Walk:
    """Walks the steps in program order and keeps, per counter, what is still under way."""

    def __init__(self, steps: LoopSteps, trip_count: int, *, compiler_waits: bool) -> None:
        self._loop = steps
        self._any_order = () if steps.vmcnt_in_order else (Counter.VM,)
        self._tiles = steps.total_tiles(trip_count)
        self._compiler_waits = compiler_waits
        self._steps: list[tuple[Step, int]] = []
        self._barriers: list[int] = []
        self._memory: list[MemoryOp] = []
        self._covers: dict[int, int] = {}
        self._reads: dict[Place, list[int]] = {}
        self._writes: dict[Place, list[int]] = {}
        self._computes: dict[Place, list[Compute]] = {}
        self._counters: list[Counter | None] = []
        self._issued: Tally[Counter | None] = Tally()
        # What no counter tracks queues under None, which no wait names.
        self._pending: dict[Counter | None, deque[tuple[int, int]]] = {key: deque() for key in (*Counter, None)}
        self._loaded_by: dict[Place, int] = {}
        self._fetches: Tally[Place] = Tally()
        self._handlers: dict[Action, Callable[[Step, int, int], None]] = {
            Action.DMA: self._dma,
            Action.GLOBAL_TO_REGISTER: self._global_to_register,
            Action.LDS_READ: self._lds_read,
            Action.LDS_WRITE: self._lds_write,
            Action.COMPUTE: self._compute,
            Action.WAIT: self._wait,
            Action.BARRIER: self._barrier,
        }

    def execute(self, steps: Sequence[Step], trips: Sequence[int]) -> None:
        """All steps of a phase, trip by trip; a wait or a register's use covers memory ops before it."""
        handled = [(self._handlers[step.effect.action], step) for step in steps if step.effect.action in self._handlers]
        for trip in trips:
            for handle, step in handled:
                ordinal = len(self._steps)
                self._steps.append((step, trip))
                handle(step, trip, ordinal)

    def trace(self) -> Trace:
        """Everything that was walked over; what no step covered is covered by the end."""
        never = len(self._steps)
        return Trace(
            steps=tuple(self._steps),
            barriers=tuple(self._barriers),
            memory=tuple(op._replace(cover=self._covers.get(index, never)) for index, op in enumerate(self._memory)),
            reads={place: tuple(ops) for place, ops in self._reads.items()},
            writes={place: tuple(ops) for place, ops in self._writes.items()},
            computes={place: tuple(ops) for place, ops in self._computes.items()},
        )

    def _dma(self, step: Step, trip: int, ordinal: int) -> None:
        self._addressed(step.effect, ordinal)
        self._start(step.effect, MemoryOp(ordinal, -1, Line.DMA, tile=self._fetched(step, trip)))

    def _global_to_register(self, step: Step, trip: int, ordinal: int) -> None:
        self._addressed(step.effect, ordinal)
        self._start(step.effect, MemoryOp(ordinal, -1, Line.REGISTER, tile=self._fetched(step, trip)))

    def _lds_read(self, step: Step, trip: int, ordinal: int) -> None:
        block = next((register.subtile for register in step.effect.writes), 0)
        self._addressed(step.effect, ordinal)
        self._start(step.effect, MemoryOp(ordinal, -1, Line.DS, block=block))

    def _lds_write(self, step: Step, trip: int, ordinal: int) -> None:
        loads = [self._used(register, ordinal) for register in step.effect.reads]
        self._start(step.effect, MemoryOp(ordinal, -1, Line.DS, source=next(iter(loads), None)))

    def _compute(self, step: Step, trip: int, ordinal: int) -> None:
        loads = [self._used(register, ordinal) for register in step.effect.reads]
        for place in step.effect.writes:  # from here on it holds a result, which is there at once
            self._used(place, ordinal)
            self._loaded_by.pop(place, None)
        if step.effect.instance is None:
            # A single buffer's fragment holds a slice of both operands.
            self._computes.setdefault(step.effect.writes[0], []).append(Compute(ordinal, (loads[0], loads[-1])))

    def _wait(self, step: Step, trip: int, ordinal: int) -> None:
        counter, count = step.effect.counter, step.effect.wait_value
        if counter is None or count >= NO_WAIT[counter]:
            return
        if count and counter in self._any_order:  # it leaves some of them under way, and any may be among these
            return
        pending = self._pending[counter]
        while pending and self._issued[counter] - pending[0][1] >= count:
            self._covers[pending.popleft()[0]] = ordinal

    def _barrier(self, step: Step, trip: int, ordinal: int) -> None:
        self._barriers.append(ordinal)

    def _addressed(self, effect: Effect, ordinal: int) -> None:
        """A memory op uses the registers of its addresses, and a compiler keeps its result behind older ones."""
        for place in effect.reads:
            if place.space is not Space.LDS:
                self._used(place, ordinal)
        for place in effect.writes:
            older = self._loaded_by.get(place)
            if place.space is not Space.LDS and older is not None and self._counters[older] is not effect.counter:
                self._used(place, ordinal)

    def _start(self, effect: Effect, op: MemoryOp) -> None:
        index = len(self._memory)
        self._memory.append(op)
        for place in effect.writes:
            self._writes.setdefault(place, []).append(index)
            self._loaded_by[place] = index
        for place in effect.reads:
            self._reads.setdefault(place, []).append(index)
        counter = effect.counter
        self._counters.append(counter)
        self._issued[counter] += effect.tokens
        self._pending[counter].append((index, self._issued[counter]))

    def _fetched(self, step: Step, trip: int) -> int:
        if step.effect.instance is not None:  # its data isn't told by a K-tile
            return GARBAGE
        if step.effect.fetches is None:
            (place,) = step.effect.writes
            tile = self._fetches[place]
            self._fetches[place] += 1
        else:
            tile = self._loop.k_of(step.entry.phase, trip) + step.effect.fetches
        return tile if 0 <= tile < self._tiles else GARBAGE

    def _used(self, register: Place, ordinal: int) -> int | None:
        """The memory op that loaded `register` last; under compiler waits its use waits for it and all before it."""
        load = self._loaded_by.get(register)
        if load is None or not self._compiler_waits or load in self._covers:
            return load
        pending, covered = self._pending[self._counters[load]], None
        # The compiler's wait is a counted one, too, unless it is for the youngest op.
        if self._counters[load] in self._any_order and pending[-1][0] != load:
            return load
        while covered != load:
            covered, _ = pending.popleft()
            self._covers[covered] = ordinal
        return load
