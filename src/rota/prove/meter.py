"""What a proof may take: takes a `Budget`, counts steps, gives which limit has ended it.

Steps decide, and they are the same on every machine: a step of waves that run together, four registers of a state that
is named and compared, pairs of accesses that are compared, z3's own units, instructions that a replay executes.  A
limit in seconds is a second one, which nobody sets but the user, and which the verdict names where it ended the proof.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

STEPS_PER_SECOND = 40_000  # on one processor of 2020, about
LEAST_SEARCH = 10_000  # steps in which a launch is looked for, however few the proof may take
_REGISTERS, _PAIRS, _UNITS = 4, 64, 100  # registers of a state, pairs of accesses, units of z3: as long as a step


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How much a proof may take: steps and states, and CPU seconds if the user wants a limit of these, too."""

    steps: int = 60 * STEPS_PER_SECOND
    seconds: float | None = None
    states: int = 40_000


class Meter:
    """Counts what a proof and the search for its witnesses take."""

    def __init__(self, budget: Budget) -> None:
        self.budget, self.spent, self._most = budget, 0, budget.steps
        self._ends = None if budget.seconds is None else time.process_time() + budget.seconds

    def spend(self, steps: int = 0, *, registers: int = 0, pairs: int = 0, units: int = 0) -> None:
        """Counts work that was done."""
        self.spent += steps + registers // _REGISTERS + pairs // _PAIRS + units // _UNITS

    @property
    def over(self) -> str:
        """Which limit is reached: of steps, of seconds, or none."""
        if self.spent > self._most:
            return "steps"
        return "seconds" if self._ends is not None and time.process_time() > self._ends else ""

    @property
    def units_left(self) -> int:
        """How many of z3's units the steps that are left are worth."""
        return max(self._most - self.spent, 0) * _UNITS

    def allow_search(self) -> None:
        """Where a proof has used up its steps, alarms are still asked about, for a quarter as many and a few."""
        self._most = max(self._most, self.spent + self.budget.steps // 4 + LEAST_SEARCH)
