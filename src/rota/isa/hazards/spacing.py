"""What matters for wait states: takes the registers and traits of an instruction, gives its `Spacing`.

Registers are numbered in rows as operands are.  `spacing_reader` finds them in the text.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from rota.isa.wave.operand import ACC, EXEC, M0, SCALAR, VCC
from rota.program.machine import Confidence
from rota.targets.matrix_forms import Pipe
from rota.targets.wait_states import SOURCES

if TYPE_CHECKING:
    from rota.program.machine import Fact

Rows = frozenset[int]
NO_ROWS: Rows = frozenset()
VCC_ROWS: Rows = frozenset({SCALAR + VCC, SCALAR + VCC + 1})
EXEC_ROWS: Rows = frozenset({SCALAR + EXEC, SCALAR + EXEC + 1})
M0_ROWS: Rows = frozenset({SCALAR + M0})
_REGISTER = re.compile(r"(?<![\w.])(?P<file>[vas])(?:(?P<one>\d+)|\[(?P<first>\d+):(?P<last>\d+)\])(?!\w)")
_NAMED = {
    "vcc": VCC_ROWS, "vcc_lo": frozenset({SCALAR + VCC}), "vcc_hi": frozenset({SCALAR + VCC + 1}), "m0": M0_ROWS,
    "exec": EXEC_ROWS, "exec_lo": frozenset({SCALAR + EXEC}), "exec_hi": frozenset({SCALAR + EXEC + 1}),
}  # fmt: skip
_WORD = re.compile(r"[a-z_0-9]+")


class Kind(enum.Enum):
    """Who executes it."""

    SCALAR = "SALU"
    VECTOR = "VALU"
    MATRIX = "matrix core"
    MEMORY = "vector memory"
    LDS = "LDS"
    OTHER = "other"


class Trait(enum.Flag):
    """What else decides about a wait state."""

    NONE = 0
    TRANSCENDENTAL = enum.auto()
    DOT = enum.auto()
    PARTIAL = enum.auto()  # writes a part of a register
    PACKED = enum.auto()  # LLVM takes it for one of those
    DPP = enum.auto()
    LANE = enum.auto()  # reads or writes one lane
    READS_LANE = enum.auto()
    DIVISION = enum.auto()  # v_div_fmas
    DOUBLE_FMA = enum.auto()
    PERMLANE = enum.auto()
    COMPARES_EXEC = enum.auto()  # v_cmpx
    USES_M0 = enum.auto()
    NOT_NAMED = enum.auto()  # uses M0, but no row of the manual names it
    TO_LDS = enum.auto()  # a load from memory to LDS, which counts as a VALU instruction too
    SETS_MODE = enum.auto()
    READS_MODE = enum.auto()
    SETS_VSKIP = enum.auto()  # s_setreg of that bit
    SKIPS = enum.auto()  # s_setvskip
    BY_OFFSET = enum.auto()  # a buffer store whose offset is a register
    RETURNS = enum.auto()  # s_rfe


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Wait states due between two instructions, the rows that they share, why, and whose rule it is.

    `rule` is its name among the `Hazards`, `fact` what they say about it.
    """

    states: int
    rows: Rows
    why: str
    rule: str
    fact: Fact
    reads: bool = False  # the second one reads the rows
    matrix: bool = False  # the rows are an MFMA's results: a later MFMA that writes them takes its place

    @property
    def source(self) -> str:
        """Whose rule it is."""
        return SOURCES.get(self.fact.confidence, self.fact.confidence.value)

    @property
    def required(self) -> bool:
        """Is it a rule of the manual, or was it measured; or does LLVM alone keep it?"""
        return self.fact.confidence is not Confidence.COMPILER_MODEL


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spacing:
    """The registers and traits of one instruction, as far as wait states depend on them.

    `reads` are explicit sources, of an MFMA its factors, scales and index; `sums` what an MFMA or a dot product adds to
    and `sum_range` its first row and length; `held` the data of a wide store; `select` the rows of a lane select.  Of
    `reads`, `masks` are only read as a mask or carry, `exchanged` are the lanes that DPP moves, `kept` is what a target
    held, where lanes may keep it.  `zeros` are the registers whose zero flags are read, `ends` the scalar registers
    that surely hold something else behind it.  `known` is what was found out about pairs with this one in front.
    """

    opcode: str
    kind: Kind
    states: int = 1
    reads: Rows = NO_ROWS
    sums: Rows = NO_ROWS
    sum_range: tuple[int, int] = (-1, 0)
    writes: Rows = NO_ROWS
    write_range: tuple[int, int] = (-1, 0)
    held: Rows = NO_ROWS
    select: Rows = NO_ROWS
    masks: Rows = NO_ROWS
    exchanged: Rows = NO_ROWS
    kept: Rows = NO_ROWS
    zeros: Rows = NO_ROWS
    ends: Rows = NO_ROWS
    traits: Trait = Trait.NONE
    hwreg: str = ""
    pipe: Pipe | None = None
    passes: int = 0
    large: bool = False  # of products of float64: 16x16
    reach: int = 0  # wait states behind it within which something may come too early
    known: dict[Spacing, tuple[Need, ...]] = field(default_factory=dict, repr=False)

    @property
    def valu(self) -> bool:
        """Is it a VALU instruction, MFMA and loads to LDS included?"""
        return self.kind in {Kind.VECTOR, Kind.MATRIX} or Trait.TO_LDS in self.traits

    @property
    def all_reads(self) -> Rows:
        """What it reads, sums included."""
        return self.reads | self.sums


NOTHING = Spacing(opcode="", kind=Kind.OTHER)


@lru_cache(maxsize=4096)  # an unrolled loop names the same registers again and again
def rows_in(text: str) -> Rows:
    """The rows that an operand names, with or without signs around it."""
    rows: set[int] = set()
    for found in _REGISTER.finditer(text):
        first, last = int(found["one"] or found["first"]), int(found["one"] or found["last"])
        base = {"v": 0, "a": ACC, "s": SCALAR}[found["file"]]
        rows.update(range(base + first, base + last + 1))
    for word in _WORD.findall(text):
        rows |= _NAMED.get(word, NO_ROWS)
    return frozenset(rows)


def vector_rows(rows: Rows) -> Rows:
    """VGPRs and AGPRs among the rows."""
    return frozenset(row for row in rows if row < SCALAR)


def scalar_rows(rows: Rows) -> Rows:
    """The others."""
    return frozenset(row for row in rows if row >= SCALAR)
