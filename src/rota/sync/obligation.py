"""What must be over before what: takes a loop's steps, gives the obligations that its waits and barriers leave open.

Derived from the steps alone and without the proof, which checks the result afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from rota.declare.effects import Action, Counter, Effect, Place, Space
from rota.program.entry import ScheduleEntry
from rota.program.loop import LoopSteps, Step
from rota.sync.timeline import Timeline, written_out
from rota.targets.machine import Machine

_EXPLICIT_TRIPS = (0, 1, 2, 3)  # a tile's successive accesses lie at most two trips apart


class _Conflict(NamedTuple):
    """Two moments of one timeline; `crosses` if the later op may belong to another wave."""

    earlier: int
    later: int
    crosses: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Obligation:
    """The op at moment `earlier` must be over before the one at `later` issues.

    Over means: covered by a wait of its own wave; if it `crosses` waves, with as many barriers behind that wait as
    bring every other wave past it.  `compiler_covers` is the moment, if any, at which the compiler itself waits for it.
    """

    timeline: Timeline
    earlier: int
    later: int
    crosses: bool
    counter: Counter
    compiler_covers: int | None

    @property
    def ends(self) -> tuple[Step, Step]:
        """The two steps."""
        return self.timeline.steps[self.earlier], self.timeline.steps[self.later]

    def barriers_needed(self, moment: int) -> int:
        """Barriers that must follow a wait at `moment`: one, and one more for each that the groups lie apart."""
        spread = self.timeline.spread
        return 1 + max(spread[moment], 0) - min(spread[self.later], 0) if self.crosses else 0

    def barriers_after(self, moment: int) -> int:
        """Barriers between `moment` and the later op."""
        return self.timeline.epoch[self.later] - self.timeline.epoch[moment]

    def younger_tokens(self, moment: int) -> int:
        """Tokens that stand behind the earlier op in its counter at `moment`: the weakest wait that covers it."""
        tokens = self.timeline.tokens[self.counter]
        return tokens[moment] - tokens[self.earlier + 1]

    def met(self, machine: Machine) -> bool:
        """A wait that stands there already, planned or the compiler's, is strong enough and early enough."""
        at = self.compiler_covers
        if at is not None and self.barriers_after(at) >= self.barriers_needed(at):
            return True
        for moment in self.timeline.waits_between(self.counter, self.earlier, self.later):
            count = self.timeline.steps[moment].effect.wait_value
            if (
                count < machine.no_wait(self.counter)
                and count <= self.younger_tokens(moment)
                and self.barriers_after(moment) >= self.barriers_needed(moment)
            ):
                return True
        return False

    def __str__(self) -> str:
        first, second = (step.entry for step in self.ends)
        return in_words(first, second)


def in_words(first: ScheduleEntry, second: ScheduleEntry) -> str:
    """An obligation between two entries."""
    return (
        f"{first.op} ({first.phase.value.lower()} #{first.time_slot}) must be over "
        f"before {second.op} ({second.phase.value.lower()} #{second.time_slot})"
    )


def open_obligations(steps: LoopSteps, machine: Machine, *, compiler_waits: bool) -> tuple[Obligation, ...]:
    """The obligations that the loop's own waits and barriers don't meet."""
    every = all_obligations(steps, compiler_waits=compiler_waits)
    return tuple(obligation for obligation in every if not obligation.met(machine))


def all_obligations(steps: LoopSteps, *, compiler_waits: bool) -> Iterator[Obligation]:
    """The obligations from which all others follow, over the first few trip counts.

    Between two given entries the same steps lie whenever the distance is the same, so one trip count stands for all.
    """
    seen: set[tuple[object, ...]] = set()
    for trips in _EXPLICIT_TRIPS:
        timeline = written_out(steps, trips)
        for earlier, later, crosses in _tightest(timeline, compiler_waits=compiler_waits):
            counter = timeline.steps[earlier].effect.counter
            key = (timeline.gaps[earlier][-1], timeline.gaps[later][-1], later - earlier, crosses)
            if counter is None or key in seen:
                continue
            seen.add(key)
            yield Obligation(
                timeline=timeline,
                earlier=earlier,
                later=later,
                crosses=crosses,
                counter=counter,
                compiler_covers=_compiler_covers(timeline, earlier, later) if compiler_waits else None,
            )


def _tightest(timeline: Timeline, *, compiler_waits: bool) -> Iterator[_Conflict]:
    """Conflicts that contain no other one of the same counter.

    What covers an op covers all older ones on its counter, and a barrier between the inner two lies between the outer
    two as well: so the outer conflict is met whenever the inner one is.
    """
    latest: dict[tuple[Counter | None, bool], int] = {}
    conflicts = sorted(_conflicts(timeline, compiler_waits=compiler_waits), key=lambda c: (c.later, -c.earlier))
    for conflict in conflicts:
        counter = timeline.steps[conflict.earlier].effect.counter
        if latest.get((counter, conflict.crosses), -1) < conflict.earlier:
            latest[counter, conflict.crosses] = conflict.earlier
            yield conflict


def _conflicts(timeline: Timeline, *, compiler_waits: bool) -> Iterator[_Conflict]:
    """Pairs of accesses to one tile of which one is a write, and of a register's load and use."""
    writer: dict[Place, int] = {}
    readers: dict[Place, list[int]] = {}
    loader: dict[Place, int] = {}
    for now, step in enumerate(timeline.steps):
        effect = step.effect
        for tile in effect.reads if effect.action is Action.LDS_READ else ():
            if tile in writer:
                yield _Conflict(writer[tile], now, crosses=True)
            readers.setdefault(tile, []).append(now)
        for tile in effect.writes if effect.action in (Action.DMA, Action.LDS_WRITE) else ():
            yield from (_Conflict(reader, now, crosses=True) for reader in readers.get(tile, ()))
            # Each wave writes its own slice, and LDS writes of the ds class keep their order.
            if tile in writer and effect.action is Action.DMA:
                yield _Conflict(writer[tile], now, crosses=False)
            writer[tile], readers[tile] = now, []
        if not compiler_waits:
            yield from (_Conflict(loader[place], now, crosses=False) for place in _registers(effect) if place in loader)
        loader |= {place: now for place in effect.writes if place.space is Space.REGISTER}


def _registers(effect: Effect) -> Iterator[Place]:
    return (place for place in effect.reads if place.space is Space.REGISTER)


def _compiler_covers(timeline: Timeline, earlier: int, later: int) -> int | None:
    """The moment at which the compiler waits for the earlier op: that of the first use of registers that it loads.

    Or that a younger op on its counter loads: a wait for the younger one is a wait for all older ones.
    """
    counter = timeline.steps[earlier].effect.counter
    loading: set[Place] = set()
    for moment in range(earlier, later):
        effect = timeline.steps[moment].effect
        if not loading.isdisjoint(effect.reads):
            return moment
        filled = {place for place in effect.writes if place.space is Space.REGISTER}
        loading = loading | filled if effect.counter is counter else loading - filled
    return None
