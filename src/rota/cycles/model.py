"""The cycle model: takes a program's instructions and parameters, gives the trips of each wave, and its stalls.

One compute unit runs one workgroup.  Wave i is on SIMD i modulo the number of SIMDs; a SIMD has its turn once a slot,
in which it issues at most one instruction per class (MFMA and VALU, LDS, global memory, scalar), each from a different
wave, in the order of the wave's program.  An MFMA holds its SIMD's matrix unit for its passes; VALU ops run beside it.
All waves share one LDS port and one path to L2, both first come first served; what a DMA brings takes the port when it
arrives.  Memory ops of one counter complete in order, if the machine says so, and a full counter stops the wave.  The
n-th wait at a barrier ends when all waves that arrive there have done so n times.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush, heappushpop

from rota.cycles.compute_unit import (
    BARRIER,
    COUNTER_FULL,
    DMA_PATH,
    ISSUE,
    LDS_PORT,
    MMA_BUSY,
    VALU_BUSY,
    ComputeUnit,
    Steady,
)
from rota.cycles.gathering import Gathering, Sleeper, deadlock
from rota.cycles.instructions import CODE, EDGE, END, ENTER, NOBODY, SCALAR, Code, ModelInstruction
from rota.cycles.measured_run import Crossed, MeasuredRun, Occupied
from rota.cycles.parameters import Parameters
from rota.cycles.timeline import Lane
from rota.cycles.wave_state import DmaLanding, ModelWave, Tokens, Waiting
from rota.errors import ProgramError
from rota.program.kinds import OpKind, Unit

_MATH, _LDS, _GLOBAL, _SCALAR = range(4)
_ASLEEP = -1
_Handler = Callable[[ModelWave, ModelInstruction, int], int]


def run(
    code: Code, parameters: Parameters, *, trips: int, record: bool = False, until: Steady | None = None
) -> MeasuredRun:
    """Run `trips` trips; with `until` fewer, as soon as the state at the loop's edge has come so often."""
    return _Model(code, parameters, trips, record, until).run()


class _Model(ComputeUnit):
    """One handler per kind of instruction.

    A handler looks at a wave's next instruction at a turn of its SIMD.  It issues it and gives the next turn, or says
    when to look again, or puts the wave to sleep until another event wakes it.
    """

    def run(self) -> MeasuredRun:
        """Events in order of time; landings before waves, waves by priority, then as the arbiter says."""
        waves, heap, fair, first_landing = self.waves, self.heap, self.fair, len(self.waves)
        code, handlers = self.code, self._handlers()
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
            raise ProgramError(deadlock(code, self.gatherings))
        return MeasuredRun(
            edges=tuple(tuple(wave.edges) for wave in waves),
            lost=tuple(tuple(wave.trips) for wave in waves),
            idle=tuple(tuple(wave.idles) for wave in waves),
            end=max(wave.ended for wave in waves),
            issued=self.issued,
            causes=self.causes,
            period=self.period,
            occupied=tuple(self.occupied),
            stood=tuple(self.stood),
            crossed=tuple(self.crossed),
        )

    def _handlers(self) -> list[_Handler]:
        units: dict[Unit, _Handler] = {
            Unit.MMA: self._mfma,
            Unit.VALU: self._valu,
            Unit.LDS: self._lds,
            Unit.DMA: self._global,
        }
        special: dict[OpKind, _Handler] = {
            OpKind.TRANSCENDENTAL: self._transcendental,
            OpKind.WAIT: self._wait,
            OpKind.BARRIER: self._barrier,
            OpKind.PRIORITY: self._priority,
            OpKind.NOTHING: self._valu,
        }
        by_code: dict[int, _Handler] = {
            code: special.get(kind, units.get(kind.unit, self._scalar)) for kind, code in CODE.items()
        }
        by_code |= {SCALAR: self._scalar, ENTER: self._enter, EDGE: self._edge, END: self._end}
        return [by_code[code] for code in sorted(by_code)]

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
        for register in makes:
            wave.ready[register] = time + after
        if self.record:
            self.occupied.append(
                Occupied(wave.number, Lane.VALU, time, time, time + held, time + after, key, wave.trip)
            )
        wave.pc += 1
        return time + self.turn

    def _transcendental(self, wave: ModelWave, instruction: ModelInstruction, time: int) -> int:
        issued = wave.pc
        again = self._valu(wave, instruction, time)
        if wave.pc > issued:
            self.valu_free[wave.simd] = time + instruction.held
        return again

    def _held_up(self, unit: int, wave: ModelWave, tokens: Tokens, instruction: ModelInstruction, time: int) -> int:
        """Until when a memory op can't issue: its counter is full, an operand is missing, or it isn't its turn."""
        oldest = tokens.issued - tokens.holds
        if oldest >= 0 and (oldest >= len(tokens.done) or tokens.done[oldest] > time):
            return self._wait_until(wave, Waiting(tokens, oldest, time, instruction.key, full=True))
        key = instruction.key
        return self._operands(wave, instruction.needs, key, time) or self._turn(unit, wave, key, time)

    def _lds(self, wave: ModelWave, instruction: ModelInstruction, time: int) -> int:
        _, key, held, after, _, makes, counter = instruction
        tokens = wave.tokens[counter]
        until = self._held_up(_LDS, wave, tokens, instruction, time)
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
        until = self._held_up(_GLOBAL, wave, tokens, instruction, time)
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
            name = self.gatherings[arrives].name
            self.crossed.append(Crossed(wave.number, time, time, key, wave.trip, name, arrives=True, awaits=False))
        wave.pc += 1
        return time + self.turn

    def _release(self, gathering: Gathering, time: int) -> None:
        """Those whose meeting is complete continue."""
        for (wave, since, key, _, arrives), met in gathering.leaving(time):
            until = max(since + self.turn, met + max(self.p.barrier, self.turn))
            until += (wave.simd - until) % self.turn
            self._lose(wave, key, BARRIER, since + self.turn, until)
            if self.record:
                name = gathering.name
                self.crossed.append(Crossed(wave.number, since, until, key, wave.trip, name, arrives, awaits=True))
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
        wave.lost = {}
        wave.idle = {}
        wave.pc += 1
        wave.start = wave.pc
        return time

    def _edge(self, wave: ModelWave, _instruction: ModelInstruction, time: int) -> int:
        wave.edges.append(time)
        wave.next_trip()
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
