"""The cycle model: the trips of each wave, clock by clock, and what stalled them.

One compute unit runs one workgroup. Wave i is on SIMD i modulo the number of SIMDs. A SIMD has its turn once a slot, in
which it issues at most one instruction per class (MFMA and VALU, LDS, global memory, scalar), each from a different
wave, in the order of the wave's program. An MFMA holds its SIMD's matrix unit for its passes; VALU ops run beside it.
All waves share one LDS port and one path to L2, both first come first served; what a DMA brings takes the port when it
arrives. Memory ops of one counter complete in order, if the machine says so, and a full counter stops the wave. The
n-th wait at a barrier ends when all waves that arrive there have arrived n times.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from heapq import heappop, heappush, heappushpop
from itertools import takewhile
from typing import NamedTuple

from rota.cycles.instructions import CODE, NOBODY, Arbitration, Code, MeetingPoint, ModelInstruction, Parameters
from rota.cycles.timeline import At, Cause, Crossing, Lane, Lost, MeasuredRun, Occupied, Stall, wait_for
from rota.errors import ProgramError
from rota.program.kinds import OpKind, Unit
from rota.program.machine import Confidence, Counter, Fact

Queued = tuple[int, int]
"""How many clocks an op stood in a queue, and the number of the cause that this is."""


class Tokens:
    """One counter of one wave: when its tokens are given back, as far as that is known.

    `done` and `queued` go by the order in which the counter comes down: that of issue, or, where the machine keeps
    none, that of completion.  `landed` are tokens that are over while an older one isn't.  With `at_once` all that the
    counter tracks completes in order and is known to when it is issued, as LDS ops do.
    """

    __slots__ = ("at_once", "cause", "done", "holds", "in_order", "issued", "landed", "queued")

    def __init__(self, counter: Counter, cause: int) -> None:
        self.holds, self.in_order = counter.holds.value, counter.in_order
        self.at_once = counter.in_order and all(kind.unit is Unit.LDS for kind in counter.counts)
        self.cause, self.issued = cause, 0
        self.done: list[int] = []
        self.queued: list[Queued] = []
        self.landed: dict[int, tuple[int, Queued]] = {}

    def complete(self, token: int, done: int, queued: Queued) -> None:
        """A token's op is over at `done`; in order, the token is given back when all older ones are."""
        if not self.in_order:
            place = bisect_right(self.done, done)
            self.done.insert(place, done)
            self.queued.insert(place, queued)
            return
        self.landed[token] = done, queued
        while (following := self.landed.pop(len(self.done), None)) is not None:
            self.done.append(max(following[0], self.done[-1]) if self.done else following[0])
            self.queued.append(following[1])


_UNCOUNTED = Counter(
    name="uncounted",
    holds=Fact(1 << 62, "tokens", Confidence.DOCUMENTED, "what no counter tracks fills none"),
    counts=frozenset(),
    in_order=False,
)


_PAST = -256  # clocks; operands and turns look back far less


def _since(time: int, moments: Iterable[int]) -> tuple[int, ...]:
    """Moments counted from now; those too far back to matter are cut off."""
    return tuple(max(moment - time, _PAST) for moment in moments)


class Waiting(NamedTuple):
    """What a wave sleeps for: a token, by its place in the order in which the counter comes down."""

    tokens: Tokens
    token: int
    since: int
    key: int
    full: bool


@dataclass(slots=True, eq=False)
class ModelWave:
    """One wave: its position and what it has in flight. The last of its `tokens` are of ops that nothing counts."""

    number: int
    simd: int
    code: tuple[ModelInstruction, ...]
    ready: list[int]  # by register
    tokens: list[Tokens]
    pc: int = 0
    start: int = 0
    trip: int = 0
    priority: int = 0
    ended: int = 0
    last: int = -1
    waits_for: Waiting | None = None
    edges: list[int] = field(default_factory=list)
    lost: Lost = field(default_factory=dict)
    idle: Lost = field(default_factory=dict)
    trips: list[Lost] = field(default_factory=list)
    idles: list[Lost] = field(default_factory=list)
    held_up: list[tuple[int, int, int, int]] = field(default_factory=list)

    def blame(self, key: int, cause: int, start: int, end: int) -> None:
        """Blame stalls since the wave's last MFMA for idle time of the matrix unit; the late MFMA for the rest."""
        idle, rest = self.idle, end - start
        for each, why, begin, finish in self.held_up:
            shared = min(finish, end) - max(begin, start)
            if shared > 0:
                idle[each, why] = idle.get((each, why), 0) + shared
                rest -= shared
        if rest:
            idle[key, cause] = idle.get((key, cause), 0) + rest

    def in_flight(self, time: int) -> Iterable[Hashable]:
        """Registers, tokens that are still counted, and what the wave sleeps for."""
        yield _since(time, self.ready)
        for tokens in self.tokens:
            newest = zip(reversed(tokens.done), reversed(tokens.queued), strict=True)  # `done` never falls
            yield tuple((done - time, *late) for done, late in takewhile(lambda pair: pair[0] > time, newest))
            landed = tokens.landed.items()
            yield tuple(sorted((token - tokens.issued, done - time, *late) for token, (done, late) in landed))
        waiting = self.waits_for
        if waiting is not None:
            yield waiting.tokens.cause, waiting.token - waiting.tokens.issued, waiting.since - time


@dataclass(slots=True)
class DmaLanding:
    """A global memory op on its way: `late` counts the clocks it queued."""

    wave: ModelWave
    tokens: Tokens
    token: int
    key: int
    port: int
    late: int
    issued: int
    trip: int


class Sleeper(NamedTuple):
    """A wave that waits for the `meeting`-th time at a barrier; `arrives` if it arrived there with the same entry."""

    wave: ModelWave
    since: int
    key: int
    meeting: int
    arrives: bool


@dataclass(slots=True)
class Gathering:
    """One barrier: how often each wave has arrived and waited, and when each meeting was complete."""

    name: str
    awaited: set[int]  # those that still run; the n-th wait ends when all of them have arrived n times
    waiting: tuple[int, ...]
    arrivals: list[int]
    waits: list[int]
    complete: list[int] = field(default_factory=list)
    sleepers: list[Sleeper] = field(default_factory=list)

    @classmethod
    def at(cls, point: MeetingPoint, waves: int) -> Gathering:
        return cls(point.name, set(point.arriving), point.waiting, [0] * waves, [0] * waves)

    def arrive(self, wave: int, time: int) -> None:
        self.arrivals[wave] += 1
        if self.arrivals[wave] == len(self.complete) + 1:
            self._close(time)

    def leave(self, wave: int, time: int) -> None:
        self.awaited.discard(wave)
        self._close(time)

    def leaving(self, time: int) -> list[tuple[Sleeper, int]]:
        """Sleepers whose meeting is complete, and since when; with nobody left to wait for, all of them."""
        met = len(self.complete)
        if not self.sleepers or (self.awaited and min(each.meeting for each in self.sleepers) > met):
            return []
        free = [each for each in self.sleepers if each.meeting <= met or not self.awaited]
        self.sleepers = [each for each in self.sleepers if self.awaited and each.meeting > met]
        return [(each, self.complete[each.meeting - 1] if each.meeting <= met else time) for each in free]

    def state(self, time: int) -> Hashable:
        """Arrivals and waits, counted from the last complete meeting, and when those were that are still awaited."""
        met = len(self.complete)
        waits = tuple(self.waits[wave] - met for wave in self.waiting)
        lag = -min(waits, default=0)
        return (
            tuple(self.arrivals[wave] - met for wave in sorted(self.awaited)),
            waits,
            _since(time, self.complete[met - max(lag, 0) :]),
            tuple((each.wave.number, each.since - time, each.meeting - met) for each in self.sleepers),
        )

    def _close(self, time: int) -> None:
        arrivals = self.arrivals
        met = min([arrivals[wave] for wave in self.awaited], default=0)
        if met > len(self.complete):
            self.complete += [time] * (met - len(self.complete))


# Causes go by number here, those of `Cause` first, then a wait for each counter.

_NUMBER = {cause: number for number, cause in enumerate(Cause)}
BARRIER, LDS_PORT, DMA_PATH = _NUMBER[Cause.BARRIER], _NUMBER[Cause.LDS_PORT], _NUMBER[Cause.DMA_PATH]
MMA_BUSY, VALU_BUSY, ISSUE = _NUMBER[Cause.MMA_BUSY], _NUMBER[Cause.VALU_BUSY], _NUMBER[Cause.ISSUE]
DEPENDENCY, COUNTER_FULL = _NUMBER[Cause.DEPENDENCY], _NUMBER[Cause.COUNTER_FULL]
FIRST_WAIT = len(_NUMBER)  # counters are numbered on top
_MULTIPLIER, _INCREMENT, _MODULUS = 1664525, 1013904223, 1 << 32  # Numerical Recipes' quick generator


class Steady(IntEnum):
    """How often the unit is in the same state at wave 0's edge when a run has settled."""

    CLOCKS = 2  # from then on the clocks repeat
    ACCOUNTS = 3  # and the accounts, since every wave has begun and ended the trips of the last period in it


_MATH, _LDS, _GLOBAL, _SCALAR = range(4)
_ASLEEP = -1
_Handler = Callable[[ModelWave, ModelInstruction, int], int]


def run(
    code: Code, parameters: Parameters, *, trips: int, record: bool = False, until: Steady | None = None
) -> MeasuredRun:
    """Run `trips` trips; with `until` fewer, as soon as the state at the loop's edge has come so often."""
    return _Model(code, parameters, trips, record, until).run()


class _Model:
    """Waves, what they have in flight, when units are free, the accounts, and one handler per kind of instruction.

    A handler looks at a wave's next instruction at a turn of its SIMD.  It issues it and gives the next turn, or says
    when to look again, or puts the wave to sleep until another event wakes it.
    """

    def __init__(self, code: Code, parameters: Parameters, trips: int, record: bool, until: Steady | None) -> None:
        self.code, self.p, self.trips, self.record = code, parameters, trips, record
        self.turn, simds = parameters.turn, parameters.simds
        self.until = None if parameters.dma_jitter else until
        self.causes = (*Cause, *(wait_for(counter.name) for counter in code.counters))
        self.waves = []
        for number, role in enumerate(code.roles):
            # Causes of waits are numbered like the counters.
            tokens = [Tokens(each, FIRST_WAIT + n) for n, each in enumerate((*code.counters, _UNCOUNTED))]
            ready = [0] * len(code.registers)
            self.waves.append(ModelWave(number, number % simds, code.instructions[role], ready, tokens))
        self.crowded = code.waves > simds
        self.fair = parameters.arbitration is Arbitration.FAIR
        counters = code.register_counters
        self.register_causes = [DEPENDENCY if each == NOBODY else FIRST_WAIT + each for each in counters]
        self.heap: list[tuple[int, int, int, int]] = []
        self.landings: dict[int, DmaLanding] = {}
        self.turns = [[-1] * simds for _ in range(4)]
        if parameters.issue_classes == 1:
            self.turns = [self.turns[0]] * 4
        self.mma_free, self.valu_free = [0] * simds, [0] * simds
        self.port_free = self.path_free = self.issued = 0
        self.next_landing = code.waves
        self.gatherings = [Gathering.at(point, code.waves) for point in code.barriers]
        self.live, self.random, self.period, self.settled = code.waves, parameters.seed, 0, False
        self.states: dict[Hashable, list[int]] = {}
        self.occupied: list[Occupied] = []
        self.stalls: list[Stall] = []
        self.crossings: list[Crossing] = []

    def _push(self, wave: ModelWave, time: int) -> None:
        heappush(self.heap, (time, -wave.priority, wave.last if self.fair else 0, wave.number))

    def _lose(self, wave: ModelWave, key: int, cause: int, start: int, end: int) -> None:
        if end > start:
            lost, where = wave.lost, (key, cause)
            lost[where] = lost.get(where, 0) + end - start
            if cause != MMA_BUSY:
                wave.held_up.append((key, cause, start, end))
            if self.record:
                phase, slot, label = self.code.keys[key]
                at = At(phase, slot, wave.trip)
                self.stalls.append(Stall(wave.number, start, end, self.causes[cause], at, label))

    def _operands(self, wave: ModelWave, needs: tuple[tuple[int, int], ...], key: int, time: int) -> int:
        """When the operands are ready, charged; or 0, if they are."""
        until, cause = time, DEPENDENCY
        for register, extra in needs:
            if wave.ready[register] + extra > until:
                until, cause = wave.ready[register] + extra, self.register_causes[register]
        if until == time:
            return 0
        until += (wave.simd - until) % self.turn
        self._lose(wave, key, cause, time, until)
        return until

    def _turn(self, unit: int, wave: ModelWave, key: int, time: int) -> int:
        """Take this turn of a class; or the next turn, charged, if another wave has had this one."""
        turns = self.turns[unit]
        if turns[wave.simd] == time:
            self._lose(wave, key, ISSUE, time, time + self.turn)
            return time + self.turn
        turns[wave.simd] = time
        self.issued += 1
        return 0

    def _jitter(self) -> int:
        if not self.p.dma_jitter:
            return 0
        self.random = (self.random * _MULTIPLIER + _INCREMENT) % _MODULUS
        return self.random * (self.p.dma_jitter + 1) // _MODULUS

    def _look_for_period(self, wave: ModelWave, time: int) -> None:
        """Stop when the unit has been in the same state at wave 0's edge often enough: then the clocks repeat."""
        units = (self.path_free, self.port_free, *self.mma_free, *self.valu_free)
        free = (*units, *(turn for turns in self.turns for turn in turns))
        ages = {last: age for age, last in enumerate(sorted({each.last for each in self.waves}))}  # only their order
        coming: list[Hashable] = []
        for when, _, _, number in sorted(self.heap):
            what: Hashable = number
            if number >= len(self.waves):
                at = self.landings[number]
                what = at.wave.number, at.tokens.cause, at.token - at.tokens.issued, at.port, at.late
            coming.append((when - time, what))
        state = (
            _since(time, free),
            tuple(coming),
            tuple(gathering.state(time) for gathering in self.gatherings),
            tuple(
                (each.pc, each.trip - wave.trip, each.priority, ages[each.last], *each.in_flight(time))
                for each in self.waves
            ),
        )
        seen = self.states.setdefault(state, [])
        seen.append(wave.trip)
        if len(seen) > 1:
            self.period = seen[-1] - seen[-2]
        self.settled = len(seen) == self.until

    def run(self) -> MeasuredRun:
        """Events in order of time; landings before waves, waves by priority, then as the arbiter says."""
        waves, heap, fair, first_landing = self.waves, self.heap, self.fair, len(self.waves)
        handlers = self._handlers()
        for wave in waves:
            self._push(wave, wave.simd)
        while heap and not self.settled:
            event = heappop(heap)
            while True:
                time, _, _, number = event
                if number >= first_landing:
                    self._land(time, self.landings.pop(number))
                    break
                wave = waves[number]
                instruction = wave.code[wave.pc]
                again = handlers[instruction[0]](wave, instruction, time)
                if again < 0:
                    break
                event = heappushpop(heap, (again, -wave.priority, wave.last if fair else 0, number))  # as _push
        if self.live and not self.settled:
            raise self._report_deadlock()
        return MeasuredRun(
            edges=tuple(tuple(wave.edges) for wave in waves),
            lost=tuple(tuple(wave.trips) for wave in waves),
            idle=tuple(tuple(wave.idles) for wave in waves),
            end=max(wave.ended for wave in waves),
            issued=self.issued,
            causes=self.causes,
            period=self.period,
            occupied=tuple(self.occupied),
            stalls=tuple(self.stalls),
            crossings=tuple(self.crossings),
        )

    def _report_deadlock(self) -> ProgramError:
        asleep = [(gathering, each) for gathering in self.gatherings for each in gathering.sleepers]
        entries = {each.key: self.code.entries[each.key] for _, each in asleep}
        return ProgramError.of(
            "B101",
            f"{self.code.name}: waves wait at a barrier forever",
            concerns=tuple(entry.concern() for entry in entries.values() if entry is not None),
            evidence=tuple(
                (f"wave {each.wave.number} waits at", f"{at.name}, meeting {each.meeting}; {len(at.complete)} complete")
                for at, each in asleep
            ),
        )

    def _handlers(self) -> list[_Handler]:
        units: dict[Unit, _Handler]
        units = {Unit.MMA: self._mfma, Unit.VALU: self._valu, Unit.LDS: self._lds, Unit.DMA: self._global}
        special: dict[OpKind, _Handler] = {
            OpKind.WAIT: self._wait,
            OpKind.BARRIER: self._barrier,
            OpKind.PRIORITY: self._priority,
            OpKind.NOTHING: self._valu,
        }
        handlers = [special.get(kind, units.get(kind.unit, self._scalar)) for kind in CODE]  # which are in their order
        return [*handlers, self._scalar, self._enter, self._edge, self._end]

    def _mfma(self, wave: ModelWave, instruction: ModelInstruction, time: int) -> int:
        _, key, held, after, needs, makes, _ = instruction
        simd = wave.simd
        until, cause = self.mma_free[simd], MMA_BUSY
        ready = wave.ready
        for register, extra in needs:
            if ready[register] + extra > until:
                until, cause = ready[register] + extra, self.register_causes[register]
        if until <= time and self.turns[_MATH][simd] == time:
            until, cause = time + self.turn, ISSUE
        if until > time:
            until += (simd - until) % self.turn
            self._lose(wave, key, cause, time, until)
            if self.crowded:
                return until
            time = until  # no other wave of this SIMD can come between
        if time > self.mma_free[simd]:
            wave.blame(key, ISSUE, self.mma_free[simd], time)
        if wave.held_up:
            wave.held_up = []
        self.turns[_MATH][simd] = wave.last = time
        self.mma_free[simd] = time + held
        for register in makes:
            ready[register] = time + after
        if self.record:
            self.occupied.append(Occupied(wave.number, Lane.MMA, time, time, time + held, time + after, key, wave.trip))
        self.issued += 1
        wave.pc += 1
        return time + self.turn

    def _valu(self, wave: ModelWave, instruction: ModelInstruction, time: int) -> int:
        _, key, held, after, needs, makes, _ = instruction
        until = self._operands(wave, needs, key, time)
        if until:
            return until
        if self.valu_free[wave.simd] > time:
            self._lose(wave, key, VALU_BUSY, time, self.valu_free[wave.simd])
            return self.valu_free[wave.simd]
        until = self._turn(_MATH, wave, key, time)
        if until:
            return until
        wave.last = time
        if held > self.turn:
            self.valu_free[wave.simd] = time + held
        for register in makes:
            wave.ready[register] = time + after
        if self.record:
            times = time, time, time + held, time + after
            self.occupied.append(Occupied(wave.number, Lane.VALU, *times, key, wave.trip))
        wave.pc += 1
        return time + self.turn

    def _delay_issue(self, unit: int, wave: ModelWave, tokens: Tokens, instruction: ModelInstruction, time: int) -> int:
        """Until when a memory op can't issue: its counter is full, an operand is missing, or it isn't its turn."""
        oldest = tokens.issued - tokens.holds
        if oldest >= 0 and (oldest >= len(tokens.done) or tokens.done[oldest] > time):
            return self._wait_until(wave, Waiting(tokens, oldest, time, instruction.key, full=True))
        key = instruction.key
        return self._operands(wave, instruction.needs, key, time) or self._turn(unit, wave, key, time)

    def _lds(self, wave: ModelWave, instruction: ModelInstruction, time: int) -> int:
        _, key, held, after, _, makes, counter = instruction
        tokens = wave.tokens[counter]
        until = self._delay_issue(_LDS, wave, tokens, instruction, time)
        if until:
            return until
        start = max(time, self.port_free)
        self.port_free = start + held
        finish = start + held + after  # the port is first come first served and reads and writes take as long: in order
        queued = start - time, LDS_PORT
        if tokens.at_once:
            tokens.done.append(finish)
            tokens.queued.append(queued)
        else:
            tokens.complete(tokens.issued, finish, queued)
        tokens.issued += 1
        for register in makes:
            wave.ready[register] = finish
        if self.record:
            self.occupied.append(Occupied(wave.number, Lane.LDS, time, start, start + held, finish, key, wave.trip))
        wave.pc += 1
        return time + self.turn

    def _global(self, wave: ModelWave, instruction: ModelInstruction, time: int) -> int:
        _, key, held, after, _, makes, counter = instruction
        tokens = wave.tokens[counter]
        until = self._delay_issue(_GLOBAL, wave, tokens, instruction, time)
        if until:
            return until
        start = max(time, self.path_free)
        self.path_free = start + held
        arrival = self.path_free + self.p.dma_latency + self._jitter()
        number, self.next_landing = self.next_landing, self.next_landing + 1
        self.landings[number] = DmaLanding(wave, tokens, tokens.issued, key, after, start - time, time, wave.trip)
        heappush(self.heap, (arrival, -8, number, number))
        for register in makes:
            wave.ready[register] = arrival
        tokens.issued += 1
        wave.pc += 1
        return time + self.turn

    def _land(self, time: int, landing: DmaLanding) -> None:
        """Data arrives; a DMA takes the LDS port.  Of an ordered counter, tokens come back in the order of issue."""
        wave, tokens, start = landing.wave, landing.tokens, time
        if landing.port:
            start = max(time, self.port_free)
            self.port_free = start + landing.port
        done = start + landing.port
        if self.record:
            number, key, issued, trip = wave.number, landing.key, landing.issued, landing.trip
            self.occupied.append(Occupied(number, Lane.GLOBAL, issued, issued, done, done, key, trip))
            if landing.port:
                self.occupied.append(Occupied(number, Lane.LDS, issued, start, done, done, key, trip))
        tokens.complete(landing.token, done, (landing.late + start - time, DMA_PATH))
        waiting = wave.waits_for
        if waiting is not None and waiting.tokens is tokens and waiting.token < len(tokens.done):
            self._push(wave, self._wait_until(wave, waiting))

    def _wait_until(self, wave: ModelWave, waiting: Waiting) -> int:
        """When a token is given back, charged; or sleep, if that is not known yet."""
        tokens, token, since, key, full = waiting
        if token >= len(tokens.done):
            wave.waits_for = waiting
            return _ASLEEP
        wave.waits_for = None
        until = tokens.done[token]
        until += (wave.simd - until) % self.turn
        if full:
            self._lose(wave, key, COUNTER_FULL, since, until)
            return until
        late, queue = tokens.queued[token]
        late = min(until - since, late)
        self._lose(wave, key, tokens.cause, since, until - late)
        self._lose(wave, key, queue, until - late, until)
        return until

    def _wait(self, wave: ModelWave, instruction: ModelInstruction, time: int) -> int:
        tokens = wave.tokens[instruction.counter]
        token = tokens.issued - instruction.held - 1
        if token >= 0 and (token >= len(tokens.done) or tokens.done[token] > time):
            return self._wait_until(wave, Waiting(tokens, token, time, instruction.key, full=False))
        wave.pc += 1
        if self.code.fused_waits and wave.code[wave.pc].kind == instruction.kind:
            return time  # the next is a field of the same instruction
        self.issued += 1
        return time + self.turn

    def _barrier(self, wave: ModelWave, instruction: ModelInstruction, time: int) -> int:
        _, key, arrives, awaits, _, _, _ = instruction
        self.issued += 1
        if arrives != NOBODY:
            self.gatherings[arrives].arrive(wave.number, time)
        if awaits != NOBODY:
            gathering = self.gatherings[awaits]
            gathering.waits[wave.number] += 1
            meeting = gathering.waits[wave.number]
            gathering.sleepers.append(Sleeper(wave, time, key, meeting, arrives == awaits))
        if arrives != NOBODY:
            self._release(self.gatherings[arrives], time)
        if awaits not in (arrives, NOBODY):
            self._release(self.gatherings[awaits], time)
        if awaits != NOBODY:
            return _ASLEEP
        if self.record:
            at, name = At(*self.code.keys[key][:2], wave.trip), self.gatherings[arrives].name
            self.crossings.append(Crossing(wave.number, time, time, at, name, awaits=False))
        wave.pc += 1
        return time + self.turn

    def _release(self, gathering: Gathering, time: int) -> None:
        for (wave, since, key, _, arrives), met in gathering.leaving(time):
            until = max(since + self.turn, met + max(self.p.barrier, self.turn))
            until += (wave.simd - until) % self.turn
            self._lose(wave, key, BARRIER, since + self.turn, until)
            if self.record:
                at = At(*self.code.keys[key][:2], wave.trip)
                self.crossings.append(Crossing(wave.number, since, until, at, gathering.name, arrives))
            wave.pc += 1
            self._push(wave, until)

    def _priority(self, wave: ModelWave, instruction: ModelInstruction, time: int) -> int:
        wave.priority = instruction.held
        self.issued += 1
        wave.pc += 1
        return time + self.turn

    def _scalar(self, wave: ModelWave, instruction: ModelInstruction, time: int) -> int:
        until = self._turn(_SCALAR, wave, instruction.key, time)
        if until:
            return until
        wave.pc += 1
        return time + self.turn

    def _enter(self, wave: ModelWave, _instruction: ModelInstruction, time: int) -> int:
        wave.edges.append(time)
        wave.lost, wave.idle = {}, {}
        wave.pc += 1
        wave.start = wave.pc
        return time

    def _edge(self, wave: ModelWave, _instruction: ModelInstruction, time: int) -> int:
        wave.edges.append(time)
        wave.trips.append(wave.lost)
        wave.idles.append(wave.idle)
        wave.lost, wave.idle = {}, {}
        if wave.trip + 1 < self.trips:
            wave.trip += 1
            wave.pc = wave.start
        else:
            wave.pc += 1
        if wave.number == 0 and self.until is not None:
            self._look_for_period(wave, time)
        return _ASLEEP if self.settled else time + self.turn * self.p.loop_edge

    def _end(self, wave: ModelWave, _instruction: ModelInstruction, time: int) -> int:
        wave.ended = time
        self.live -= 1
        for gathering in self.gatherings:
            gathering.leave(wave.number, time)
            self._release(gathering, time)
        return _ASLEEP
