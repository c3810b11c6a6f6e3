"""Mutants of a lowered program: takes it, gives every program that differs from it in one entry, each one once.

A mutation that no machine could tell from the original is left out: a swap of equal entries, of two that order and move
nothing, or of two that no role executes both and that touch nothing in common.  Where two kinds of mutation end in the
same program, the first in the order of `Kind` keeps it.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from rota.program.entry import Effect, Entry, Place, Space, wait_op
from rota.program.kinds import OpKind, Phase
from rota.program.lowered import LoweredProgram

_INERT = (OpKind.FENCE, OpKind.PRIORITY, OpKind.HINT, OpKind.NOTHING)
_TILES = range(-1, 3)  # that a load may fetch, from the trip's k


class Kind(enum.Enum):
    """What was done to one entry."""

    WAIT_DELETED = "wait deleted"
    WAIT_WEAKER_BY_ONE = "wait weakened by 1"
    WAIT_WEAKER_BY_AN_OP = "wait weakened to the next token boundary"
    WAIT_MOVED = "wait moved after the next barrier"
    BARRIER_DELETED = "barrier deleted"
    BARRIER_SKIPPED = "barrier skipped by one role"
    SWAPPED = "adjacent entries swapped"
    COPY = "copy changed"
    PART = "part changed"
    K_OFFSET = "k-offset changed"
    TAIL_COUNT = "tail reuses a count of the loop"
    ENTRY_SKIPPED = "entry skipped by one role"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A program with one entry changed."""

    kind: Kind
    description: str
    program: LoweredProgram


class _At(NamedTuple):
    """An entry and where it stands."""

    phase: Phase
    place: int
    entry: Entry

    @property
    def effect(self) -> Effect:
        return self.entry.effect

    def __str__(self) -> str:
        return str(self.entry)


class _Change(NamedTuple):
    """The entries of a phase, one of them changed."""

    description: str
    phase: Phase
    entries: Sequence[Entry]


def mutants_of(program: LoweredProgram) -> Iterator[Mutant]:
    """All mutants, kind by kind in the order of `Kind`."""
    subject = _Subject(program)
    contents = _Contents()
    seen = {contents.of(phase, program.phase(phase)) for phase in Phase}
    for kind, made in (
        (Kind.WAIT_DELETED, subject.waits_deleted()),
        (Kind.WAIT_WEAKER_BY_ONE, subject.waits_weaker_by_one()),
        (Kind.WAIT_WEAKER_BY_AN_OP, subject.waits_weaker_by_an_op()),
        (Kind.WAIT_MOVED, subject.waits_moved()),
        (Kind.BARRIER_DELETED, subject.barriers_deleted()),
        (Kind.BARRIER_SKIPPED, subject.barriers_skipped()),
        (Kind.SWAPPED, subject.swapped()),
        (Kind.COPY, subject.copies()),
        (Kind.PART, subject.parts()),
        (Kind.K_OFFSET, subject.k_offsets()),
        (Kind.TAIL_COUNT, subject.tail_counts()),
        (Kind.ENTRY_SKIPPED, subject.entries_skipped()),
    ):
        for change in made:
            content = contents.of(change.phase, change.entries)
            if content not in seen:
                seen.add(content)
                changed = program.with_phases({change.phase: change.entries})
                yield Mutant(kind=kind, description=change.description, program=changed)


class _Contents:
    """What a list of entries does, as numbers: equal entries have equal numbers, wherever they stand."""

    def __init__(self) -> None:
        self.numbers: dict[object, int] = {}
        self.known: dict[int, tuple[Entry, int]] = {}  # by identity, for speed; the entry is kept so that it stays one

    def of(self, phase: Phase, entries: Iterable[Entry]) -> tuple[object, ...]:
        """The phase and its entries."""
        return (phase, *map(self._number, entries))

    def _number(self, entry: Entry) -> int:
        known = self.known.get(id(entry))
        if known is None:
            key = (entry.op, entry.effect, entry.roles, entry.is_prefetch, entry.listed)
            known = self.known[id(entry)] = (entry, self.numbers.setdefault(key, len(self.numbers)))
        return known[1]


class _Subject:
    """One program and its mutations."""

    def __init__(self, program: LoweredProgram) -> None:
        self.program = program
        self.everyone = tuple(range(len(program.roles)))
        self.phases = {
            phase: [_At(phase, place, entry) for place, entry in enumerate(program.phase(phase))] for phase in Phase
        }
        self.copies_of: dict[tuple[Space, str], set[int]] = {}
        self.parts_of: dict[tuple[Space, str], set[int]] = {}
        for entry in program.entries:
            for place in (*entry.effect.reads, *entry.effect.writes):
                self.copies_of.setdefault(place[:2], set()).add(place.copy)
                self.parts_of.setdefault(place[:2], set()).add(place.part)

    def waits_deleted(self) -> Iterator[_Change]:
        """Each wait left out."""
        return (self._deleted(wait) for wait in self._all(OpKind.WAIT))

    def waits_weaker_by_one(self) -> Iterator[_Change]:
        """Each count one higher."""
        return (self._waiting(wait, wait.effect.wait_value + 1) for wait in self._all(OpKind.WAIT))

    def waits_weaker_by_an_op(self) -> Iterator[_Change]:
        """Each count raised until the wait stops covering one op more than a count one higher does.

        The ops that have been issued in front of the wait have as many tokens after them as all younger ones on its
        counter together; a wait covers those with at least its count, so a boundary lies one above each such number.
        The wait is looked at in the third trip, or after two, when the loop has settled.
        """
        for wait in self._all(OpKind.WAIT):
            boundaries = [count for count in self._boundaries(wait) if count > wait.effect.wait_value + 1]
            if boundaries:
                yield self._waiting(wait, min(boundaries))

    def waits_moved(self) -> Iterator[_Change]:
        """Each wait after the next arrival at a barrier of its phase; the loop's first arrival follows its last.

        A wait of the prologue or the epilogue with no barrier behind it stays: what follows is another phase.
        """
        for wait in self._all(OpKind.WAIT):
            here = self.phases[wait.phase]
            arrivals = [at.place for at in here if at.effect.arrives is not None and self._share(at.entry, wait.entry)]
            behind = [index for index in arrivals if index > wait.place]
            if behind or (arrivals and wait.phase is Phase.KERNEL):
                yield self._moved(wait, (behind or arrivals)[0])

    def barriers_deleted(self) -> Iterator[_Change]:
        """Each barrier, arrival at one or wait at one left out."""
        return (self._deleted(barrier) for barrier in self._all(OpKind.BARRIER))

    def barriers_skipped(self) -> Iterator[_Change]:
        """Each barrier not executed by one of the roles that do."""
        return (skipped for barrier in self._all(OpKind.BARRIER) for skipped in self._skipped(barrier))

    def swapped(self) -> Iterator[_Change]:
        """Each entry after its successor."""
        for phase, places in self.phases.items():
            for first, second in pairwise(places):
                alike = (first.entry.op, first.effect) == (second.entry.op, second.effect)
                inert = alike or (first.effect.kind in _INERT and second.effect.kind in _INERT)
                related = self._share(first.entry, second.entry) or _meet(first.effect, second.effect)
                if related and not inert:
                    order = [at.entry for at in places]
                    order[first.place : second.place + 1] = [second.entry, first.entry]
                    yield _Change(f"{first} behind {second.entry.op}", phase, order)

    def copies(self) -> Iterator[_Change]:
        """Each place in LDS or registers replaced by every other copy."""
        for at, place in self._accesses():
            for copy in sorted(self.copies_of[place[:2]] - {place.copy}):
                yield self._elsewhere(at, {place: place._replace(copy=copy)})

    def parts(self) -> Iterator[_Change]:
        """Each place in LDS replaced by every other part; where registers stand for the part, also by theirs."""
        for at, place in self._accesses():
            for part in sorted(self.parts_of[place[:2]] - {place.part}):
                moved = {place: place._replace(part=part)}
                yield self._elsewhere(at, moved)
                same = [each for each in at.effect.writes if (each.name, each.copy) == (place.name, place.part)]
                for each in same:
                    yield self._elsewhere(at, moved | {each: each._replace(copy=part)})

    def k_offsets(self) -> Iterator[_Change]:
        """Each load of every other K-tile."""
        for at in self._all(OpKind.DMA):
            for tile in _TILES if at.effect.fetches is not None else ():
                effect = replace(at.effect, fetches=tile)
                yield self._with(at, replace(at.entry, effect=effect), f"{at} of tile k{tile:+}")

    def tail_counts(self) -> Iterator[_Change]:
        """Each wait of the epilogue with every count that the loop has on its counter."""
        for wait in self._all(OpKind.WAIT):
            if wait.phase is Phase.EPILOGUE:
                counts = {
                    at.effect.wait_value
                    for at in self.phases[Phase.KERNEL]
                    if at.effect.kind is OpKind.WAIT and at.effect.counter == wait.effect.counter
                }
                yield from (self._waiting(wait, count) for count in sorted(counts))

    def entries_skipped(self) -> Iterator[_Change]:
        """Each entry that does anything, and is no barrier, not executed by one of the roles that do."""
        for at in (at for places in self.phases.values() for at in places):
            if at.effect.kind not in (*_INERT, OpKind.BARRIER):
                yield from self._skipped(at)

    def _all(self, kind: OpKind) -> Iterator[_At]:
        return (at for places in self.phases.values() for at in places if at.effect.kind is kind)

    def _accesses(self) -> Iterator[tuple[_At, Place]]:
        for at in (at for places in self.phases.values() for at in places):
            for place in dict.fromkeys((*at.effect.reads, *at.effect.writes)):
                if place.space in (Space.LDS, Space.REGISTER):
                    yield at, place

    def _share(self, one: Entry, other: Entry) -> bool:
        """Does some role execute both?"""
        return any(one.executed_by(role) and other.executed_by(role) for role in self.everyone)

    def _boundaries(self, wait: _At) -> Iterator[int]:
        role = 0 if wait.entry.roles is None else wait.entry.roles[0]
        before = list(self.phases[Phase.PROLOGUE]) if wait.phase is not Phase.PROLOGUE else []
        before += 2 * self.phases[Phase.KERNEL] if wait.phase is not Phase.PROLOGUE else []
        younger = 0
        for at in reversed([*before, *self.phases[wait.phase][: wait.place]]):
            own = at.entry.executed_by(role) and at.effect.kind is not OpKind.WAIT
            if own and at.effect.counter == wait.effect.counter:
                yield younger + 1
                younger += at.effect.tokens

    def _waiting(self, wait: _At, count: int) -> _Change:
        counter = wait.effect.counter
        assert counter is not None
        op = replace(wait_op(counter, count), name=f"{wait.entry.op.name.partition('(')[0]}({count})")
        effect = replace(wait.effect, wait_value=count)
        return self._with(wait, replace(wait.entry, op=op, effect=effect), f"{wait} became {op}")

    def _skipped(self, at: _At) -> Iterator[_Change]:
        roles = self.everyone if at.entry.roles is None else at.entry.roles
        for role in roles if len(roles) > 1 else ():
            others = tuple(each for each in roles if each != role)
            name = self.program.roles[role].name
            yield self._with(at, replace(at.entry, roles=others), f"{at} skipped by {name}")

    def _elsewhere(self, at: _At, moved: dict[Place, Place]) -> _Change:
        """The entry with some places exchanged for others."""
        effect = replace(
            at.effect,
            reads=tuple(moved.get(place, place) for place in at.effect.reads),
            writes=tuple(moved.get(place, place) for place in at.effect.writes),
            wants=tuple((moved.get(place, place), version) for place, version in at.effect.wants),
            makes=tuple((moved.get(place, place), version) for place, version in at.effect.makes),
        )
        told = ", ".join(f"{old} became {new}" for old, new in moved.items())
        return self._with(at, replace(at.entry, effect=effect), f"{at}: {told}")

    def _deleted(self, at: _At) -> _Change:
        left = [each.entry for each in self.phases[at.phase] if each is not at]
        return _Change(f"{at} deleted", at.phase, left)

    def _moved(self, at: _At, behind: int) -> _Change:
        """From its place to just after another one."""
        order = [each.entry for each in self.phases[at.phase]]
        order.insert(behind + 1, at.entry)
        order.pop(at.place if at.place < behind else at.place + 1)
        return _Change(f"{at} moved behind {self.phases[at.phase][behind].entry}", at.phase, order)

    def _with(self, at: _At, entry: Entry, description: str) -> _Change:
        entries = [each.entry for each in self.phases[at.phase]]
        entries[at.place] = entry
        return _Change(description, at.phase, entries)


def _meet(one: Effect, other: Effect) -> bool:
    """Do they touch the same place?"""
    return not {*one.reads, *one.writes}.isdisjoint((*other.reads, *other.writes))
