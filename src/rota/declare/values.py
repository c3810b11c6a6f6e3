"""What a loop computes, without stages: takes values and the ops that make and use them, gives a frozen `LoopSpec`.

The author says where a value lives and how large it is; rota finds when its ops run, how many copies it needs, and what
must wait for what.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from rota.declare.check import bad_field, check_elements, check_ints, check_types
from rota.declare.limits import MOST_ITERATIONS_BACK, MOST_OPS, MOST_VALUES, check_count
from rota.errors import Concern, DeclarationError, Finding, SourceLine, did_you_mean


class Home(enum.Enum):
    """Where a value lives."""

    LDS = "LDS"  # shared by the workgroup, sized in bytes; each wave writes its slice
    REGISTERS = "registers"  # private to a wave, sized in registers per lane
    ACCUMULATOR = "accumulator"  # private to a wave, added to in any order, kept over all iterations
    INPUT = "input"  # registers that are filled before the loop and only read in it


class Work(enum.Enum):
    """What an op does, and so which units it occupies."""

    LOAD = "load"  # global memory to LDS, by DMA
    FRAGMENT = "fragment"  # LDS to registers
    MMA = "mma"
    VALU = "valu"
    STORE = "store"  # registers to LDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A named value of one iteration: bytes of LDS for the workgroup, or registers per lane.

    A register value may take over the registers of another one, `into` which it is then written.
    """

    name: str
    home: Home
    size: int
    into: str = ""

    def __post_init__(self) -> None:
        check_types(self, {"name": str, "home": Home, "into": str})
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
        check_ints(self, ("distance",), most=MOST_ITERATIONS_BACK)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopOp:
    """One op of one iteration; `inputs` are what it reads that never changes.

    `instructions` are issued by each wave; `moved` bytes pass through the memory path for the whole workgroup (loads,
    fragments, stores); `instruction` names the matrix instruction of an MMA; a VALU op takes a slot per instruction.
    """

    name: str
    work: Work
    reads: tuple[Read, ...] = ()
    writes: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
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
        check_elements(f"inputs of {self.name}", self.inputs, str)
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
        check_count(self.name, "ops", len(self.ops), MOST_OPS)
        check_count(self.name, "values", len(self.values), MOST_VALUES)
        _unique("value", [value.name for value in self.values])
        _unique("op", [op.name for op in self.ops])
        known = {value.name for value in self.values}
        for op in self.ops:
            for name in (*(read.value for read in op.reads), *op.writes, *op.inputs):
                if name not in known:
                    raise DeclarationError(
                        Finding(
                            code="D105",
                            message=f"{op.name} names the value {name!r}, which is not declared",
                            concerns=(Concern(label=op.name, source=op.source),),
                            fixes=did_you_mean(name, known),
                        )
                    )
        from rota.declare.homes import check_homes  # which reads the values of this module

        check_homes(self)
        self._check_writers()
        self._check_shared_registers()

    def value(self, name: str) -> Value:
        """The value of that name."""
        return next(value for value in self.values if value.name == name)

    def lds_bytes(self, copies: Mapping[str, int]) -> int:
        """What the tiles take, with so many copies of each; one of those that aren't named."""
        return sum(value.size * copies.get(value.name, 1) for value in self.values if value.home is Home.LDS)

    def registers(self, copies: Mapping[str, int]) -> int:
        """What all other values take, per lane, those that share registers once."""
        own = [value for value in self.values if value.home is not Home.LDS and not value.into]
        return sum(value.size * copies.get(value.name, 1) for value in own)

    def writers(self, name: str) -> tuple[LoopOp, ...]:
        """The ops that make a value; several may each make a part of an LDS tile, or add to an accumulator."""
        return tuple(op for op in self.ops if name in op.writes)

    def registers_of(self, name: str) -> tuple[str, ...]:
        """The values that take turns in the registers of a value, in the order in which they do."""
        first = self.value(name)
        while first.into:
            first = self.value(first.into)
        turns = [first.name]
        follower = {value.into: value.name for value in self.values if value.into}
        while turns[-1] in follower:
            turns.append(follower[turns[-1]])
        return tuple(turns)

    def _check_shared_registers(self) -> None:
        known = {value.name: value for value in self.values}
        places = {value.name: place for place, value in enumerate(self.values)}
        taken: set[str] = set()
        for place, value in enumerate(self.values):
            if not value.into:
                continue
            before = known.get(value.into)
            if before is None or before.home is not Home.REGISTERS or value.home is not Home.REGISTERS:
                wrong = "which is no register value"
            elif before.size != value.size:
                wrong = f"which has {before.size} registers"
            elif value.into in taken or places[value.into] >= place:
                wrong = "which another value took over, or which comes later"
            else:
                taken.add(value.into)
                continue
            raise DeclarationError(
                Finding(
                    code="D108",
                    message=f"{value.name}, {value.size} registers, can't be written into {value.into!r}, {wrong}",
                    evidence=(("value", value.name), ("into", value.into)),
                )
            )

    def _check_writers(self) -> None:
        for value in self.values:
            writers = self.writers(value.name)
            several = value.home is not Home.REGISTERS
            if value.home is Home.INPUT and not writers:
                continue
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
