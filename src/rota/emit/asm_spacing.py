"""Wait states that source must leave between instructions.

The compiler doesn't look into inline assembly. Each instruction between two others counts as one state, waits and
barriers as none: the compiler may join them.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rota.program.kinds import PATHS, Phase
from rota.targets.architecture import Architecture
from rota.targets.device import rates_of


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
