"""A quick estimate of a loop's clocks per trip, for any order of its entries.

The cycle model (`model`) runs every wave. A search that tries thousands of orders needs less: here one wave represents
all, and loads before the loop have landed when it begins. This ranks orders; the model decides how long a schedule
takes. The compiled core gives the same clocks as `WavePace`, faster.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from rota.cycles.instructions import CODE, SCALAR, Code, ModelInstruction, Parameters, write_loop
from rota.native_library import load
from rota.program.kinds import OpKind, Unit

MATH, LDS, GLOBAL, WAIT, TURNS = range(5)
"""Forms of a step."""
MATRIX, VECTOR = 0, 1
"""Math units."""

# One wave represents all: what they share, it holds as long as all of them together, and at a barrier it waits for the
# last SIMD's turn.
_FORMS = {Unit.MMA: MATH, Unit.VALU: MATH, Unit.LDS: LDS, Unit.DMA: GLOBAL}
_KINDS = tuple(OpKind)


class PaceStep(NamedTuple):
    """An instruction as in `ModelInstruction`, for all waves together; of turns `held` are their clocks.

    Math instructions are `times` equal ones, of which only the first may need something and the last makes something.
    """

    form: int
    held: int = 0
    after: int = 0
    needs: tuple[tuple[int, int], ...] = ()
    makes: tuple[int, ...] = ()
    place: int = 0  # the math unit or the counter
    times: int = 1


_TRIPS = 2  # ahead of the one that is taken; by then loads of the first have landed


class Trip(NamedTuple):
    """A trip's clocks, the entries that lose time of the matrix unit (of the wave if turns are scarce), and margins."""

    clocks: int
    late: tuple[int, ...]
    margins: tuple[int, ...]  # by place in the order: clocks until the matrix unit is free; below 0 since it is free


@dataclass(frozen=True, slots=True, kw_only=True)
class PacedLoop:
    """The entries of a kernel as steps, what a wave needs to know of its machine, and trips in any order of entries.

    Before a trip a wave settles: it runs through `ahead`, a part of the order's end, or twice through the whole order.
    """

    turn: int
    latency: int  # of a load
    edge: int  # clocks that the loop's edge takes
    fused_waits: bool
    turns_are_scarce: bool
    registers: int
    holds: tuple[int, ...]  # by counter; the last one counts nothing
    pending: tuple[int, ...]  # tokens that are taken when the loop begins
    entries: tuple[tuple[PaceStep, ...], ...]
    least: int  # clocks; no trip takes less
    _native: NativePace | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        core = library()
        object.__setattr__(self, "_native", None if core is None else NativePace(core, self))

    def settle(self, order: Sequence[int], ahead: Sequence[int] | None = None) -> WavePace:
        pace = WavePace(self)
        for trip in _settling(order, ahead):
            pace.trip(trip)
        return pace

    def clocks(self, order: Sequence[int], ahead: Sequence[int] | None = None) -> int:
        """Clocks of a trip through the entries in this order."""
        if self._native is not None:
            return self._native.clocks(order, _settling(order, ahead))
        pace = self.settle(order, ahead)
        start = pace.time
        pace.trip(order)
        return pace.time - start

    def trip(self, order: Sequence[int], ahead: Sequence[int] | None = None) -> Trip:
        """The same trip, entry by entry."""
        if self._native is not None:
            return self._native.trip(order, _settling(order, ahead))
        pace = self.settle(order, ahead)
        start, late, margins = pace.time, list[int](), list[int]()
        for entry in order:
            margins.append(pace.busy_yet(entry))
            late += [entry] if pace.issue(entry) else []
        return Trip(pace.time + self.edge - start, tuple(late), tuple(margins))


def _settling(order: Sequence[int], ahead: Sequence[int] | None) -> list[Sequence[int]]:
    return [order] * _TRIPS if ahead is None else [ahead]


def make_paced_loop(code: Code, parameters: Parameters) -> PacedLoop:
    """The kernel of a program whose waves all run the same entries."""
    written, reader = write_loop(code, 0), _Reader(code, parameters)
    holds = (*(counter.holds.value for counter in code.counters), 1 << 62)
    pending = [0] * len(holds)
    for step in reader.steps(written.before):
        if step.form in (LDS, GLOBAL):
            pending[step.place] += 1
    entries = tuple(tuple(reader.steps(each)) for each in written.entries)
    steps = [step for each in entries for step in each]
    turn, edge = parameters.turn, parameters.turn * parameters.loop_edge
    matrix = sum(step.held * step.times for step in steps if (step.form, step.place) == (MATH, MATRIX))
    turns = sum(step.held if step.form == TURNS else turn * step.times for step in steps) + edge
    path = sum(step.held for step in steps if step.form == GLOBAL)
    port = sum(step.held if step.form == LDS else step.after for step in steps if step.form in (LDS, GLOBAL))
    return PacedLoop(
        turn=turn,
        latency=parameters.dma_latency,
        edge=edge,
        fused_waits=code.fused_waits,
        turns_are_scarce=turns > matrix,
        registers=len(code.registers),
        holds=holds,
        pending=tuple(pending),
        entries=entries,
        least=max(turns, matrix, path, port),
    )


class _Reader:
    def __init__(self, code: Code, parameters: Parameters) -> None:
        self.turn, self.counters = parameters.turn, len(code.counters) + 1
        self.computed = [counter < 0 for counter in code.register_counters]
        self.waves, self.sharers = code.waves, -(-code.waves // parameters.simds)
        # A wave of the first SIMD leaves at its next turn after the last one's arrival and the barrier's own time; of
        # waves that share a matrix unit each arrives an instruction's time after the one before.
        longest = max((each.held for each in code.instructions[0] if each.kind == CODE[OpKind.MMA]), default=0)
        late = parameters.simds - 1 + longest * (self.sharers - 1)
        self.barrier = -(-(parameters.barrier + late) // self.turn) * self.turn

    def steps(self, instructions: Iterable[ModelInstruction]) -> Iterator[PaceStep]:
        """A run of equal math instructions is one step: an entry may have hundreds of them."""
        run: PaceStep | None = None
        for instruction in instructions:
            step = self._step(instruction)
            if run is None:
                run = step
            elif step._replace(makes=()) == run._replace(needs=(), times=1) and step.form == MATH:
                run = run._replace(makes=step.makes, times=run.times + 1)
            else:
                yield run
                run = step
        if run is not None:
            yield run

    def _step(self, instruction: ModelInstruction) -> PaceStep:
        kind = None if instruction.kind >= SCALAR else _KINDS[instruction.kind]
        _, _, held, after, needs, makes, counter = instruction
        counter %= self.counters  # what nothing counts is of the last
        if kind is OpKind.BARRIER:
            return PaceStep(TURNS, self.barrier)
        if kind is OpKind.WAIT:
            return PaceStep(WAIT, held, place=counter)
        if kind is None or (kind.unit not in _FORMS and kind is not OpKind.NOTHING):
            return PaceStep(TURNS, self.turn)
        computed = tuple(need for need in needs if self.computed[need[0]])  # waits see to the others
        form = _FORMS.get(kind.unit, MATH)
        if form == MATH:
            place = MATRIX if kind.unit is Unit.MMA else VECTOR
            return PaceStep(form, held * self.sharers, after, computed, makes, place)
        every = self.waves
        return PaceStep(form, held * every, after if form == LDS else after * every, computed, makes, counter)


class WavePace:
    """The running wave: the time, when units are free, registers ready and tokens given back."""

    def __init__(self, loop: PacedLoop) -> None:
        self._loop = loop
        self.time = self._port = self._path = 0
        self._waited = -1  # when the wave had last waited
        self._free, self._ready = [0, 0], [0] * loop.registers
        self._done, self._issued = [[0] * count for count in loop.pending], list(loop.pending)
        self._arriving: list[tuple[int, int, list[int]]] = []  # when, how long it holds the port, whose token it is
        self._issue = self._math, self._memory, self._memory, self._wait, self._turns  # by the step's form

    def trip(self, order: Sequence[int]) -> None:
        for entry in order:
            self.issue(entry)
        self.time += self._loop.edge

    def issue(self, entry: int) -> bool:
        """Issue the instructions of an entry; True if any of them is late."""
        issue, late = self._issue, False
        for step in self._loop.entries[entry]:
            late |= issue[step[0]](step)
        return late

    def stall(self, entry: int) -> int:
        """Clocks that the wave would stall before the first instruction of an entry if that came next."""
        time, step = self._reach(entry)
        if step is None:
            return 0
        form, held, _, needs, _, place, _ = step
        until = time
        if form == MATH:
            until = max(time, self._free[place])
        else:
            oldest = self._issued[place] - (held + 1 if form == WAIT else self._loop.holds[place])
            until = max(time, self._time_token(place, oldest))
        for register, extra in needs:
            until = max(until, self._ready[register] + extra)
        return until - time

    def busy_yet(self, entry: int) -> int:
        """Clocks until the matrix unit is free, when the wave reaches the first instruction of an entry."""
        return self._free[MATRIX] - self._reach(entry)[0]

    def _reach(self, entry: int) -> tuple[int, PaceStep | None]:
        """When the wave is at the first step of an entry that isn't mere turns, and that step."""
        time = self.time
        for step in self._loop.entries[entry]:
            if step.form != TURNS:
                return time, step
            time += step.held
        return time, None

    def _time_token(self, place: int, token: int) -> int:
        """When a token comes back; of a load that has not landed, when it would if the port were free."""
        tokens = self._done[place]
        if token < len(tokens):
            return tokens[token] if token >= 0 else 0
        in_flight = [arrival + busy for arrival, busy, whose in self._arriving if whose is tokens]
        return in_flight[token - len(tokens)]

    def _math(self, step: PaceStep) -> bool:
        """True if the wave stalled, or the unit was idle before a matrix instruction."""
        _, held, after, needs, makes, place, times = step
        free, ready, turn, time = self._free, self._ready, self._loop.turn, self.time
        until = free[place] if free[place] > time else time  # noqa: FURB136  # in the innermost loop, a call counts
        for register, extra in needs:
            until = max(until, ready[register] + extra)
        until += -until % turn
        waves_turn = place != MATRIX or self._loop.turns_are_scarce
        late = until > (time if waves_turn else free[place])
        if times > 1:
            every = max(held + -held % turn, turn)
            until += every * (times - 1)
            late = late or every > (turn if waves_turn else held)
        free[place] = until + held
        for register in makes:
            ready[register] = until + after
        self.time = until + turn
        return late

    def _wait(self, step: PaceStep) -> bool:
        """A wait directly after another is a field of the same instruction, where the machine has that."""
        _, held, _, _, _, place, _ = step
        if self.time == self._waited and self._loop.fused_waits:
            self.time -= self._loop.turn
        late = self._come_down(place, self._issued[place] - held - 1)
        self.time += self._loop.turn
        self._waited = self.time
        return late

    def _memory(self, step: PaceStep) -> bool:
        """An op needs room in its counter; what a load brings takes the port of LDS when it arrives."""
        form, held, after, needs, makes, place, _ = step
        late = self._come_down(place, self._issued[place] - self._loop.holds[place])
        time, ready = self.time, self._ready
        for register, extra in needs:
            time = max(time, ready[register] + extra)
        time += -time % self._loop.turn
        self._issued[place] += 1
        tokens = self._done[place]
        if form == LDS:
            self._port = max(self._port, time) + held
            finish = self._port + after
            tokens.append(max(finish, tokens[-1]) if tokens else finish)
        else:
            self._path = max(self._path, time) + held
            finish = self._path + self._loop.latency
            self._arriving.append((finish, after, tokens))
        for register in makes:
            ready[register] = finish
        self.time = time + self._loop.turn
        return late

    def _come_down(self, place: int, oldest: int) -> bool:
        """Wait until a token is given back; True if that takes time."""
        tokens, arriving = self._done[place], self._arriving
        while arriving and (arriving[0][0] <= self.time or oldest >= len(tokens)):
            arrival, busy, whose = arriving.pop(0)
            self._port = max(self._port, arrival) + busy
            whose.append(max(self._port, whose[-1]) if whose else self._port)
        if oldest < 0 or tokens[oldest] <= self.time:
            return False
        self.time = tokens[oldest] + -tokens[oldest] % self._loop.turn
        return True

    def _turns(self, step: PaceStep) -> bool:
        self.time += step.held
        return False


_POINTER: Final = ctypes.c_void_p
_TAKES = (*(_POINTER,) * 7, ctypes.c_int64, ctypes.c_int64, _POINTER, _POINTER)
_EDGE = -1  # in an order
_FAULTS: dict[int, type[Exception]] = {-(1 << 63): IndexError, 1 - (1 << 63): MemoryError, 2 - (1 << 63): IndexError}


@cache
def library() -> ctypes.CDLL | None:
    """The core that was built into the package, if any."""
    built = Path(__file__).parent / "native" / "lib" / "librota_pace.so"  # beside modules it would pass for one of them
    return load(built, {"rota_trip_clocks": (ctypes.c_int64, _TAKES)})


class NativePace:
    def __init__(self, core: ctypes.CDLL, loop: PacedLoop) -> None:
        self._run = core.rota_trip_clocks
        pool: list[int] = []
        steps, first = list[int](), [0]
        for entry in loop.entries:
            for step in entry:
                steps += _fields(step, pool)
            first.append(first[-1] + len(entry))
        head = (loop.turn, loop.latency, loop.edge, loop.fused_waits, loop.turns_are_scarce, loop.registers)
        given = ((*head, len(loop.holds), len(loop.entries)), steps, first, pool, loop.holds, loop.pending)
        self._arrays = [array("q", each) for each in given]  # only addresses go to the core, so these must stay
        self._addresses = [each.buffer_info()[0] for each in self._arrays]

    def clocks(self, order: Sequence[int], ahead: Iterable[Sequence[int]]) -> int:
        return self._trip(order, ahead, None, None)

    def trip(self, order: Sequence[int], ahead: Iterable[Sequence[int]]) -> Trip:
        late, margins = array("b", bytes(len(order) + 1)), array("q", bytes(8 * (len(order) + 1)))
        clocks = self._trip(order, ahead, late, margins)
        those = tuple(entry for entry, is_late in zip(order, late, strict=False) if is_late)
        return Trip(clocks, those, tuple(margins[:-1]))

    def _trip(
        self, order: Sequence[int], ahead: Iterable[Sequence[int]], late: array[int] | None, margins: array[int] | None
    ) -> int:
        whole = array("q")
        for each in (*ahead, order):
            whole.extend(each)
            whole.append(_EDGE)
        out = (None if each is None else each.buffer_info()[0] for each in (late, margins))
        clocks: int = self._run(*self._addresses, whole.buffer_info()[0], len(whole), len(order) + 1, *out)
        if clocks in _FAULTS:
            raise _FAULTS[clocks]
        return clocks


def _fields(step: PaceStep, pool: list[int]) -> tuple[int, ...]:
    """As `Step` in pace.c; registers go to the pool."""
    needs_at = len(pool)
    pool += [number for need in step.needs for number in need]
    makes_at = len(pool)
    pool += step.makes
    operands = needs_at, len(step.needs), makes_at, len(step.makes)
    return step.form, step.held, step.after, step.place, *operands, step.times
