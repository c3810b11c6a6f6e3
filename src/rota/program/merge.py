"""Roles with lists of their own as one list: takes what each executes, gives an order that lets every wait end.

Each role's own order is kept, and a wait at a barrier comes after the arrivals that it is for.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Mapping, Sequence
from dataclasses import replace

from rota.errors import Finding, ProgramError
from rota.program.entry import Entry
from rota.program.lowered import Barrier, Role, numbered
from rota.program.phase import Phase


def merged(
    roles: Sequence[Role], barriers: Sequence[Barrier], lists: Mapping[Phase, Sequence[Sequence[Entry]]]
) -> dict[Phase, tuple[Entry, ...]]:
    """One list per phase; `lists` holds for each phase what each role executes, in the order of the roles.

    A role runs until it waits for an arrival that is still to come.  One trip of the kernel stands for all of them, so
    what a role waits for must come in the same trip or before.
    """
    meetings = _Meetings(barriers)
    phases: dict[Phase, tuple[Entry, ...]] = {}
    for phase in Phase:
        rest = [list(each) for each in lists.get(phase, [()] * len(roles))]
        found: list[Entry] = []
        while any(rest):
            before = len(found)
            for role, entries in enumerate(rest):
                while entries and meetings.may_run(entries[0], role):
                    found.append(replace(entries.pop(0), roles=(role,), phase=phase))
            for together in meetings.all_there(rest):
                found.append(replace(rest[together[0]][0], roles=together, phase=phase))
                for role in together:
                    rest[role].pop(0)
            if len(found) == before:
                raise _stuck(roles, phase, rest)
        phases[phase] = numbered(found)
    return phases


class _Meetings:
    """How often each role has arrived and waited at each barrier."""

    def __init__(self, barriers: Sequence[Barrier]) -> None:
        self.barriers = barriers
        self.arriving = {barrier.name: barrier.arriving for barrier in barriers}
        self.arrived: Tally[tuple[str, int]] = Tally()
        self.waited: Tally[tuple[str, int]] = Tally()

    def may_run(self, entry: Entry, role: int) -> bool:
        """Have all arrived that the entry waits for?  If so, it runs; where roles meet, they all have to be there."""
        arrives, awaits = entry.effect.arrives, entry.effect.awaits
        if arrives is not None and awaits is not None:
            return False
        if awaits is not None:
            number = self.waited[awaits, role] + 1
            if any(self.arrived[awaits, other] < number for other in self.arriving.get(awaits, ())):
                return False
            self.waited[awaits, role] = number
        if arrives is not None:
            self.arrived[arrives, role] += 1
        return True

    def all_there(self, rest: Sequence[Sequence[Entry]]) -> list[tuple[int, ...]]:
        """The roles of each barrier at which all that take part now stand, to arrive and wait at once."""
        found = []
        for name, arriving, waiting in self.barriers:
            roles = tuple(sorted({*arriving, *waiting}))
            heads = [rest[role][0].effect for role in roles if rest[role]]
            if len(heads) == len(roles) and all(head.arrives == head.awaits == name for head in heads):
                found.append(roles)
                for role in roles:
                    self.arrived[name, role] += 1
                    self.waited[name, role] += 1
        return found


def _stuck(roles: Sequence[Role], phase: Phase, rest: Sequence[Sequence[Entry]]) -> ProgramError:
    waiting = [(role, entries[0]) for role, entries in zip(roles, rest, strict=True) if entries]
    return ProgramError(
        Finding(
            code="B103",
            message=f"in the {phase.value.lower()} every role that isn't through waits for an arrival that never comes",
            concerns=tuple(entry.op.concern(role=f"{role.name} waits here") for role, entry in waiting),
            evidence=tuple((role.name, str(entry.op)) for role, entry in waiting),
            fixes=("let the role arrive earlier, or the other wait later",),
        )
    )
