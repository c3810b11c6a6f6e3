"""What is drawn: takes a compiled schedule or a lowered program, gives the program and what its makers say about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.program.entry import Op
from rota.program.lowered import Lowerable, LoweredProgram
from rota.program.phase import Phase


class Key(NamedTuple):
    """An entry of a program: its phase and `time_slot`."""

    phase: Phase
    slot: int

    def __str__(self) -> str:
        return f"{self.phase.value.lower()} #{self.slot}"


class Subject(NamedTuple):
    """A program; facts for its headline, why entries were added, and where an op was planned, where that is known."""

    program: LoweredProgram
    facts: tuple[str, ...]
    added: Mapping[Key, str]
    planned: Callable[[Op], str]


def subject_of(schedule: Lowerable) -> Subject:
    """The program alone says what happens; a compiled schedule also says how that came about."""
    if isinstance(schedule, CompiledSchedule):
        added = {Key(repair.phase, repair.slot): repair.reason for repair in schedule.repairs}
        return Subject(schedule.lowered, schedule.headline, added, schedule.planned)
    return Subject(schedule.lowered, (), {}, lambda _op: "")
