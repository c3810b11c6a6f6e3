"""What the proof needs of an instruction, as data: registers are bits of a number, row r as operands count them."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rota.isa.hazards.spacing import rows_in
from rota.isa.wave.operand import EXEC, M0, SCALAR, SCC, VCC, Operand, parse_operand

if TYPE_CHECKING:
    from rota.isa.code.disassembly import Instruction

SCC_ROW, M0_ROW = SCALAR + SCC, SCALAR + M0
EXEC_BITS = 0b11 << SCALAR + EXEC
VCC_BITS = 0b11 << SCALAR + VCC
SCC_BIT, M0_BIT = 1 << SCC_ROW, 1 << M0_ROW
VECTORS = (1 << SCALAR) - 1
SLOTS = 1024
"""From this row on: words of private memory that are only used by their numbers, as a compiler does that spills."""


class OperationKind(enum.Enum):
    """What a step of the proof does with it."""

    VALUE = "computes"
    LDS = "uses LDS"
    EXCHANGE = "goes through LDS and leaves it alone"
    VMEM = "uses memory"
    SMEM = "scalar memory"
    WAIT = "waits"
    BARRIER = "barrier"
    BRANCH = "branches"
    CALL = "jumps where a register says"
    END = "ends"
    QUIET = "does nothing that matters"
    INDEX = "chooses registers while running"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One instruction: registers as bits, its operands, and of memory ops what they use.

    `spots` are the bytes that an LDS op uses, from its address on: pairs of an offset and a size.  `verb` is read,
    write or atomic of an LDS op, load, store or atomic of others.  `data` are rows that a load fills.  `slots` are the
    words of private memory that it loads or stores.
    """

    number: int
    instruction: Instruction
    name: str
    kind: OperationKind
    reads: int = 0
    writes: int = 0
    operands: tuple[Operand, ...] = ()
    odd: bool = False
    verb: str = ""
    spots: tuple[tuple[int, int], ...] = ()
    data: int = 0
    to_lds: int = 0
    flat: bool = False
    address: int = 0
    slots: tuple[int, ...] = ()
    waits: tuple[int | None, int | None] = (None, None)
    indexed: int = 0
    targets: int = 1
    keeps: bool = False  # a part of what its target had
    holds: bool = False  # `data` are rows that a store reads until it is waited for: others may read them, not write

    @property
    def vector(self) -> bool:
        """Does EXEC decide which lanes it writes?"""
        return self.instruction.opcode.startswith("v_")


class UnknownOperationError(Exception):
    """An instruction that the proof doesn't know."""

    def __init__(self, instruction: Instruction, what: str = "") -> None:
        super().__init__(what)
        self.instruction, self.what = instruction, what


def rows_of(mask: int) -> Iterator[int]:
    """The registers that a number stands for, in their order."""
    while mask:
        yield (mask & -mask).bit_length() - 1
        mask &= mask - 1


def bits(text: str) -> int:
    """The registers that an operand names."""
    return sum(1 << row for row in rows_in(text))


def quiet(instruction: Instruction, number: int) -> Operation:
    """An operation that does nothing that matters."""
    return Operation(number=number, instruction=instruction, name=instruction.opcode, kind=OperationKind.QUIET)


def parsed(instruction: Instruction) -> tuple[Operand, ...]:
    """All operands."""
    return tuple(parse_operand(text, instruction) for text in instruction.operands)
