"""What a lowered program must be besides right: takes a draft, gives the rules of form that it breaks.

The proof refuses some programs that no execution of the oracle's machine gets wrong.  Each such refusal has to be one
of these, with the finding code that says so.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Collection, Iterator, Sequence

from rota.program.entry import Entry
from rota.program.lowered import Barrier
from tests.oracle.role_machine import is_unaware
from tests.oracle.role_steps import Draft

APART = "an op's roles execute it in entries of their own"
UNEVEN = "a role arrives more often than others wait"
ORDER = "the one list has an arrival behind a wait for it"
UNAWARE = "two roles that touch LDS never learn how far the other is"
LONE = "a role says that it has one wave"
UNSORTED = "roles are listed twice, or not in their order, or not at all"
CODES = {
    APART: {"B102"},
    UNEVEN: {"B101"},
    ORDER: {"B103"},
    LONE: {"R102", "R103"},
    UNAWARE: {"V111"},
    UNSORTED: {"B102"},
}
"""The codes by which the proof refuses a program of that form."""


def broken_rules(draft: Draft) -> Iterator[str]:
    """Those that the draft breaks."""
    sync = {entry.op.name for entry in draft.entries} - {op.name for op in draft.semantics.ops}
    data = [entry for entry in draft.entries if entry.op.name not in sync]
    if any(draft.executing(entry) != draft.doing(entry.op.name) for entry in data):
        yield APART
    if any(entry.roles is not None and entry.roles != draft.executing(entry) for entry in draft.entries):
        yield UNSORTED
    if any(entry.roles == () for entry in draft.entries):
        yield UNSORTED
    if any(_is_uneven(draft, barrier) for barrier in draft.barriers):
        yield UNEVEN
    if any(role.waves == 1 for role in draft.roles):
        yield LONE
    if any(not _in_order(draft, (*draft.prologue, *draft.kernel * trips, *draft.epilogue)) for trips in range(4)):
        yield ORDER


def explained(draft: Draft, codes: Collection[str]) -> str:
    """The rules that explain why the proof refuses a right program with these codes; nothing if they don't."""
    broken = list(dict.fromkeys(broken_rules(draft)))
    if "B103" in codes:  # who waits for what comes later is taken to know nothing from it
        codes = set(codes) - {"R102", "R103"}
    if "V111" in set(codes) and is_unaware(draft):
        broken.append(UNAWARE)
    known = set().union(*(CODES[rule] for rule in broken)) if broken else set()
    return "; ".join(rule for rule in broken if CODES[rule] & set(codes)) if set(codes) <= known else ""


def _is_uneven(draft: Draft, barrier: Barrier) -> bool:
    for part in (draft.kernel, (*draft.prologue, *draft.epilogue)):
        counts = Tally[tuple[str, int]]()
        for entry in part:
            for role in draft.executing(entry):
                counts["arrives", role] += entry.effect.arrives == barrier.name
                counts["waits", role] += entry.effect.awaits == barrier.name
        arrivals = [counts["arrives", role] for role in barrier.arriving]
        waits = [counts["waits", role] for role in barrier.waiting]
        if len({*arrivals, *waits}) > 1 and (part is draft.kernel or draft.reentrant or _meets(part, barrier)):
            return True
    return False


def _meets(part: Sequence[Entry], barrier: Barrier) -> bool:
    return any(entry.effect.arrives == entry.effect.awaits == barrier.name for entry in part)


def _in_order(draft: Draft, entries: Sequence[Entry]) -> bool:
    """Read as one sequence, every wait stands after the arrivals that it waits for."""
    arriving = {barrier.name: barrier.arriving for barrier in draft.barriers}
    arrived, waited = Tally[tuple[str, int]](), Tally[tuple[str, int]]()
    for entry in entries:
        arrives, awaits = entry.effect.arrives, entry.effect.awaits
        arrived.update((arrives, role) for role in draft.executing(entry) if arrives)
        for role in draft.executing(entry) if awaits else ():
            waited[awaits or "", role] += 1
            times = waited[awaits or "", role]
            if any(arrived[awaits or "", other] < times for other in arriving.get(awaits or "", ())):
                return False
    return True
