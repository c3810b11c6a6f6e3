"""What a loop computes, without stages: takes values and the ops that make and use them, gives a frozen `LoopSpec`.

The author says where a value lives and how large it is; rota finds when its ops run, how many copies it needs, and what
must wait for what.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from rota.declare.check import bad_field, check_elements, check_ints, check_types
from rota.errors import Concern, DeclarationError, Finding, SourceLine, did_you_mean


class Home(enum.Enum):
    """Where a value lives."""

    LDS = "LDS"  # shared by the workgroup, sized in bytes; each wave writes its slice
    REGISTERS = "registers"  # private to a wave, sized in registers per lane
    ACCUMULATOR = "accumulator"  # private to a wave, added to in any order, kept over all iterations


class Work(enum.Enum):
    """What an op does, and so which units it occupies."""

    LOAD = "load"  # global memory to LDS, by DMA
    FRAGMENT = "fragment"  # LDS to registers
    MMA = "mma"
    VALU = "valu"
    STORE = "store"  # registers to LDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A named value of one iteration: bytes of LDS for the workgroup, or registers per lane."""

    name: str
    home: Home
    size: int

    def __post_init__(self) -> None:
        check_types(self, {"name": str, "home": Home})
        check_ints(self, ("size",), least=1)
        if not self.name.isidentifier():
            raise bad_field(self, "name", self.name, "a name that could stand in source code")


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """An operand: the value of this iteration, or of `distance` iterations before."""

    value: str
    distance: int = 0

    def __post_init__(self) -> None:
        check_types(self, {"value": str})
        check_ints(self, ("distance",))


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopOp:
    """One op of one iteration.

    `instructions` are issued by each wave; `moved` bytes pass through the memory path for the whole workgroup (loads,
    fragments, stores); `instruction` names the matrix instruction of an MMA; a VALU op takes a slot per instruction.
    """

    name: str
    work: Work
    reads: tuple[Read, ...] = ()
    writes: tuple[str, ...] = ()
    instructions: int = 1
    moved: int = 0
    instruction: str = ""
    source: SourceLine | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_types(self, {"name": str, "work": Work, "instruction": str})
        check_ints(self, ("instructions",), least=1)
        check_ints(self, ("moved",))
        check_elements(f"reads of {self.name}", self.reads, Read)
        check_elements(f"writes of {self.name}", self.writes, str)
        if not self.name.isidentifier():
            raise bad_field(self, "name", self.name, "a name that could stand in source code", self.source)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSpec:
    """A loop as values and ops, checked: names are unique and known, every value that is read has a writer."""

    name: str
    waves: int
    values: tuple[Value, ...]
    ops: tuple[LoopOp, ...]

    def __post_init__(self) -> None:
        check_types(self, {"name": str})
        check_ints(self, ("waves",), least=1)
        check_elements("values", self.values, Value)
        check_elements("ops", self.ops, LoopOp)
        _unique("value", [value.name for value in self.values])
        _unique("op", [op.name for op in self.ops])
        known = {value.name for value in self.values}
        for op in self.ops:
            for name in (*(read.value for read in op.reads), *op.writes):
                if name not in known:
                    raise DeclarationError(
                        Finding(
                            code="D105",
                            message=f"{op.name} names the value {name!r}, which is not declared",
                            concerns=(Concern(label=op.name, source=op.source),),
                            fixes=did_you_mean(name, known),
                        )
                    )
        self._check_writers()

    def value(self, name: str) -> Value:
        """The value of that name."""
        return next(value for value in self.values if value.name == name)

    def writers(self, name: str) -> tuple[LoopOp, ...]:
        """The ops that make a value; several may each make a part of an LDS tile, or add to an accumulator."""
        return tuple(op for op in self.ops if name in op.writes)

    def _check_writers(self) -> None:
        for value in self.values:
            writers = self.writers(value.name)
            several = value.home is not Home.REGISTERS
            if not writers or (len(writers) > 1 and not several):
                raise DeclarationError(
                    Finding(
                        code="D108",
                        message=f"{value.home.value} value {value.name} has {len(writers)} writers; "
                        + ("it needs at least one" if several else "it needs exactly one"),
                        concerns=tuple(Concern(label=op.name, role="writes it", source=op.source) for op in writers),
                        evidence=(("writers", len(writers)), ("value", value.name)),
                    )
                )


def _unique(what: str, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise DeclarationError(
                Finding(
                    code="D108",
                    message=f"{names.count(name)} {what}s are named {name!r}",
                    evidence=((f"{what}s of that name", names.count(name)), ("allowed", 1)),
                )
            )
