"""What a GEMM multiplies: its two factors, their elements, how B lies in memory, scales of blocks, and pieces."""

from __future__ import annotations

import enum
from typing import NamedTuple

from rota.pipeline.geometry import FLOAT_BLOCK, SCALED_BLOCK

_FP4_FORMAT = 4


class Element(enum.Enum):
    """What A and B hold; the value is how matrix instructions spell it, but for fp4, which they choose by a modifier.

    `FP8_PAIR` is e4m3 as the machine has it, OCP's or FNUZ, in the instructions that take nothing else.
    """

    BF16 = "bf16"
    FP16 = "f16"
    FP8 = "f8f6f4"
    FP8_PAIR = "fp8_fp8"
    FP4 = "fp4"

    @property
    def spelled(self) -> str:
        """How the name of a matrix instruction ends."""
        return Element.FP8.value if self is Element.FP4 else self.value

    @property
    def bytes(self) -> int:
        """Size of one, or of as many as are packed."""
        return 1 if self in (Element.FP8, Element.FP8_PAIR, Element.FP4) else 2

    @property
    def packed(self) -> int:
        """How many share these bytes, the first one lowest."""
        return 2 if self is Element.FP4 else 1

    def in_bytes(self, count: str) -> str:
        """So many elements, as source: a whole number of bytes."""
        return f"{count} / {self.packed}" if self.packed > 1 else f"{count} * {self.bytes}"

    @property
    def modifiers(self) -> tuple[str, ...]:
        """Of the matrix instruction, where both factors' format isn't the one that it takes by itself."""
        return (f"cbsz:{_FP4_FORMAT}", f"blgp:{_FP4_FORMAT}") if self is Element.FP4 else ()


class Factor(enum.Enum):
    """The two factors; A has the rows of C, B its columns."""

    A = "a"
    B = "b"


class BLayout(enum.Enum):
    """How B lies in memory, row-major in either case; the value is its word."""

    NK = "nk"
    KN = "kn"

    def __str__(self) -> str:
        return self.value

    @property
    def spoken(self) -> str:
        """Its rows and columns."""
        return " x ".join(self.sizes)

    @property
    def sizes(self) -> tuple[str, str]:
        """Its number of rows, and of columns."""
        return ("K", "N") if self is BLayout.KN else ("N", "K")


class BlockScales(enum.Enum):
    """Scales of blocks along K: bytes (E8M0) that matrix instructions take, or floats that scale sums; the word."""

    NONE = "none"
    MX = "1x32"
    FLOAT = "1x128"

    @property
    def block(self) -> int:
        """Elements of a row that share one."""
        return FLOAT_BLOCK if self is BlockScales.FLOAT else SCALED_BLOCK

    @property
    def bytes(self) -> int:
        """Size of one."""
        return 4 if self is BlockScales.FLOAT else 1

    @property
    def spoken(self) -> str:
        """What one is."""
        return "fp32" if self is BlockScales.FLOAT else "E8M0 bytes"

    @property
    def columns(self) -> str:
        """How many a row has, in words."""
        return f"ceil(K / {self.block})" if self is BlockScales.FLOAT else f"K / {self.block}"

    def in_bytes(self, count: str) -> str:
        """So many scales, as source."""
        return f"{count} * {self.bytes}" if self.bytes > 1 else count

    def of_row(self, depth: str) -> str:
        """How many so many elements of a row have, as source; those with scales in bytes are whole blocks."""
        if self is BlockScales.FLOAT:
            return f"({depth} + {self.block - 1}) / {self.block}"
        return f"{depth} / {self.block}"


class Piece(NamedTuple):
    """What one LDS read brings a wave: a part of its share of an operand, and a piece of that."""

    operand: Factor
    part: int
    piece: int


class ColumnPair(NamedTuple):
    """What one LDS read brings of B in pairs of columns: one k, by its number among a lane's, of two parts' columns."""

    pair: int
    number: int
