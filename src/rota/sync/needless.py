"""What a synchronised program can do without: takes it, gives the waits and barriers that it needs, with their reasons.

An order that was found afterwards may meet with one wait what took two before.  Waits and barriers are left out one by
one, then waits are weakened, as long as every obligation is met; leaving out one makes no other needless that was
needed before.  Derived without the proof, which checks the result.
"""

from __future__ import annotations

from typing import NamedTuple

from rota.program.entry import Entry
from rota.program.kinds import OpKind
from rota.program.lowered import LoweredProgram
from rota.sync.obligation import Obligation, all_obligations


class Indispensable(NamedTuple):
    """How many tokens a wait may leave, 0 of a barrier, and what would be unmet with any less of it."""

    leaves: int
    reason: Obligation


def derive_needed(program: LoweredProgram) -> dict[int, Indispensable | None]:
    """By the identity of its entry, each wait and each barrier in one instruction; None if it isn't needed.

    All waves run the same entries, and the program meets its obligations.
    """
    standing = _Standing(program)
    needed = {key: standing.without(key) for key in list(standing.counts) if key not in standing.parts}
    return {key: None if reason is None else standing.weakened(key, reason) for key, reason in needed.items()}


class _Standing:
    """The waits, with their counts, and barriers that have not been left out; `parts` of barriers stay."""

    def __init__(self, program: LoweredProgram) -> None:
        self.machine = program.machine
        added = {id(entry): entry for entry in program.entries if entry.op.is_framework}
        self.counts = {key: entry.effect.wait_value for key, entry in added.items()}
        self.counters = {key: entry.effect.counter for key, entry in added.items()}
        self.parts = {key for key, entry in added.items() if _part_of_a_barrier(entry)}
        self.users: dict[int, list[Obligation]] = {key: [] for key in added}
        for each in all_obligations(program):
            line = each.timeline
            own = line.waits_between(each.counter, each.earlier, each.later)
            barriers = line.barriers_between(each.earlier, each.later) if each.crosses else ()
            for key in {id(line.steps[moment]) for moment in (*own, *barriers)}:
                self.users[key].append(each)

    def without(self, key: int) -> Obligation | None:
        """Leave one out, if nothing is unmet then."""
        count = self.counts.pop(key)
        reason = self._unmet(key)
        if reason is not None:
            self.counts[key] = count
        return reason

    def weakened(self, key: int, reason: Obligation) -> Indispensable:
        """The largest count with which everything is met."""
        counter = self.counters[key]
        while counter is not None and self.counts[key] < self.machine.largest_wait(counter):
            self.counts[key] += 1
            unmet = self._unmet(key)
            if unmet is not None:
                self.counts[key] -= 1
                return Indispensable(self.counts[key], unmet)
        return Indispensable(self.counts[key], reason)

    def _unmet(self, key: int) -> Obligation | None:
        return next((each for each in self.users[key] if not self._met(each)), None)

    def _met(self, obligation: Obligation) -> bool:
        line, at = obligation.timeline, obligation.compiler_covers
        if at is not None and self._behind(obligation, at):
            return True
        for moment in line.waits_between(obligation.counter, obligation.earlier, obligation.later):
            count = self.counts.get(id(line.steps[moment]))
            if count is not None and count <= obligation.younger_tokens(moment) and self._behind(obligation, moment):
                return True
        return False

    def _behind(self, obligation: Obligation, moment: int) -> bool:
        """Do enough barriers follow?"""
        line, needed = obligation.timeline, obligation.barriers_needed(moment)
        behind = line.barriers_between(moment, obligation.later) if needed else ()
        return sum(id(line.steps[each]) in self.counts for each in behind) >= needed


def _part_of_a_barrier(entry: Entry) -> bool:
    return entry.effect.kind is OpKind.BARRIER and (entry.effect.arrives is None or entry.effect.awaits is None)
