"""The cycle model: takes a loop's instructions and parameters, gives when each wave went round and what it waited for.

One compute unit runs one workgroup.  Waves i and i + 4 share SIMD i; a SIMD has its turn every 4 clocks, in which it
issues at most one instruction per class (MFMA and VALU, LDS, global memory, scalar), each from a different wave, in the
order of the wave's program.  An MFMA holds its SIMD's matrix unit for its passes; VALU ops run beside it.  All waves
share one LDS port and one path from L2, both first come first served; what a DMA brings takes the port when it arrives.
Memory ops of one counter complete in order, and a full counter stops the wave.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from heapq import heappop, heappush, heappushpop

from rota.program.timeline import Cause, Lane
from rota.simulate.instructions import Code, Instruction, Kind
from rota.simulate.parameters import Arbitration, Parameters
from rota.simulate.run import Crossed, Occupied, Run, Stood
from rota.simulate.steady import state_of
from rota.simulate.wave import Landing, Wave
from rota.targets.rates import CLOCKS_PER_SLOT, SIMDS

CAUSES = tuple(Cause)
_CODE = {cause: number for number, cause in enumerate(CAUSES)}
_VMCNT, _LGKMCNT, _BARRIER = _CODE[Cause.VMCNT], _CODE[Cause.LGKMCNT], _CODE[Cause.BARRIER]
_PORT, _PATH, _ISSUE = _CODE[Cause.LDS_PORT], _CODE[Cause.DMA_PATH], _CODE[Cause.ISSUE]
_BUSY, _DEPENDENCY, _FULL = _CODE[Cause.MMA_BUSY], _CODE[Cause.DEPENDENCY], _CODE[Cause.COUNTER_FULL]
_OF_PRODUCER = {Kind.LDS_READ: _LGKMCNT, Kind.GLOBAL_TO_REGISTER: _VMCNT}
_MATH, _LDS, _GLOBAL, _SCALAR = range(4)
_ASLEEP = -1
_TURN = CLOCKS_PER_SLOT
_TIMES = 3
_MULTIPLIER, _INCREMENT, _MODULUS = 1664525, 1013904223, 1 << 32  # Numerical Recipes' quick generator


def run(code: Code, parameters: Parameters, *, trips: int, record: bool = False, until_steady: bool = False) -> Run:
    """Run `trips` trips; with `until_steady` fewer, as soon as the state at the loop's edge repeats."""
    return _Unit(code, parameters, trips, record, until_steady).run()


class _Unit:
    """The compute unit's state, and one handler per kind of instruction.

    A handler looks at a wave's next instruction at a turn of its SIMD.  It issues it and gives the next turn, or says
    when to look again, or puts the wave to sleep until somebody else wakes it.
    """

    def __init__(self, code: Code, parameters: Parameters, trips: int, record: bool, until_steady: bool) -> None:
        self.code = code
        self.p = parameters
        self.trips = trips
        self.record = record
        self.until_steady = until_steady and not parameters.dma_jitter
        self.waves = [
            Wave(number, code.instructions[group], len(code.registers)) for number, group in enumerate(code.groups)
        ]
        self.crowded = code.waves > SIMDS
        self.fair = parameters.arbitration is Arbitration.FAIR
        self.causes = [_OF_PRODUCER.get(Kind(kind), _DEPENDENCY) for kind in code.register_kinds]
        self.heap: list[tuple[int, int, int, int]] = []
        self.landings: dict[int, Landing] = {}
        self.turns = [[-1] * SIMDS for _ in range(4)]
        if parameters.issue_classes == 1:
            self.turns = [self.turns[0]] * 4
        self.mma_free = [0] * SIMDS
        self.port_free = self.path_free = self.issued = 0
        self.next_landing = code.waves
        self.arrived: list[tuple[Wave, int, int]] = []
        self.live = code.waves
        self.random = parameters.seed
        self.states: dict[Hashable, list[int]] = {}
        self.period = 0
        self.occupied: list[Occupied] = []
        self.stood: list[Stood] = []
        self.crossed: list[Crossed] = []

    def run(self) -> Run:
        """Events in order of time; landings before waves, waves by priority, then as the arbiter says."""
        waves, heap, fair, first_landing = self.waves, self.heap, self.fair, len(self.waves)
        handlers = self._handlers()
        for wave in waves:
            self._push(wave, wave.simd)
        while heap and not self.period:
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
        return Run(
            edges=tuple(tuple(wave.edges) for wave in waves),
            lost=tuple(tuple(wave.trips) for wave in waves),
            idle=tuple(tuple(wave.idles) for wave in waves),
            end=max(wave.ended for wave in waves),
            issued=self.issued,
            period=self.period,
            occupied=tuple(self.occupied),
            stood=tuple(self.stood),
            crossed=tuple(self.crossed),
        )

    def _push(self, wave: Wave, time: int) -> None:
        heappush(self.heap, (time, -wave.priority, wave.last if self.fair else 0, wave.number))

    def _handlers(self) -> list[Callable[[Wave, Instruction, int], int]]:
        table = {
            Kind.MFMA: self._mfma,
            Kind.VALU: self._valu,
            Kind.LDS_READ: self._lds,
            Kind.LDS_WRITE: self._lds,
            Kind.DMA: self._global,
            Kind.GLOBAL_TO_REGISTER: self._global,
            Kind.WAIT_VM: self._wait_vm,
            Kind.WAIT_LGKM: self._wait_lgkm,
            Kind.BARRIER: self._barrier,
            Kind.PRIORITY: self._priority,
            Kind.SCALAR: self._scalar,
            Kind.ENTER: self._enter,
            Kind.EDGE: self._edge,
            Kind.END: self._end,
        }
        return [table[kind] for kind in Kind]

    def _lose(self, wave: Wave, key: int, cause: int, start: int, end: int) -> None:
        """Charge a wave's lost clocks to an entry and a cause."""
        if end > start:
            lost, where = wave.lost, (key, cause)
            lost[where] = lost.get(where, 0) + end - start
            if cause != _BUSY:
                wave.held_up.append((key, cause, start, end))
            if self.record:
                self.stood.append(Stood(wave.number, start, end, CAUSES[cause], key, wave.trip))

    def _mfma(self, wave: Wave, instruction: Instruction, time: int) -> int:
        _, key, held, after, needs, makes = instruction
        simd = wave.simd
        until, cause = self.mma_free[simd], _BUSY
        ready = wave.ready
        for register, extra in needs:
            if ready[register] + extra > until:
                until, cause = ready[register] + extra, self.causes[register]
        if until <= time and self.turns[_MATH][simd] == time:
            until, cause = time + _TURN, _ISSUE
        if until > time:
            until += (simd - until) % _TURN
            self._lose(wave, key, cause, time, until)
            if self.crowded:
                return until
            time = until  # nobody else of this SIMD can come between
        if time > self.mma_free[simd]:
            wave.blame(key, _ISSUE, self.mma_free[simd], time)
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
        return time + _TURN

    def _valu(self, wave: Wave, instruction: Instruction, time: int) -> int:
        _, key, held, after, needs, makes = instruction
        until = self._operands(wave, needs, key, time) or self._turn(_MATH, wave, key, time)
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
        return time + _TURN

    def _lds(self, wave: Wave, instruction: Instruction, time: int) -> int:
        _, key, held, after, needs, makes = instruction
        done = wave.lds_done
        full = len(done) - self.p.lgkm_tokens
        if full >= 0 and done[full] > time:
            until = done[full] + (wave.simd - done[full]) % _TURN
            self._lose(wave, key, _FULL, time, until)
            return until
        until = self._operands(wave, needs, key, time) or self._turn(_LDS, wave, key, time)
        if until:
            return until
        start = max(time, self.port_free)
        self.port_free = start + held
        finish = start + held + after  # the port is first come first served and reads and writes take as long: in order
        done.append(finish)
        wave.lds_late.append(start - time)
        for register in makes:
            wave.ready[register] = finish
        if self.record:
            self.occupied.append(Occupied(wave.number, Lane.LDS, time, start, start + held, finish, key, wave.trip))
        wave.pc += 1
        return time + _TURN

    def _global(self, wave: Wave, instruction: Instruction, time: int) -> int:
        kind, key, held, after, needs, makes = instruction
        if self._sleeps(wave, wave.vm_issued - self.p.vm_tokens, key, time, full=True):
            return self._wake_time(wave, time)
        until = self._operands(wave, needs, key, time) or self._turn(_GLOBAL, wave, key, time)
        if until:
            return until
        start = max(time, self.path_free)
        self.path_free = start + held
        arrival = self.path_free + self.p.dma_latency + self._jitter()
        number, self.next_landing = self.next_landing, self.next_landing + 1
        port = after if kind == Kind.DMA else 0
        self.landings[number] = Landing(wave, wave.vm_issued, key, port, start - time, time, wave.trip)
        heappush(self.heap, (arrival, -8, number, number))
        for register in makes:
            wave.ready[register] = arrival
        wave.vm_issued += 1
        wave.pc += 1
        return time + _TURN

    def _land(self, time: int, landing: Landing) -> None:
        """Data arrives; a DMA takes the LDS port.  Tokens complete in order, whatever order the data comes in."""
        wave, start = landing.wave, time
        if landing.port:
            start = max(time, self.port_free)
            self.port_free = start + landing.port
        done = start + landing.port
        if self.record:
            number, key, issued, trip = wave.number, landing.key, landing.issued, landing.trip
            self.occupied.append(Occupied(number, Lane.GLOBAL, issued, issued, done, done, key, trip))
            if landing.port:
                self.occupied.append(Occupied(number, Lane.LDS, issued, start, done, done, key, trip))
        wave.vm_landed[landing.token] = done, landing.late + start - time
        while (following := wave.vm_landed.pop(len(wave.vm_done), None)) is not None:
            done, late = following
            wave.vm_done.append(max(done, wave.vm_done[-1]) if wave.vm_done else done)
            wave.vm_late.append(late)
        if wave.waits_for is not None and wave.waits_for[0] < len(wave.vm_done):
            again = self._wake_time(wave, wave.waits_for[1])
            self._push(wave, again)

    def _sleeps(self, wave: Wave, token: int, key: int, time: int, *, full: bool) -> bool:
        """Must the wave wait for that token?  Then it is noted."""
        if token < 0 or (token < len(wave.vm_done) and wave.vm_done[token] <= time):
            return False
        wave.waits_for = token, time, key, full
        return True

    def _wake_time(self, wave: Wave, time: int) -> int:
        """When a noted wait ends, charged; or sleep, if the data has not arrived."""
        if wave.waits_for is None or wave.waits_for[0] >= len(wave.vm_done):
            return _ASLEEP
        token, _, key, full = wave.waits_for
        wave.waits_for = None
        until = wave.vm_done[token]
        until += (wave.simd - until) % _TURN
        queued = min(until - time, wave.vm_late[token])
        self._lose(wave, key, _FULL if full else _VMCNT, time, until - (0 if full else queued))
        if not full:
            self._lose(wave, key, _PATH, until - queued, until)
        return until

    def _wait_vm(self, wave: Wave, instruction: Instruction, time: int) -> int:
        if self._sleeps(wave, wave.vm_issued - instruction.held - 1, instruction.key, time, full=False):
            return self._wake_time(wave, time)
        self.issued += 1
        wave.pc += 1
        return time + _TURN

    def _wait_lgkm(self, wave: Wave, instruction: Instruction, time: int) -> int:
        token = len(wave.lds_done) - instruction.held - 1
        if token >= 0 and wave.lds_done[token] > time:
            until = wave.lds_done[token]
            until += (wave.simd - until) % _TURN
            queued = min(until - time, wave.lds_late[token])
            self._lose(wave, instruction.key, _LGKMCNT, time, until - queued)
            self._lose(wave, instruction.key, _PORT, until - queued, until)
            return until
        self.issued += 1
        wave.pc += 1
        return time + _TURN

    def _barrier(self, wave: Wave, instruction: Instruction, time: int) -> int:
        self.arrived.append((wave, time, instruction.key))
        self.issued += 1
        self._release(time)
        return _ASLEEP

    def _release(self, time: int) -> None:
        """All that are still running have arrived: they go on together."""
        if len(self.arrived) < self.live:
            return
        for wave, arrival, key in self.arrived:
            until = time + max(self.p.barrier, _TURN)
            until += (wave.simd - until) % _TURN
            self._lose(wave, key, _BARRIER, arrival + _TURN, until)
            if self.record:
                self.crossed.append(Crossed(wave.number, arrival, until, key, wave.trip))
            wave.pc += 1
            self._push(wave, until)
        self.arrived = []

    def _priority(self, wave: Wave, instruction: Instruction, time: int) -> int:
        wave.priority = instruction.held
        self.issued += 1
        wave.pc += 1
        return time + _TURN

    def _scalar(self, wave: Wave, instruction: Instruction, time: int) -> int:
        until = self._turn(_SCALAR, wave, instruction.key, time)
        if until:
            return until
        wave.pc += 1
        return time + _TURN

    def _enter(self, wave: Wave, _: Instruction, time: int) -> int:
        wave.edges.append(time)
        wave.lost = {}
        wave.idle = {}
        wave.pc += 1
        wave.start = wave.pc
        return time

    def _edge(self, wave: Wave, _: Instruction, time: int) -> int:
        wave.edges.append(time)
        wave.next_trip()
        if wave.trip + 1 < self.trips:
            wave.trip += 1
            wave.pc = wave.start
        else:
            wave.pc += 1
        if wave.number == 0 and self.until_steady:
            self._look_for_period(wave, time)
        return _ASLEEP if self.period else time + _TURN * self.p.loop_edge

    def _end(self, wave: Wave, _: Instruction, time: int) -> int:
        wave.ended = time
        self.live -= 1
        if self.arrived:
            self._release(time)
        return _ASLEEP

    def _operands(self, wave: Wave, needs: tuple[tuple[int, int], ...], key: int, time: int) -> int:
        """When the operands are ready, charged; or 0, if they are."""
        until, cause = time, _DEPENDENCY
        for register, extra in needs:
            if wave.ready[register] + extra > until:
                until, cause = wave.ready[register] + extra, self.causes[register]
        if until == time:
            return 0
        until += (wave.simd - until) % _TURN
        self._lose(wave, key, cause, time, until)
        return until

    def _turn(self, unit: int, wave: Wave, key: int, time: int) -> int:
        """Take this turn of a class; or the next turn, charged, if another wave has had this one."""
        turns = self.turns[unit]
        if turns[wave.simd] == time:
            self._lose(wave, key, _ISSUE, time, time + _TURN)
            return time + _TURN
        turns[wave.simd] = time
        self.issued += 1
        return 0

    def _jitter(self) -> int:
        if not self.p.dma_jitter:
            return 0
        self.random = (self.random * _MULTIPLIER + _INCREMENT) % _MODULUS
        return self.random * (self.p.dma_jitter + 1) // _MODULUS

    def _look_for_period(self, wave: Wave, time: int) -> None:
        """Stop when the unit is in the same state at wave 0's edge for the third time.

        After the second the clocks repeat; after the third the books too, since every wave has begun and ended the
        trips of the last period in it.
        """
        free = (self.path_free, self.port_free, *self.mma_free, *(turn for turns in self.turns for turn in turns))
        seen = self.states.setdefault(state_of(time, self.waves, self.heap, self.landings, self.arrived, free=free), [])
        seen.append(wave.trip)
        if len(seen) == _TIMES:
            self.period = seen[-1] - seen[-2]
