"""Mutants of a compiled schedule: takes it, gives every schedule that differs from it in one entry, each one once.

A mutation that no machine could tell from the original is left out: a field that the op's effect doesn't contain, a
swap of equal ops or of two ops that order and move nothing.  Where two kinds of mutation end in the same schedule, the
first in the order of `Kind` keeps it.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from rota import CompiledSchedule, KOffsetKind, OpDesc, OpRole, Phase, ScheduleEntry
from rota.declare.effects import Action, Counter, Effect, effect_of
from rota.declare.vocabulary import CHANNEL_B

_WAITS = {Counter.VM: OpDesc.wait_vm, Counter.LGKM: OpDesc.wait_lgkm}
_OFFSETS = (KOffsetKind.K0, KOffsetKind.K1, KOffsetKind.K_NEXT, KOffsetKind.K_PREV)


class Kind(enum.Enum):
    """What was done to one entry."""

    WAIT_DELETED = "wait deleted"
    WAIT_WEAKER_BY_ONE = "wait weakened by 1"
    WAIT_WEAKER_BY_AN_OP = "wait weakened to the next token boundary"
    WAIT_MOVED = "wait moved after the next barrier"
    BARRIER_DELETED = "barrier deleted"
    BARRIER_SKIPPED = "barrier skipped by one group"
    SWAPPED = "adjacent entries swapped"
    STAGE = "stage changed"
    SUBTILE = "subtile changed"
    K_OFFSET = "k-offset changed"
    TAIL_COUNT = "tail reuses a count of the loop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A schedule with one entry changed."""

    kind: Kind
    description: str
    schedule: CompiledSchedule


class _Place(NamedTuple):
    """An entry with its effect, and where it stands."""

    phase: Phase
    slot: int
    entry: ScheduleEntry
    effect: Effect

    def __str__(self) -> str:
        return f"{self.phase.value.lower()} #{self.slot} {self.entry.op}"


def mutants_of(schedule: CompiledSchedule) -> Iterator[Mutant]:
    """All mutants, kind by kind in the order of `Kind`."""
    subject = _Subject(schedule)
    seen = {_content(schedule)}
    for kind, made in (
        (Kind.WAIT_DELETED, subject.waits_deleted()),
        (Kind.WAIT_WEAKER_BY_ONE, subject.waits_weaker_by_one()),
        (Kind.WAIT_WEAKER_BY_AN_OP, subject.waits_weaker_by_an_op()),
        (Kind.WAIT_MOVED, subject.waits_moved()),
        (Kind.BARRIER_DELETED, subject.barriers_deleted()),
        (Kind.BARRIER_SKIPPED, subject.barriers_skipped()),
        (Kind.SWAPPED, subject.swapped()),
        (Kind.STAGE, subject.stages()),
        (Kind.SUBTILE, subject.subtiles()),
        (Kind.K_OFFSET, subject.k_offsets()),
        (Kind.TAIL_COUNT, subject.tail_counts()),
    ):
        for description, mutated in made:
            content = _content(mutated)
            if content not in seen:
                seen.add(content)
                yield Mutant(kind=kind, description=description, schedule=mutated)


def _content(schedule: CompiledSchedule) -> tuple[object, ...]:
    return (schedule.prologue, schedule.kernel, schedule.epilogue, schedule.warp_stagger_index)


_Made = Iterator[tuple[str, CompiledSchedule]]


class _Subject:
    """One schedule and its mutations, each a generator of descriptions and schedules."""

    def __init__(self, schedule: CompiledSchedule) -> None:
        self.schedule = schedule
        self.phases = {phase: schedule.phase(phase) for phase in Phase}
        self.places = {
            phase: [_Place(phase, slot, entry, self._effect(entry.op)) for slot, entry in enumerate(entries)]
            for phase, entries in self.phases.items()
        }

    def waits_deleted(self) -> _Made:
        """Each wait left out."""
        return ((f"{wait} deleted", self._deleted(wait)) for wait in self._all(Action.WAIT))

    def waits_weaker_by_one(self) -> _Made:
        """Each count one higher."""
        return (self._waiting(wait, wait.effect.wait_value + 1) for wait in self._all(Action.WAIT))

    def waits_weaker_by_an_op(self) -> _Made:
        """Each count raised until the wait stops covering one op more than a count one higher does.

        The ops that have been issued in front of the wait have as many tokens behind them as all younger ones on its
        counter together; a wait covers those with at least its count, so a boundary lies one above each such number.
        The wait is looked at in the third trip, or behind two, when the loop has settled.
        """
        for wait in self._all(Action.WAIT):
            boundaries = [count for count in self._boundaries(wait) if count > wait.effect.wait_value + 1]
            if boundaries:
                yield self._waiting(wait, min(boundaries))

    def waits_moved(self) -> _Made:
        """Each wait behind the next barrier of its phase; the loop's first barrier follows its last.

        A wait of the prologue or the epilogue with no barrier behind it stays: what follows is another phase.
        """
        for wait in self._all(Action.WAIT):
            here = self.places[wait.phase]
            barriers = [place.slot for place in here if place.effect.action is Action.BARRIER]
            behind = [slot for slot in barriers if slot > wait.slot]
            if behind or (barriers and wait.phase is Phase.KERNEL):
                target = (behind or barriers)[0]
                yield f"{wait} moved behind the barrier at #{target}", self._moved(wait, target)

    def barriers_deleted(self) -> _Made:
        """Each barrier left out."""
        return ((f"{barrier} deleted", self._deleted(barrier)) for barrier in self._all(Action.BARRIER))

    def barriers_skipped(self) -> _Made:
        """Each barrier executed by one of two groups only."""
        groups = range(2) if self.schedule.config.warp_stagger.enabled else ()
        for barrier in self._all(Action.BARRIER):
            for group in groups:
                yield (
                    f"{barrier} for group {group} only",
                    self._with(barrier.phase, barrier.slot, replace(barrier.entry, group=group)),
                )

    def swapped(self) -> _Made:
        """Each entry behind its successor."""
        for phase, entries in self.phases.items():
            places = self.places[phase]
            for first, second in pairwise(places):
                fences = first.effect.action is second.effect.action is Action.NOTHING
                if not fences and first.entry.op != second.entry.op:
                    order = [*entries[: first.slot], second.entry, first.entry, *entries[second.slot + 1 :]]
                    yield f"{first} behind {second.entry.op}", self._made(phase, order)

    def stages(self) -> _Made:
        """Each load and fragment in every other stage."""
        return self._changed("stage", lambda _: range(self.schedule.config.depth))

    def subtiles(self) -> _Made:
        """Each load and fragment at every other subtile."""
        return self._changed("subtile", self._subtiles)

    def k_offsets(self) -> _Made:
        """Each load of every other K-tile."""
        return self._changed("k_offset", lambda _: _OFFSETS)

    def tail_counts(self) -> _Made:
        """Each wait of the epilogue with every count that the loop has on its counter."""
        for wait in self.places[Phase.EPILOGUE]:
            if wait.effect.action is Action.WAIT:
                counts = {
                    place.effect.wait_value
                    for place in self.places[Phase.KERNEL]
                    if place.effect.action is Action.WAIT and place.effect.counter is wait.effect.counter
                }
                yield from (self._waiting(wait, count) for count in sorted(counts))

    def _effect(self, op: OpDesc) -> Effect:
        knobs = self.schedule.schedule_config
        return effect_of(op, self.schedule.config, (knobs.lgkm_per_load_a, knobs.lgkm_per_load_b))

    def _all(self, action: Action) -> Iterator[_Place]:
        return (place for places in self.places.values() for place in places if place.effect.action is action)

    def _boundaries(self, wait: _Place) -> Iterator[int]:
        before = list(self.places[Phase.PROLOGUE]) if wait.phase is not Phase.PROLOGUE else []
        before += 2 * self.places[Phase.KERNEL] if wait.phase is not Phase.PROLOGUE else []
        younger = 0
        for place in reversed([*before, *self.places[wait.phase][: wait.slot]]):
            if place.effect.counter is wait.effect.counter and place.effect.action is not Action.WAIT:
                yield younger + 1
                younger += place.effect.tokens

    def _waiting(self, wait: _Place, count: int) -> tuple[str, CompiledSchedule]:
        counter = wait.effect.counter
        assert counter is not None
        op = _WAITS[counter](count)
        return f"{wait} became {op}", self._with(wait.phase, wait.slot, replace(wait.entry, op=op))

    def _changed(self, field: str, values: Callable[[OpDesc], Iterable[object]]) -> _Made:
        for place in (place for places in self.places.values() for place in places):
            op = place.entry.op
            for value in values(op) if op.role in (OpRole.GLOBAL_LOAD, OpRole.FRAGMENT_LOAD) else ():
                other = op.but(**{field: value})
                if self._effect(other) != place.effect:
                    yield f"{place} became {other}", self._with(place.phase, place.slot, replace(place.entry, op=other))

    def _subtiles(self, op: OpDesc) -> Iterable[int]:
        """As many as the grid has rows or columns; in a single buffer as many as there are slices of K."""
        config = self.schedule.config
        if config.depth >= 2:
            return range(config.n_mmas if op.channel == CHANNEL_B else config.m_mmas)
        return sorted({place.subtile for read in self._all(Action.LDS_READ) for place in read.effect.writes})

    def _deleted(self, place: _Place) -> CompiledSchedule:
        entries = self.phases[place.phase]
        left = [*entries[: place.slot], *entries[place.slot + 1 :]]
        return self._made(place.phase, left, stagger=self._stagger_without(place))

    def _moved(self, place: _Place, behind: int) -> CompiledSchedule:
        """From its slot to just behind another one."""
        order = list(self.phases[place.phase])
        order.insert(behind + 1, place.entry)
        order.pop(place.slot if place.slot < behind else place.slot + 1)
        stagger = self.schedule.warp_stagger_index
        return self._made(place.phase, order, self._stagger_without(place) if behind >= stagger else stagger)

    def _stagger_without(self, place: _Place) -> int:
        """Group 1 falls back in front of the same entry when one before it is gone."""
        index = self.schedule.warp_stagger_index
        return index - 1 if place.phase is Phase.PROLOGUE and place.slot < index else index

    def _with(self, phase: Phase, slot: int, entry: ScheduleEntry) -> CompiledSchedule:
        entries = list(self.phases[phase])
        entries[slot] = entry
        return self._made(phase, entries)

    def _made(self, phase: Phase, entries: Sequence[ScheduleEntry], stagger: int | None = None) -> CompiledSchedule:
        """The schedule with one phase anew; what was derived from the old one is dropped."""
        numbered = (e if e.time_slot == slot else replace(e, time_slot=slot) for slot, e in enumerate(entries))
        phases = self.phases | {phase: tuple(numbered)}
        return replace(
            self.schedule,
            prologue=phases[Phase.PROLOGUE],
            kernel=phases[Phase.KERNEL],
            epilogue=phases[Phase.EPILOGUE],
            warp_stagger_index=self.schedule.warp_stagger_index if stagger is None else stagger,
            kernel_deps=(),
            repairs=(),
            certificate=None,
        )
