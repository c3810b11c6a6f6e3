"""What roles know of each other: takes arrivals and waits at barriers, gives the clocks that roles know of.

A role's clock is its arrivals at any barrier.  A role that has waited at a barrier n times knows that every role that
arrives there has done so n times; with several barriers it also knows what these roles knew when they arrived.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from typing import NamedTuple

from rota.errors import Finding
from rota.program.effects import Space
from rota.program.entry import Entry
from rota.program.lowered import LoweredProgram


class _Arrival(NamedTuple):
    """The clock of a role right after it arrived, and what it knew by then."""

    clock: int
    knew: tuple[int, ...]


class Meetings:
    """Clocks and knowledge between two entries."""

    def __init__(self, program: LoweredProgram) -> None:
        self.program = program
        roles = len(program.roles)
        self.barriers = {barrier.name: barrier for barrier in program.barriers}
        self.alone = len(self.barriers) == 1  # then a role's n-th arrival is its n-th clock
        only = next(iter(self.barriers.values()), None)
        self.arrives = [self.alone and only is not None and role in only.arriving for role in range(roles)]
        self.clocks = [0] * roles
        self.passed = [0] * roles
        self.knows = [[0] * roles for _ in range(roles)]  # with one barrier it follows from what was passed
        self.known = [0] * roles  # of each role, by all whose knowledge matters
        sharing = {role for role in range(roles) if any(_shares(each, role) for each in program.entries)}
        self.sharing = tuple(sorted(sharing)) or tuple(range(roles))  # what other roles know orders nothing
        self.waited = {name: [0] * roles for name in self.barriers}
        self.arrived = {name: [0] * roles for name in self.barriers}
        self.logs: dict[tuple[str, int, int], _Arrival] = {}

    def pass_by(self, entry: Entry) -> Iterable[Finding]:
        """Roles arrive, or continue when others have; a barrier that is one instruction does both."""
        return self._pass_the_one(entry) if self.alone else self._pass(entry)

    def _pass_the_one(self, entry: Entry) -> Iterable[Finding]:
        """With one barrier, a role that has waited n times knows that all who arrive there have done so n times."""
        effect, clocks = entry.effect, self.clocks
        roles = range(len(clocks)) if entry.roles is None else entry.roles
        if effect.arrives is not None:
            for role in roles:
                clocks[role] += 1
        if effect.awaits is not None:
            passed = self.passed
            for role in roles:
                passed[role] += 1
            self.known = self._all_arrived(min(passed[role] for role in self.sharing))
        return ()

    def _all_arrived(self, times: int) -> list[int]:
        """What is known when all who arrive at the one barrier have done so that often."""
        return [times if arrives else 0 for arrives in self.arrives]

    def _pass(self, entry: Entry) -> Iterator[Finding]:
        effect, roles = entry.effect, entry.roles
        for role in range(len(self.clocks)) if roles is None else roles:
            if effect.arrives is not None:
                self._arrive(effect.arrives, role)
        for role in range(len(self.clocks)) if roles is None else roles:
            if effect.awaits is not None:
                yield from self._wait(effect.awaits, role, entry)
        self.known = [min(each) for each in zip(*(self.knows[role] for role in self.sharing), strict=True)]

    def known_to(self, roles: Sequence[int]) -> Sequence[int]:
        """The clocks that all of these roles know of."""
        if self.alone:
            return self._all_arrived(min(self.passed[role] for role in roles))
        if len(roles) == 1:
            return self.knows[roles[0]]
        return [min(each) for each in zip(*(self.knows[role] for role in roles), strict=True)]

    def _arrive(self, name: str, role: int) -> None:
        self.clocks[role] += 1
        self.arrived[name][role] += 1
        if self.barriers[name].waiting:  # otherwise nobody ever asks
            self.logs[name, role, self.arrived[name][role]] = _Arrival(self.clocks[role], tuple(self.knows[role]))

    def _wait(self, name: str, role: int, entry: Entry) -> Iterator[Finding]:
        self.waited[name][role] += 1
        number, knows = self.waited[name][role], self.knows[role]
        for other in self.barriers[name].arriving:
            arrival = self.logs.get((name, other, number))
            if arrival is None:
                yield _too_early(self.program, entry, role, other)
                continue
            knows[other] = max(knows[other], arrival.clock)
            for third, clock in enumerate(arrival.knew):
                knows[third] = max(knows[third], clock)
        self._forget(name)

    def _forget(self, name: str) -> None:
        """Arrivals that every role has waited for."""
        barrier = self.barriers[name]
        passed = min((self.waited[name][role] for role in barrier.waiting), default=0)
        for role in barrier.arriving:
            self.logs.pop((name, role, passed), None)

    def fork(self) -> Meetings:
        """A copy that goes its own way."""
        other = copy(self)
        other.clocks = list(self.clocks)
        other.passed = list(self.passed)
        other.knows = [list(each) for each in self.knows]
        other.known = list(self.known)
        other.waited = {name: list(counts) for name, counts in self.waited.items()}
        other.arrived = {name: list(counts) for name, counts in self.arrived.items()}
        other.logs = dict(self.logs)
        return other

    def state(self) -> tuple[object, ...]:
        """The same at every trip of a loop whose roles keep step."""
        clocks = self.clocks
        if self.alone:
            last = max(clocks)
            arrived = (clock - last if arrives else 0 for clock, arrives in zip(clocks, self.arrives, strict=True))
            return tuple(_since(passed, last) for passed in self.passed), tuple(arrived)
        relative = tuple(tuple(map(_since, each, clocks)) for each in self.knows)
        first = {name: self.arrived[name][next(iter(each.arriving), 0)] for name, each in self.barriers.items()}
        counts = tuple(
            (
                name,
                tuple(self.arrived[name][role] - first[name] for role in each.arriving),
                tuple(self.waited[name][role] - first[name] for role in each.waiting),
            )
            for name, each in self.barriers.items()
        )
        logs = frozenset(
            (
                (name, role, number - first[name], arrival.clock - clocks[role]),
                tuple(map(_since, arrival.knew, clocks)),
            )
            for (name, role, number), arrival in self.logs.items()
        )
        return relative, counts, logs


def _shares(entry: Entry, role: int) -> bool:
    """Does the role touch LDS there?"""
    effect = entry.effect
    return entry.executed_by(role) and any(place.space is Space.LDS for place in (*effect.reads, *effect.writes))


def _since(known: int, clock: int) -> int | None:
    """How long ago a clock was that is known of; who knows of none knows no less later on."""
    return known - clock if known else None


def _too_early(program: LoweredProgram, entry: Entry, role: int, other: int) -> Finding:
    names = [each.name for each in program.roles]
    return Finding(
        code="B103",
        message=f"{entry.op} waits for {names[other]}, which arrives only later in the program's order",
        concerns=(entry.concern(f"{entry.phase.value.lower()}, executed by {names[role]}"),),
        evidence=(("waits", names[role]), ("arrives later", names[other])),
        fixes=("let the role arrive earlier, or the other wait later",),
    )
