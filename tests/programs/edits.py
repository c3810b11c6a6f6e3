"""Edits of a lowered program: takes it, gives it with one entry changed, left out or put in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rota.program.entry import Entry
from rota.program.kinds import Phase
from rota.program.lowered import Lowerable, LoweredProgram


def changed(made: Lowerable, phase: Phase, place: int, **changes: Any) -> LoweredProgram:
    """The program with some fields of one entry changed."""
    entries = list(made.lowered.phase(phase))
    entries[place] = replace(entries[place], **changes)
    return made.lowered.with_phases({phase: entries})


def without(made: Lowerable, phase: Phase, place: int) -> LoweredProgram:
    """The program without one entry."""
    entries = list(made.lowered.phase(phase))
    del entries[place]
    return made.lowered.with_phases({phase: entries})


def with_entry(made: Lowerable, phase: Phase, place: int, entry: Entry) -> LoweredProgram:
    """The program with one entry more."""
    entries = list(made.lowered.phase(phase))
    entries.insert(place, entry)
    return made.lowered.with_phases({phase: entries})
