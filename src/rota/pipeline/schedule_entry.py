"""One issued op: takes an op and its place, gives a frozen `ScheduleEntry`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rota.check import check_ints, check_types
from rota.pipeline.op import OpDesc
from rota.printing import WrappedTuple
from rota.program.origin import Origin
from rota.program.phase import Phase


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ScheduleEntry:
    """An op with its ordinal in its phase; a prefetch may be left out when no tile is left to fetch."""

    op: OpDesc
    time_slot: int
    phase: Phase
    is_prefetch: bool = False

    def __post_init__(self) -> None:
        kinds = (type(self.op), type(self.time_slot), type(self.phase), type(self.is_prefetch))
        if kinds != (OpDesc, int, Phase, bool) or self.time_slot < 0:  # one test: a phase has hundreds of entries
            check_types(self, {"op": OpDesc, "phase": Phase, "is_prefetch": bool})
            check_ints(self, ("time_slot",))

    @property
    def origin(self) -> Origin | None:
        """What made the entry: an op of the body, a hook, a knob, a derivation rule, a repair."""
        return self.op.origin

    def __repr__(self) -> str:
        return f"<{self}>"

    def __str__(self) -> str:
        return f"{self.phase.at(self.time_slot)} {self.op}" + (" (prefetch)" if self.is_prefetch else "")


def entries_of(ops: Iterable[OpDesc], phase: Phase) -> tuple[ScheduleEntry, ...]:
    """The ops of a phase, numbered; none is a prefetch."""
    return WrappedTuple(ScheduleEntry(op=op, time_slot=slot, phase=phase) for slot, op in enumerate(ops))
