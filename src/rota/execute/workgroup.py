"""The waves that run together: takes a program, gives what each wave executes and which slices of a tile are whose.

A tile in LDS has as many slices as the workgroup has waves.  The waves of the roles that write it share them out: where
all waves write, each has one; where a producer's waves write alone, theirs are all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rota.execute.wave_trace import Trace
from rota.program.effects import Place
from rota.program.lowered import LoweredProgram

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def writer_of_slices(writers: Sequence[int], slices: int) -> list[int]:
    """The wave that writes each slice of a tile; each of the writers has as many as any other, or one more or less."""
    return [writers[number * len(writers) // slices] for number in range(slices)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workgroup:
    """`waves` of each role, and what a wave of each role executes."""

    program: LoweredProgram
    traces: tuple[Trace, ...]
    waves: int
    _writers: dict[Place, list[int]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        roles: dict[Place, set[int]] = {}
        for entry in self.program.entries:
            # A role that executes an op that isn't its own writes as well.
            executing = range(len(self.traces)) if entry.roles is None else entry.roles
            for place in entry.effect.writes:
                roles.setdefault(place, set()).update(executing, self.program.doing(entry.op.name))
        for place, own in roles.items():
            self._writers[place] = self._waves_of_roles(own)

    @property
    def size(self) -> int:
        """Waves of all roles; wave w belongs to role w // waves."""
        return len(self.traces) * self.waves

    def trace_of(self, wave: int) -> Trace:
        """What one wave executes."""
        return self.traces[wave // self.waves]

    def waves_of(self, role: int) -> slice:
        """The waves of one role."""
        return slice(role * self.waves, (role + 1) * self.waves)

    def doing(self, op: str) -> list[int]:
        """The waves that do an op; all, if none does, since then it is missing everywhere."""
        return self._waves_of_roles(self.program.doing(op) or range(len(self.traces)))

    def writers(self, place: Place) -> list[int]:
        """The waves that write a place; all, if nobody does, since then it is missing everywhere."""
        return self._writers.get(place) or list(range(self.size))

    def per_wave(self, rows: Sequence[Sequence[int]], padding: int) -> NDArray[np.intp]:
        """A row per role as an array [wave, column], short rows filled up."""
        import numpy as np

        table = np.full((len(rows), max(map(len, rows))), padding, dtype=np.intp)
        for row, values in zip(table, rows, strict=True):
            row[: len(values)] = values
        return np.repeat(table, self.waves, axis=0)

    def _waves_of_roles(self, roles: Iterable[int]) -> list[int]:
        return [role * self.waves + number for role in sorted(roles) for number in range(self.waves)]
