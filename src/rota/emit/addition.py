"""A wait that a compiler adds: said in advance by the emitter of a language, expected by the audit."""

from __future__ import annotations

from dataclasses import dataclass

from rota.program.phase import Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    """A wait before the data instruction of that number in its phase, for all but `count` on its counter.

    With `at_barrier` it stands before the first barrier that comes before that instruction.
    """

    phase: Phase
    before: int
    counter: str
    count: int
    at_barrier: bool = False
