"""What a loop computes, without stages: values, and the ops that make and use them.

The author says where a value lives and how large it is. rota finds when its ops run, how many copies it needs, and what
must wait for what.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rota.check import bad_field, check_elements, check_ints, check_types, is_int, look_up
from rota.errors import Concern, DeclarationError, Finding, SourceLine, did_you_mean
from rota.program.kinds import BITS, LDS_READS, WIDEST, Home, OpKind, takes_formats, takes_scales

# Size limits.
#
# The largest loops that ship have 401 ops; a body of 2,048 compiles in less than a minute.

MOST_OPS = 2_048  # of one iteration
MOST_VALUES = 2 * MOST_OPS  # a value for each op, and as many that the loop only reads
MOST_ITERATIONS_BACK = 1_024  # a copy for each; a lane has 512 registers
MOST_ENTRIES = 4 * MOST_OPS  # that a remainder adds outside the loop
MOST_INSTRUCTIONS = 1 << 13  # that one wave issues in all phases: 64 KiB of code, all that an instruction cache holds


def check_count(owner: str, what: str, count: int, most: int, source: SourceLine | None = None) -> None:
    if count <= most:
        return
    raise DeclarationError.of(
        "D113",
        f"{owner} has {count:,} {what}; rota accepts at most {most:,}",
        concerns=(Concern(label=owner, source=source),) if source else (),
        evidence=((what, count), ("at most", most)),
    )


OPERANDS = ("A", "B")
"""The factors of C = A x B^T."""
SCALE_OPERANDS = ("A_scale", "B_scale")
"""The scales of their blocks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A named value of one iteration: bytes of LDS for the workgroup, or registers per lane.

    A register value may take over the registers of another one, `into` which it is then written.  An LDS tile of a GEMM
    may say of which `operand` it holds rows, "A" or "B", or the scales of them, "A_scale" or "B_scale".
    """

    name: str
    home: Home
    size: int
    into: str = ""
    operand: str = ""

    def __post_init__(self) -> None:
        check_types(self, {"name": str, "home": Home, "into": str, "operand": str})
        check_ints(self, ("size",), least=1)
        if self.operand not in ("", *OPERANDS, *SCALE_OPERANDS):
            raise bad_field(self, "operand", self.operand, '"A" or "B", or nothing; of scales "A_scale" or "B_scale"')
        if self.operand and self.home is not Home.LDS:
            raise bad_field(self, "operand", self.operand, f"nothing: {self.name} is no LDS tile")
        if not self.name.isidentifier():
            raise bad_field(self, "name", self.name, "a name that source code can use")


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """An operand: the value of this iteration, or of `distance` iterations before.

    Of an LDS tile that several ops fill, `parts` are those that are read, a K slice for instance: the numbers of the
    ops that bring them, in the order in which they are declared.  Without any it is the whole tile.
    """

    value: str
    distance: int = 0
    parts: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_types(self, {"value": str})
        check_ints(self, ("distance",), most=MOST_ITERATIONS_BACK)
        check_elements(f"parts of {self.value}", self.parts, int)
        if not all(is_int(part) and part >= 0 for part in self.parts) or list(self.parts) != sorted(set(self.parts)):
            raise bad_field(self, "parts", self.parts, "integers from 0 on, each once, the least first")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopOp:
    """One op of one iteration; `inputs` are what it reads that never changes.

    `instructions` are issued by each wave; `moved` bytes pass through the memory path for the whole workgroup (loads,
    fragments, stores); `instruction` names the matrix instruction of an MMA; a VALU op takes a slot per instruction.

    Of a block-scaled matrix op `scales` are those of its operands that scale the others; `formats` are those of the
    elements of its factors, or of all, where its instruction takes several.
    """

    name: str
    kind: OpKind
    reads: tuple[Read, ...] = ()
    writes: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    instructions: int = 1
    moved: int = 0
    instruction: str = ""
    scales: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    source: SourceLine | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_types(self, {"name": str, "kind": OpKind, "instruction": str})
        check_ints(self, ("instructions",), least=1)
        check_ints(self, ("moved",))
        check_elements(f"reads of {self.name}", self.reads, Read)
        check_elements(f"writes of {self.name}", self.writes, str)
        check_elements(f"inputs of {self.name}", self.inputs, str)
        check_elements(f"scales of {self.name}", self.scales, str)
        for each in check_elements(f"formats of {self.name}", self.formats, str):
            look_up(each, BITS, f"{self.name} names the element format {each!r}, which is not known")
        if not self.name.isidentifier():
            raise bad_field(self, "name", self.name, "a name that source code can use", self.source)

    def __str__(self) -> str:
        return self.name

    @property
    def bits(self) -> int:
        """Bits of an element of the wider factor; the widest format where none is stated."""
        return max((BITS[each] for each in self.formats), default=WIDEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSpec:
    """A loop as values and ops, checked: names are unique and known, every value that is read has a writer."""

    name: str
    waves: int
    values: tuple[Value, ...]
    ops: tuple[LoopOp, ...]
    # By name, since derivations ask for them once per read and write.
    _values: Mapping[str, Value] = field(init=False, repr=False, compare=False)
    _writers: Mapping[str, tuple[LoopOp, ...]] = field(init=False, repr=False, compare=False)
    _registers: Mapping[str, tuple[str, ...]] = field(init=False, repr=False, compare=False)

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
                    raise DeclarationError.of(
                        "D105",
                        f"{op.name} names the value {name!r}, which is not declared",
                        concerns=(Concern(label=op.name, source=op.source),),
                        fixes=did_you_mean(name, known),
                    )

        writers: dict[str, list[LoopOp]] = {name: [] for name in known}
        for op in self.ops:
            for name in dict.fromkeys(op.writes):
                writers[name].append(op)
        object.__setattr__(self, "_values", {value.name: value for value in self.values})
        object.__setattr__(self, "_writers", {name: tuple(ops) for name, ops in writers.items()})
        check_homes(self)
        self._check_writers()
        self._check_shared_registers()
        object.__setattr__(self, "_registers", dict(self._turns()))

    @property
    def sizes(self) -> Mapping[str, int]:
        """Bytes or registers of each value, by name."""
        return {value.name: value.size for value in self.values}

    def value(self, name: str) -> Value:
        return self._values[name]

    def lds_bytes(self, copies: Mapping[str, int]) -> int:
        """What the tiles take with this many copies of each; one copy of those that aren't named."""
        return sum(value.size * copies.get(value.name, 1) for value in self.values if value.home is Home.LDS)

    def registers(self, copies: Mapping[str, int]) -> int:
        """Registers per lane of all other values; values that share registers count once."""
        elsewhere = (Home.LDS, Home.MEMORY)
        own = [value for value in self.values if value.home not in elsewhere and not value.into]
        return sum(value.size * copies.get(value.name, 1) for value in own)

    def writers(self, name: str) -> tuple[LoopOp, ...]:
        """The ops that make a value; several may each make a part of an LDS tile, or add to an accumulator."""
        return self._writers[name]

    def writers_of(self, read: Read) -> tuple[LoopOp, ...]:
        """The ops that make what is read; of a tile, those of the parts that are read."""
        writers = self.writers(read.value)
        return tuple(writers[part] for part in read.parts) if read.parts else writers

    def registers_of(self, name: str) -> tuple[str, ...]:
        """The values that take turns in the registers of a value, in that order."""
        return self._registers[name]

    def _turns(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        follower = {value.into: value.name for value in self.values if value.into}
        for first in (value.name for value in self.values if not value.into):
            turns = [first]
            while turns[-1] in follower:
                turns.append(follower[turns[-1]])
            yield from ((name, tuple(turns)) for name in turns)

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
            raise DeclarationError.of(
                "D108",
                f"{value.name}, {value.size} registers, can't be written into {value.into!r}, {wrong}",
                evidence=(("value", value.name), ("into", value.into)),
            )

    def _check_writers(self) -> None:
        for value in self.values:
            writers = self.writers(value.name)
            several = value.home is not Home.REGISTERS
            if value.home is Home.INPUT and not writers:
                continue
            if not writers or (len(writers) > 1 and not several):
                raise DeclarationError.of(
                    "D108",
                    f"{value.home.value} value {value.name} has {len(writers)} writers; "
                    + ("it needs at least one" if several else "it needs exactly one"),
                    concerns=tuple(Concern(label=op.name, role="writes it", source=op.source) for op in writers),
                    evidence=(("writers", len(writers)), ("value", value.name)),
                )


def _unique(what: str, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise DeclarationError.of(
                "D108",
                f"{names.count(name)} {what}s are named {name!r}",
                evidence=((f"{what}s of that name", names.count(name)), ("allowed", 1)),
            )


_FACTORS = ("A", "B")


def check_homes(spec: LoopSpec) -> None:
    """Check that every op reads and writes where its kind can."""
    for op in spec.ops:
        for finding in _report_misplaced(spec, op):
            raise DeclarationError(finding)


def _report_misplaced(spec: LoopSpec, op: LoopOp) -> Iterator[Finding]:
    home = {value.name: value.home for value in spec.values}
    for name in (read.value for read in op.reads):
        if home[name] not in op.kind.reads:
            yield _wrong(op, "reads", name, home[name], allowed=op.kind.reads, fixes=_suggest_read(spec, name))
    for name in op.inputs:
        if home[name] is not Home.INPUT:
            yield _wrong(op, "takes as input", name, home[name], allowed=(Home.INPUT,))
    for name in op.writes:
        if home[name] not in op.kind.writes:
            yield _wrong(op, "writes", name, home[name], allowed=op.kind.writes)
    if op.kind in LDS_READS and Home.LDS not in (home[read.value] for read in op.reads):
        yield _lacks(op, "reads no LDS tile")
    if not op.writes:
        yield _lacks(op, "writes nothing")
    yield from _find_missing_parts(spec, op)
    yield from _find_wrong_factors(op)


def _find_missing_parts(spec: LoopSpec, op: LoopOp) -> Iterator[Finding]:
    for read in op.reads:
        has = len(spec.writers(read.value)) if spec.value(read.value).home is Home.LDS else 0
        if read.parts and read.parts[-1] >= has:
            which = f"is in {has} parts, one for each op that fills it" if has else "is no LDS tile, and in no parts"
            yield Finding(
                "D111",
                f"{op.name} reads part {read.parts[-1]} of {read.value}, which {which}",
                concerns=(Concern(label=op.name, role=op.kind.does, source=op.source),),
                evidence=((f"parts of {read.value}", has), ("read", ", ".join(map(str, read.parts)))),
            )


def _find_wrong_factors(op: LoopOp) -> Iterator[Finding]:
    """Report scales and formats that the op's instruction doesn't take."""
    operands = {*(read.value for read in op.reads), *op.inputs}
    for name in op.scales:
        if not takes_scales(op.instruction):
            yield _lacks(op, f"is scaled by {name}; {op.instruction or 'its instruction'} takes no scales")
        if name not in operands:
            yield _lacks(op, f"is scaled by {name}, which it doesn't read")
    if len(op.formats) > len(_FACTORS):
        yield _lacks(op, f"has elements of {len(op.formats)} formats for {len(_FACTORS)} factors")
    if op.formats and not takes_formats(op.instruction):
        said = ", ".join(op.formats)
        yield _lacks(op, f"has elements of {said}; {op.instruction or 'its instruction'} doesn't leave that open")


def _suggest_read(spec: LoopSpec, name: str) -> tuple[str, ...]:
    """Suggest what to read from a tile where the op needs registers."""
    if spec.value(name).home is not Home.LDS:
        return ()
    read = [op.writes[0] for op in spec.ops if op.kind in LDS_READS and name in (r.value for r in op.reads)]
    if read:
        return (f"did you mean {read[0]!r}, which is read from {name}?",)
    return (f"did you mean loop.fragment(..., {name!r}, registers=...)? It reads the tile into registers",)


def _wrong(
    op: LoopOp, does: str, name: str, home: Home, *, allowed: tuple[Home, ...], fixes: tuple[str, ...] = ()
) -> Finding:
    expected = " or ".join(each.value for each in allowed) or "nothing"
    rule = f"an op of kind {op.kind.word} {does} {expected}"
    return Finding(
        "D111",
        f"{op.name} {does} {name}, which lives in {_place(home)}; {rule}",
        concerns=(Concern(label=op.name, role=op.kind.does, source=op.source),),
        evidence=((f"home of {name}", home.value), ("expected", expected)),
        fixes=fixes,
    )


def _place(home: Home) -> str:
    return {Home.ACCUMULATOR: "an accumulator", Home.INPUT: "the loop's inputs"}.get(home, home.value)


def _lacks(op: LoopOp, what: str) -> Finding:
    return Finding(
        "D111",
        f"{op.name} {what}; an op of kind {op.kind.word} is {op.kind.does}",
        concerns=(Concern(label=op.name, source=op.source),),
        evidence=(("reads", ", ".join(read.value for read in op.reads) or "nothing"), ("writes", ", ".join(op.writes))),
    )
