"""The waves of a workgroup, and workgroups one after the other: takes them, runs them to their ends, or says why not.

A barrier opens when every wave that hasn't ended has arrived; which `s_barrier` a wave has arrived at, the machine
doesn't ask.  A workgroup that waits for another one, as kernels do that pass data from workgroup to workgroup, is put
aside until the others have run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rota.errors import Concern, Finding, IsaError, Severity, several
from rota.isa.launch.spin import state_of

if TYPE_CHECKING:
    from rota.isa.launch.interleaving import Driver
    from rota.isa.launch.kernarg import Triple
    from rota.isa.memory.global_memory import Memory
    from rota.isa.wave.step import Step
    from rota.isa.wave.wave import Faults, Wave

    Turn = Callable[[Wave, int | None], None]

MOST_ASIDE = 512
"""Workgroups that wait for others at once: about as many as a device holds."""


@dataclass(slots=True, kw_only=True, eq=False)
class WaveGroup:
    """Its waves, and what chooses between them."""

    number: int
    waves: list[Wave]
    driver: Driver
    steps: tuple[Step, ...]
    faults: Faults
    seen: set[bytes] = field(default_factory=set)  # states in which no wave could go on

    def run(self, turn: Turn, memory: Memory) -> bool:
        """Runs until all waves have ended; False if none of them can go on unless somebody else changes memory."""
        while runnable := self._runnable():
            awake = [number for number in runnable if not self.waves[number].spinning]
            if not awake:
                if not self._woken(memory):
                    return False
                continue
            number, turns = self.driver.turn(awake)
            wave = self.waves[number]
            for pending in (*wave.vm, *wave.ds, *wave.flat):
                if self.driver.between():
                    wave.land(pending)
            turn(wave, turns)
        self.count_barriers()
        return True

    def close(self, memory: Memory) -> None:
        """All waves have ended: what they did to memory can be judged."""
        memory.order.close(self.waves[0].workgroup)

    @property
    def executed(self) -> int:
        """Instructions of all waves together."""
        return sum(wave.executed for wave in self.waves)

    def moved(self, memory: Memory) -> bool:
        """Has anything changed since the workgroup was put aside?"""
        return state_of(self.waves, memory) not in self.seen

    def _woken(self, memory: Memory) -> bool:
        """Lets all waves look again, unless they did in this very state."""
        state = state_of(self.waves, memory)
        if state in self.seen:
            return False
        self.seen.add(state)
        for wave in self.waves:
            wave.spinning = False
        return True

    def _runnable(self) -> list[int]:
        """The waves that can go on."""
        alive = [wave for wave in self.waves if not wave.ended]
        if alive and all(wave.waiting for wave in alive):
            self.meet({wave.pc - 1: wave.number for wave in reversed(alive)})
            for wave in alive:
                wave.waiting = False
        return [wave.number for wave in alive if not wave.waiting]

    def meet(self, places: dict[int, int]) -> None:
        """Waves meet at the barriers of these numbers; of each, a wave that waits there."""
        if len(places) > 1:
            (here, wave), (there, other) = sorted(places.items())[:2]
            self.faults.add(
                "I121",
                self.steps[here].instruction,
                "a barrier opens for waves that wait at different s_barrier instructions",
                ("wave", wave),
                ("other wave", other),
                other=self.steps[there].instruction,
                severity=Severity.NOTE,
            )

    def count_barriers(self) -> None:
        """Tells of a wave that came to fewer barriers than another one; all of them have ended."""
        counts = [wave.epoch for wave in self.waves]
        fewest, most = (counts.index(count) for count in (min(counts), max(counts)))
        if counts[fewest] != counts[most]:
            wave = self.waves[fewest]
            self.faults.add(
                "I121",
                self.steps[wave.pc - 1].instruction,
                "a wave ends that came to fewer barriers than another one of its workgroup",
                ("wave", f"{wave.number}, {several(counts[fewest], 'barrier')}"),
                ("other wave", f"{most}, {several(counts[most], 'barrier')}"),
                severity=Severity.NOTE,
            )


def run_workgroups(
    places: Sequence[tuple[int, Triple]],
    make: Callable[[tuple[int, Triple]], WaveGroup],
    turn: Turn,
    memory: Memory,
    ended: Callable[[int], None],
) -> int:
    """Runs all workgroups and gives the number of instructions; `ended` is told how many have ended."""
    executed, done = 0, 0
    aside: list[WaveGroup] = []
    for place in places:
        group = make(place)
        if group.run(turn, memory):
            group.close(memory)
            done += 1
            executed += group.executed
            ended(done)
            continue
        aside.append(group)
        if len(aside) > MOST_ASIDE:
            raise _deadlock(group, len(aside))
    while aside:
        waiting = [group for group in aside if not (group.moved(memory) and group.run(turn, memory))]
        if len(waiting) == len(aside) and not any(group.moved(memory) for group in aside):
            raise _deadlock(aside[0], len(aside))
        for group in aside:
            if group not in waiting:
                group.close(memory)
                done += 1
                executed += group.executed
                ended(done)
        aside = waiting
    return executed


def _deadlock(group: WaveGroup, groups: int) -> IsaError:
    spinning = [wave for wave in group.waves if not wave.ended and not wave.waiting]
    waiting = [wave for wave in group.waves if wave.waiting]
    steps = group.steps
    places: dict[int, str] = {}
    for wave in (*spinning, *waiting):
        role = f"wave {wave.number} {'waits here' if wave.waiting else 'repeats from here'}"
        places.setdefault(wave.pc - wave.waiting, role)
    return IsaError(
        Finding(
            code="I108",
            message="the kernel can't end: a loop repeats in which nothing changes any more",
            concerns=tuple(
                Concern(label=steps[at].instruction.text, index=steps[at].instruction.line, role=role)
                for at, role in places.items()
            ),
            evidence=(
                ("workgroup", f"{group.number}, one of {groups} that can't go on" if groups > 1 else group.number),
                ("waves that repeat", ", ".join(str(wave.number) for wave in spinning)),
                *((("waves at a barrier", ", ".join(str(wave.number) for wave in waiting)),) if waiting else ()),
            ),
            fixes=("what the loop waits for must be written by a wave that still runs",),
        )
    )
