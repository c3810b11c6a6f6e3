"""One help per cause: takes a failed proof and the repair that fixes it, gives its errors with what each group lacks.

Errors that come back together when one repair is left out have one cause: what that repair added.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rota.compiled.body_places import BodyPlaces
from rota.compiled.compiled_schedule import CompiledSchedule
from rota.errors import Finding
from rota.program.lowered import LoweredProgram
from rota.verify.prove import verify

if TYPE_CHECKING:
    from rota.sync.repair import Repair

_MOST_REPAIRS = 16  # each costs a proof; beyond, one help serves all errors


def helped(errors: Sequence[Finding], better: CompiledSchedule) -> Iterator[Finding]:
    """The errors, grouped by what they lack; the first of each group says what fixes all of them."""
    places = BodyPlaces(better)
    every = frozenset(range(len(better.repairs)))
    lacks: dict[tuple[object, ...], set[int]] = {}
    for number in every if len(every) <= _MOST_REPAIRS else ():
        worse = without_repair(better, better.repairs[number])
        seen = BodyPlaces(better, worse)
        for finding in verify(worse).errors:
            lacks.setdefault(_identity(seen.finding(finding)), set()).add(number)
    groups: dict[frozenset[int], list[Finding]] = {}
    for finding in errors:
        lacking = frozenset(lacks.get(_identity(finding), every))
        # What lacks a part of what another lacks has the same cause.
        wider = max((set_ for set_ in map(frozenset, lacks.values()) if lacking <= set_), key=len, default=lacking)
        groups.setdefault(wider, []).append(finding)
    for lacking, (first, *others) in groups.items():
        changes = "; ".join(places.change(better.repairs[number]) for number in sorted(lacking))
        scope = "this" if not others else f"this and the next {len(others)}" if others[1:] else "this and the next"
        yield replace(first, fixes=(*first.fixes, f'sync="repair" fixes {scope}, and was proved: {changes}'))
        yield from others


def _identity(finding: Finding) -> tuple[object, ...]:
    """What a finding is about, whatever epoch it was seen in."""
    return (finding.code, *((end.label, end.index, end.role.split(",")[0]) for end in finding.concerns))


def without_repair(better: CompiledSchedule, repair: Repair) -> LoweredProgram:
    """The repaired program with one repair taken back."""
    program = better.lowered
    entries = list(program.phase(repair.phase))
    place = next(n for n, entry in enumerate(entries) if entry.listed and entry.time_slot == repair.slot)
    entries[place : place + 1] = () if repair.before is None else (repair.taken_back(entries[place]),)
    return program.with_phases({repair.phase: entries})
