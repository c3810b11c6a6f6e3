"""What is decided before anything is printed: every wait explicit, repaired and proved, and the wait states.

LLVM adds a wait of its own before a register is used while its load is in flight. Planned waits take their place, so
that the machine code holds no wait which the schedule doesn't.

The compiler doesn't look into inline assembly, so source must leave wait states between instructions. Each instruction
between two others counts as one state, waits and barriers as none: the compiler may join them.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.compiled.proved import repaired
from rota.emit.text import check_words
from rota.errors import Concern, Finding, Severity
from rota.program.kinds import PATHS, Phase
from rota.sync.repair import Repair
from rota.targets.architecture import Architecture
from rota.targets.device import rates_of

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


class Maker(enum.Enum):
    """What made a value, as far as wait states depend on it."""

    MATRIX = "a matrix instruction"
    TRANSCENDENTAL = "a transcendental"
    PACKED = "a packed instruction"
    VECTOR = "another vector instruction"
    MEMORY = "a load"


_VECTOR = (Maker.TRANSCENDENTAL, Maker.PACKED, Maker.VECTOR)


class Issue(NamedTuple):
    """What a statement issues: the kind of its instructions, the places they read and write, and how many they are.

    Places that the compiler sees, as those of loads, need not be named.
    """

    maker: Maker
    reads: tuple[Hashable, ...] = ()
    writes: tuple[Hashable, ...] = ()
    instructions: int = 1


@dataclass(frozen=True, slots=True)
class AsmSpacing:
    """The wait states of an architecture, for kernels with one matrix instruction."""

    architecture: Architecture
    instruction: str

    def between(self, first: Maker, then: Maker) -> int:
        """Wait states before `then`, which reads or overwrites what `first` made."""
        hazards = self.architecture.hazards
        if first is Maker.MATRIX and then is not Maker.MATRIX:
            return rates_of(self.architecture).passes(self.instruction) + hazards["result"].value
        if first in _VECTOR and then is Maker.MATRIX:
            return hazards["operand"].value
        if first is Maker.TRANSCENDENTAL and then in (Maker.PACKED, Maker.VECTOR):
            return hazards["transcendental"].value
        if first is Maker.PACKED and then in _VECTOR:
            return hazards["packed"].value
        return 0

    def find_missing(
        self, phases: Mapping[Phase, Sequence[Issue | None]], paths: Sequence[Sequence[Phase]] = PATHS
    ) -> dict[tuple[Phase, int], int]:
        """Wait states missing before each statement, by phase and number; the most that any path there requires."""
        missing: dict[tuple[Phase, int], int] = {}
        for path in paths:
            made: dict[Hashable, tuple[Maker, int]] = {}
            now = 0
            for phase in path:
                for number, each in enumerate(phases[phase]):
                    if each is None:
                        continue
                    makers = [made[place] for place in (*each.reads, *each.writes) if place in made]
                    ready = max((at + self.between(first, each.maker) for first, at in makers), default=0)
                    where = phase, number
                    missing[where] = max(missing.get(where, 0), ready - now)
                    now += missing[where] + each.instructions
                    made.update(dict.fromkeys(each.writes, (each.maker, now)))
        return {where: states for where, states in missing.items() if states}
