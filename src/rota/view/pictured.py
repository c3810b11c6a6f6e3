"""What is drawn: takes a compiled schedule or a lowered program, gives the program and what its makers say about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.program.entry import Op
from rota.program.lowered import Lowerable, LoweredProgram, Unstated
from rota.program.phase import Phase


class Key(NamedTuple):
    """An entry of a program: its phase and `time_slot`."""

    phase: Phase
    slot: int

    def __str__(self) -> str:
        return self.phase.at(self.slot)


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
    return Subject(schedule.lowered, (), {}, _as_written)


def _as_written(op: Op) -> str:
    """What an op was in somebody else's words, where these are kept."""
    return op.declared if isinstance(op.declared, str) else ""


def tile_word(schedule: Lowerable) -> str:
    """What the loop's clocks are for: of machine code it isn't known how much of K an iteration takes in."""
    return "iteration" if isinstance(schedule.lowered.semantics, Unstated) else "K-tile"


def a_tile(word: str) -> str:
    """The word with its article."""
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"
