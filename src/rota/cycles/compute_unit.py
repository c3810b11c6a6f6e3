"""The compute unit that the cycle model runs on: takes code and parameters, gives its state and how clocks are charged.

Causes go by number here, those of `Cause` first, then a wait for each counter.
"""

from __future__ import annotations

from collections.abc import Hashable
from enum import IntEnum
from heapq import heappush

from rota.cycles.gathering import Gathering
from rota.cycles.instructions import NOBODY, Code
from rota.cycles.measured_run import Crossed, Occupied, Stood
from rota.cycles.parameters import Arbitration, Parameters
from rota.cycles.steady_state import state_of
from rota.cycles.timeline import Cause, wait_for
from rota.cycles.wave_state import DmaLanding, ModelWave, tokens_of

_NUMBER = {cause: number for number, cause in enumerate(Cause)}
BARRIER, LDS_PORT, DMA_PATH = _NUMBER[Cause.BARRIER], _NUMBER[Cause.LDS_PORT], _NUMBER[Cause.DMA_PATH]
MMA_BUSY, VALU_BUSY, ISSUE = _NUMBER[Cause.MMA_BUSY], _NUMBER[Cause.VALU_BUSY], _NUMBER[Cause.ISSUE]
DEPENDENCY, COUNTER_FULL = _NUMBER[Cause.DEPENDENCY], _NUMBER[Cause.COUNTER_FULL]
FIRST_WAIT = len(_NUMBER)  # counters are numbered on top
_MULTIPLIER, _INCREMENT, _MODULUS = 1664525, 1013904223, 1 << 32  # Numerical Recipes' quick generator


class Steady(IntEnum):
    """How often the unit is in the same state at wave 0's edge when a run has settled.

    After the second time the clocks repeat; after the third the accounts too, since every wave has begun and ended the
    trips of the last period in it.
    """

    CLOCKS = 2
    ACCOUNTS = 3


class ComputeUnit:
    """Waves, what they have under way, when units are free, and the accounts."""

    def __init__(self, code: Code, parameters: Parameters, trips: int, record: bool, until: Steady | None) -> None:
        self.code = code
        self.p = parameters
        self.turn, simds = parameters.turn, parameters.simds
        self.trips = trips
        self.record = record
        self.until = None if parameters.dma_jitter else until
        self.causes = (*Cause, *(wait_for(counter.name) for counter in code.counters))
        self.waves = [
            ModelWave(
                number,
                number % simds,
                code.instructions[role],
                len(code.registers),
                tokens_of(code.counters, FIRST_WAIT),
            )
            for number, role in enumerate(code.roles)
        ]
        self.crowded = code.waves > simds
        self.fair = parameters.arbitration is Arbitration.FAIR
        self.register_causes = [
            DEPENDENCY if counter == NOBODY else FIRST_WAIT + counter for counter in code.register_counters
        ]
        self.heap: list[tuple[int, int, int, int]] = []
        self.landings: dict[int, DmaLanding] = {}
        self.turns = [[-1] * simds for _ in range(4)]
        if parameters.issue_classes == 1:
            self.turns = [self.turns[0]] * 4
        self.mma_free = [0] * simds
        self.valu_free = [0] * simds
        self.port_free = self.path_free = self.issued = 0
        self.next_landing = code.waves
        self.gatherings = [Gathering.at(point, code.waves) for point in code.barriers]
        self.live = code.waves
        self.random = parameters.seed
        self.states: dict[Hashable, list[int]] = {}
        self.period = 0
        self.settled = False
        self.occupied: list[Occupied] = []
        self.stood: list[Stood] = []
        self.crossed: list[Crossed] = []

    def _push(self, wave: ModelWave, time: int) -> None:
        heappush(self.heap, (time, -wave.priority, wave.last if self.fair else 0, wave.number))

    def _lose(self, wave: ModelWave, key: int, cause: int, start: int, end: int) -> None:
        """Charge a wave's lost clocks to an entry and a cause."""
        if end > start:
            lost, where = wave.lost, (key, cause)
            lost[where] = lost.get(where, 0) + end - start
            if cause != MMA_BUSY:
                wave.held_up.append((key, cause, start, end))
            if self.record:
                self.stood.append(Stood(wave.number, start, end, self.causes[cause], key, wave.trip))

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
        """Stop when the unit has been in the same state at wave 0's edge often enough."""
        units = (self.path_free, self.port_free, *self.mma_free, *self.valu_free)
        free = (*units, *(turn for turns in self.turns for turn in turns))
        state = state_of(time, self.waves, self.heap, self.landings, self.gatherings, free=free)
        seen = self.states.setdefault(state, [])
        seen.append(wave.trip)
        if len(seen) > 1:
            self.period = seen[-1] - seen[-2]
        self.settled = len(seen) == self.until
