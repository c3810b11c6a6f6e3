"""The schedule as it is written, decided before anything is printed: every wait explicit, repaired and proved.

LLVM adds a wait of its own before a register is used while its load is in flight. Planned waits take their place, so
that the machine code holds no wait which the schedule doesn't.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.compiled.proved import repaired
from rota.emit.text import check_words
from rota.errors import Concern, Finding, Severity
from rota.program.kinds import Phase
from rota.sync.repair import Repair

_Compiled = TypeVar("_Compiled", bound=CompiledSchedule)

_FOUND_BY_THE_PROOF = ("R", "V", "B", "L")


def plan_schedule(compiled: _Compiled) -> _Compiled:
    """The schedule that is printed; what source has no words for is refused first."""
    check_words(compiled.lowered)
    return with_register_waits(compiled)


def with_register_waits(compiled: _Compiled) -> _Compiled:
    """The schedule, repaired and proved without help from a compiler; repairs of before keep their reasons."""
    if not compiled.compiler_tracks_registers and compiled.certificate is not None:
        return compiled
    found = tuple(finding for finding in compiled.findings if not finding.code.startswith(_FOUND_BY_THE_PROOF))
    done = repaired(replace(compiled, compiler_tracks_registers=False, repairs=(), findings=found, certificate=None))
    if compiled.certificate is None and done.repairs:
        done = replace(done, findings=(*done.findings, _not_as_given(done.repairs)))
    return replace(done, repairs=tuple(_merge_waits(compiled, done)))


def _not_as_given(repairs: Sequence[Repair]) -> Finding:
    """The source differs from the schedule that was given, which nobody proved: its reader must know."""
    return Finding(
        "W104",
        "the schedule as given is not proved; waits or barriers were added before it was written",
        severity=Severity.WARNING,
        concerns=tuple(Concern(label=str(each.op), role=each.phase.at(each.slot)) for each in repairs),
        evidence=(("added or strengthened", len(repairs)),),
        fixes=("verify() says what the schedule as given lacks",),
    )


def _merge_waits(before: CompiledSchedule, after: CompiledSchedule) -> list[Repair]:
    new = {(repair.phase, repair.slot): repair for repair in after.repairs}
    merged = dict(new)
    for phase in Phase:
        added = {slot for (where, slot), repair in new.items() if where is phase and repair.before is None}
        kept = [slot for slot in range(len(after.phase(phase))) if slot not in added]
        for repair in before.repairs:
            if repair.phase is phase:
                slot = kept[repair.slot]
                again = new.get((phase, slot))
                merged[phase, slot] = _twice(repair, again) if again else replace(repair, slot=slot)
    order = list(Phase)
    return sorted(merged.values(), key=lambda repair: (order.index(repair.phase), repair.slot))


def _twice(first: Repair, again: Repair) -> Repair:
    """Two changes of one entry as one: from the first state to the last."""
    return replace(again, before=first.before, count_before=first.count_before)
