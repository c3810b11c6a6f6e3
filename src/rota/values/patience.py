"""Time for one compilation: takes a scheduler, gives it to one search after the other with what is left of its time."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from rota.order.modulo.scheduler import ModuloScheduler
from rota.solver.effort import spent


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """All searches of a compilation together end within the scheduler's `time_limit` from when this was made."""

    asked: ModuloScheduler
    started: float = field(default_factory=spent)

    @property
    def left(self) -> float:
        """Seconds, at least 0."""
        return max(self.started + self.asked.time_limit - spent(), 0.0)

    def scheduler(self, at_most: float | None = None) -> ModuloScheduler:
        """The scheduler with the time that is left, or less."""
        return replace(self.asked, time_limit=self.left if at_most is None else min(self.left, at_most))
