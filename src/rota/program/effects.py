"""What an op does to the machine: takes nothing, gives `Effect`, and the places and versions that effects are about.

An effect is the semantics of an op: the proof and the executor both read it, each with an algorithm of its own (see
docs/machine_model.md).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NamedTuple

from rota.program.kinds import OpKind

WORKGROUP = "workgroup"
"""The barrier at which all waves of a workgroup meet."""


class Space(enum.Enum):
    """Where a place is."""

    __hash__ = object.__hash__  # members are single; an enum's own hash is Python code, and places are keys everywhere

    LDS = "LDS"  # shared by the workgroup; each wave writes its own slice of a tile and reads the whole
    REGISTER = "register"  # private to a wave
    ACCUMULATOR = "accumulator"  # private to a wave; only computes touch it
    MEMORY = "memory"  # global; the loop writes it and never reads it

    @property
    def is_private(self) -> bool:
        """Does each wave have its own?"""
        return self in (Space.REGISTER, Space.ACCUMULATOR)


class Place(NamedTuple):
    """Something that ops read and write: a copy of something that has a name, and a part of that copy.

    An LDS tile is in as many parts as ops write it.  Of an accumulator grid, copy and part are row and column.
    """

    space: Space
    name: str
    copy: int = 0
    part: int = 0

    def __str__(self) -> str:
        if self.space is Space.LDS:
            return f"LDS {self.name}[{self.copy}][{self.part}]"
        if self.space is Space.ACCUMULATOR:
            return f"accumulator {self.name}[{self.copy},{self.part}]"
        return f"{'registers' if self.space is Space.REGISTER else 'memory'} {self.name}[{self.copy}]"


class Version(NamedTuple):
    """A value, or an op, of one iteration; in an effect the iteration is counted from the trip's k."""

    name: str
    iteration: int

    def at(self, k: int) -> Version:
        """The same, counted from iteration 0."""
        return Version(self.name, self.iteration + k)

    def __str__(self) -> str:
        return f"{self.name} of iteration {self.iteration}"


NOTHING_DECLARED = Version("", 0)
"""The instance of an effect that belongs to no op of a loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One op as the machine sees it.

    `tokens` are appended to `counter` when it issues; a wait leaves at most `wait_value` of them pending.  `arrives`
    and `awaits` name a barrier: a wave signals its arrival, and continues when all that take part have arrived; an
    ordinary barrier does both.  A priority has its level in `wait_value`; a hint to the compiler its count there, and
    in `tokens` the group of instructions that it counts.

    What a program computes is stated in one of two ways, the same for all of its ops (see `LoweredProgram.semantics`).
    Either an op says exactly what it is: the `instance` it stands for, the versions it `wants` in the places it reads,
    and those it `makes` in the places it writes.  Or it passes on whatever K-tile its operands hold: then `fetches` is
    the tile that a load brings, relative to the trip's k; None means the tile after the one it fetched last.
    """

    kind: OpKind
    counter: str | None = None
    tokens: int = 0
    wait_value: int = 0
    arrives: str | None = None
    awaits: str | None = None
    reads: tuple[Place, ...] = ()
    writes: tuple[Place, ...] = ()
    fetches: int | None = None
    instance: Version = NOTHING_DECLARED
    wants: tuple[tuple[Place, Version], ...] = ()
    makes: tuple[tuple[Place, Version], ...] = ()
