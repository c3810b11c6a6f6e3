"""A loop written out for one trip count: takes its steps, gives the moments in order with barrier and token counts."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import NamedTuple

from rota.program.entry import Entry
from rota.program.kinds import OpKind
from rota.program.lowered import LoweredProgram
from rota.program.phase import Phase


class InsertionPoint(NamedTuple):
    """A place in the program where something can be inserted: in front of a phase's step `slot`, or at its end."""

    phase: Phase
    slot: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenOut:
    """Moment i executes `steps[i]`; the counts are those just before it.

    `epoch`: barriers that group 0 has passed; `spread`: how many barriers the last group lies behind it; `tokens`: all
    tokens issued so far per counter; `waits` and `barriers`: the moments at which every group executes one; `entered`:
    the moments at which a further run begins.
    """

    steps: tuple[Entry, ...]
    gaps: tuple[tuple[InsertionPoint, ...], ...]
    epoch: tuple[int, ...]
    spread: tuple[int, ...]
    tokens: dict[str, tuple[int, ...]]
    waits: dict[str, tuple[int, ...]]
    barriers: tuple[int, ...]
    entered: tuple[int, ...] = ()

    def waits_between(self, counter: str, earlier: int, later: int) -> tuple[int, ...]:
        """Moments of the waits on a counter that every group executes."""
        waits = self.waits[counter]
        return waits[bisect_left(waits, earlier) : bisect_left(waits, later)]

    def barriers_between(self, earlier: int, later: int) -> tuple[int, ...]:
        """Moments of the barriers that every group executes."""
        return self.barriers[bisect_left(self.barriers, earlier) : bisect_left(self.barriers, later)]


def written_out(program: LoweredProgram, *runs: int) -> WrittenOut:
    """For each run of so many trips: prologue, kernel as often as there are trips, epilogue."""
    sequence: list[Entry] = []
    gaps: list[tuple[InsertionPoint, ...]] = []
    ended: tuple[InsertionPoint, ...] = ()
    entered: list[int] = []
    phases = ((phase, trips if phase is Phase.KERNEL else 1) for trips in runs for phase in Phase)
    for phase, times in phases:
        if phase is Phase.PROLOGUE and sequence:
            entered.append(len(sequence))
        part = program.phase(phase)
        for _ in range(times):
            for index, step in enumerate(part):
                sequence.append(step)
                gaps.append((*ended, InsertionPoint(phase, index)))
                ended = ()
            ended = (*ended, InsertionPoint(phase, len(part)))
    epoch, spread = [0], [0]
    tokens: dict[str, list[int]] = {counter.name: [0] for counter in program.machine.counters}
    waits: dict[str, list[int]] = {counter.name: [] for counter in program.machine.counters}
    for moment, step in enumerate(sequence):
        effect = step.effect
        passes = effect.awaits is not None
        epoch.append(epoch[-1] + (passes and step.executed_by(0)))
        spread.append(spread[-1] + (passes and step.roles == (1,)) - (passes and step.roles == (0,)))
        if effect.kind is OpKind.WAIT and effect.counter is not None and step.roles is None:
            waits[effect.counter].append(moment)
        for counter, issued in tokens.items():
            issued.append(issued[-1] + (effect.tokens if effect.counter == counter else 0))
    return WrittenOut(
        steps=tuple(sequence),
        gaps=tuple(gaps),
        epoch=tuple(epoch),
        spread=tuple(spread),
        tokens={counter: tuple(counts) for counter, counts in tokens.items()},
        waits={counter: tuple(moments) for counter, moments in waits.items()},
        barriers=tuple(
            moment for moment, step in enumerate(sequence) if step.effect.awaits is not None and step.roles is None
        ),
        entered=tuple(entered),
    )
