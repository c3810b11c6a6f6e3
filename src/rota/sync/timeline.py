"""A loop written out for one trip count: takes its steps, gives the moments in order with barrier and token counts."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import NamedTuple

from rota.declare.effects import Action, Counter
from rota.declare.vocabulary import Phase
from rota.program.loop import LoopSteps, Step


class Gap(NamedTuple):
    """A place in the program where something can be inserted: in front of a phase's step `slot`, or at its end."""

    phase: Phase
    slot: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Moment i executes `steps[i]`; the counts are those just before it.

    `epoch`: barriers that group 0 has passed; `spread`: how many barriers the last group lies behind it; `tokens`: all
    tokens issued so far per counter; `waits` and `barriers`: the moments at which every group executes one; `entered`:
    the moments at which a further run begins.
    """

    steps: tuple[Step, ...]
    gaps: tuple[tuple[Gap, ...], ...]
    epoch: tuple[int, ...]
    spread: tuple[int, ...]
    tokens: dict[Counter, tuple[int, ...]]
    waits: dict[Counter, tuple[int, ...]]
    barriers: tuple[int, ...]
    entered: tuple[int, ...] = ()

    def waits_between(self, counter: Counter, earlier: int, later: int) -> tuple[int, ...]:
        """Moments of the waits on a counter that every group executes."""
        waits = self.waits[counter]
        return waits[bisect_left(waits, earlier) : bisect_left(waits, later)]

    def barriers_between(self, earlier: int, later: int) -> tuple[int, ...]:
        """Moments of the barriers that every group executes."""
        return self.barriers[bisect_left(self.barriers, earlier) : bisect_left(self.barriers, later)]


def written_out(steps: LoopSteps, *runs: int) -> Timeline:
    """For each run of so many trips: prologue, kernel as often as there are trips, epilogue."""
    sequence: list[Step] = []
    gaps: list[tuple[Gap, ...]] = []
    ended: tuple[Gap, ...] = ()
    entered: list[int] = []
    phases = ((phase, trips if phase is Phase.KERNEL else 1) for trips in runs for phase in Phase)
    for phase, times in phases:
        if phase is Phase.PROLOGUE and sequence:
            entered.append(len(sequence))
        part = steps.phase(phase)
        for _ in range(times):
            for index, step in enumerate(part):
                sequence.append(step)
                gaps.append((*ended, Gap(phase, index)))
                ended = ()
            ended = (*ended, Gap(phase, len(part)))
    epoch, spread = [0], [0]
    tokens: dict[Counter, list[int]] = {counter: [0] for counter in Counter}
    waits: dict[Counter, list[int]] = {counter: [] for counter in Counter}
    for moment, step in enumerate(sequence):
        effect = step.effect
        passes = effect.action is Action.BARRIER
        epoch.append(epoch[-1] + (passes and step.group in (None, 0)))
        spread.append(spread[-1] + (passes and step.group == 1) - (passes and step.group == 0))
        if effect.action is Action.WAIT and effect.counter is not None and step.group is None:
            waits[effect.counter].append(moment)
        for counter, issued in tokens.items():
            issued.append(issued[-1] + (effect.tokens if effect.counter is counter else 0))
    return Timeline(
        steps=tuple(sequence),
        gaps=tuple(gaps),
        epoch=tuple(epoch),
        spread=tuple(spread),
        tokens={counter: tuple(counts) for counter, counts in tokens.items()},
        waits={counter: tuple(moments) for counter, moments in waits.items()},
        barriers=tuple(
            moment
            for moment, step in enumerate(sequence)
            if step.effect.action is Action.BARRIER and step.group is None
        ),
        entered=tuple(entered),
    )
