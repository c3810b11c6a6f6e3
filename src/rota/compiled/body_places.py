"""Findings in the author's terms: takes what a proof found among a schedule's entries, gives places in the body.

An author writes a body; how its ops are numbered among the waits and barriers of three phases is internal to rota.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.errors import Concern, Finding
from rota.program.entry import Op
from rota.program.lowered import LoweredProgram
from rota.program.phase import Phase

if TYPE_CHECKING:
    from rota.sync.repair import Repair

_ENTRY = re.compile(rf"at ({'|'.join(phase.value.lower() for phase in Phase)})\[(\d+)\]")


class BodyPlaces:
    """Where the entries of a schedule, or of a program that was made from it, come from."""

    def __init__(self, compiled: CompiledSchedule, program: LoweredProgram | None = None) -> None:
        lowered = program or compiled.lowered
        self._index = compiled.body_index()
        self._phases = {
            phase.value.lower(): [entry for entry in lowered.phase(phase) if entry.listed] for phase in Phase
        }

    def finding(self, finding: Finding) -> Finding:
        """The same finding; what it says about entries is said about ops of the body."""
        return replace(
            finding,
            concerns=tuple(map(self.concern, finding.concerns)),
            evidence=tuple(
                (name, _ENTRY.sub(self._in_words, text) if isinstance(text, str) else text)
                for name, text in finding.evidence
            ),
        )

    def change(self, repair: Repair) -> str:
        """What a repair does, and next to which op of the body."""
        what = f"{repair.op} for {repair.before}" if repair.before else str(repair.op)
        return f"{what} {self._near(repair.phase.value.lower(), repair.slot)}"

    def concern(self, concern: Concern) -> Concern:
        """One end, numbered as in the body; what is no op of the body is told by its neighbour."""
        entries = self._phases.get(concern.phase, ())
        if concern.index is None or concern.index >= len(entries) or str(entries[concern.index].op) != concern.label:
            return concern  # the stagger's own barriers, or none of the entries
        index = self.index(entries[concern.index].op)
        if index is not None:
            return replace(concern, index=index, phase="")
        return replace(
            concern, index=None, phase="", role=f"{concern.role} ({self._near(concern.phase, concern.index)})"
        )

    def _in_words(self, found: re.Match[str]) -> str:
        return self._near(found[1], int(found[2]))

    def _near(self, phase: str, slot: int) -> str:
        """The next op of the body, or the last one if none follows."""
        entries = self._phases[phase]
        for entry in entries[slot:]:
            if (index := self.index(entry.op)) is not None:
                return f"in the {phase} in front of {entry.op} (#{index})"
        for entry in reversed(entries[:slot]):
            if (index := self.index(entry.op)) is not None:
                return f"in the {phase} behind {entry.op} (#{index})"
        return f"in the {phase}"

    def index(self, op: Op) -> int | None:
        """Where the body has an op."""
        return self._index(op.declared)
