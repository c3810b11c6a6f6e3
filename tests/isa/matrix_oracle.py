"""Matrix instructions a second time: takes registers as integers, gives one element of the result as a fraction.

Written from the other side than the interpreter: for each element of a matrix it asks where the documentation puts it
(lane, bit of the lane's registers), reads those bits, and sums fractions.  No array, no rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from rota.targets.architecture import MatrixForm

Lanes = Sequence[int]  # per lane, its registers as one integer, the first register lowest
WIDTH = {
    "f16": 16,
    "bf16": 16,
    "f32": 32,
    "xf32": 32,
    "f64": 64,
    "i8": 8,
    "fp8": 8,
    "bf8": 8,
    "fp6": 6,
    "bf6": 6,
    "fp4": 4,
}
BY_NUMBER = ["fp8", "bf8", "fp6", "bf6", "fp4"]


def ieee(code: int, exponent: int, mantissa: int, bias: int | None = None) -> Fraction:
    """A finite binary float."""
    bias = (1 << exponent - 1) - 1 if bias is None else bias
    power, fraction = code >> mantissa & (1 << exponent) - 1, code & (1 << mantissa) - 1
    if power:
        size = Fraction((1 << mantissa) + fraction) * Fraction(2) ** (power - bias - mantissa)
    else:
        size = Fraction(fraction) * Fraction(2) ** (1 - bias - mantissa)
    return -size if code >> exponent + mantissa & 1 else size


DECODE: dict[str, Callable[[int], Fraction]] = {
    "f16": lambda code: ieee(code, 5, 10),
    "bf16": lambda code: ieee(code, 8, 7),
    "f32": lambda code: ieee(code, 8, 23),
    "xf32": lambda code: ieee(code, 8, 23),
    "f64": lambda code: ieee(code, 11, 52),
    "i8": lambda code: Fraction(code - 256 * (code >> 7)),
    "i32": lambda code: Fraction(code - (1 << 32) * (code >> 31)),
    "ocp fp8": lambda code: ieee(code, 4, 3),
    "ocp bf8": lambda code: ieee(code, 5, 2),
    "fnuz fp8": lambda code: ieee(code, 4, 3, 8),
    "fnuz bf8": lambda code: ieee(code, 5, 2, 16),
    "fp6": lambda code: ieee(code, 2, 3),
    "bf6": lambda code: ieee(code, 3, 2),
    "fp4": lambda code: ieee(code, 2, 1),
}


@dataclass(frozen=True, kw_only=True)
class Case:
    """One instruction with its modifiers and registers; `float8` says ocp or fnuz."""

    form: MatrixForm
    float8: str
    a: Lanes
    b: Lanes
    c: Lanes | Fraction
    left: str
    right: str
    index: Lanes = ()
    scale_a: Lanes = ()
    scale_b: Lanes = ()
    cbsz: int = 0
    abid: int = 0
    blgp: int = 0
    negate: tuple[int, int, int] = (0, 0, 0)
    scale_bytes: tuple[int, int] = (0, 0)

    def value(self, kind: str, bits: int, at: int) -> Fraction:
        """An element, by its place in a lane."""
        code = bits >> at * WIDTH[kind] & (1 << WIDTH[kind]) - 1
        return DECODE[f"{self.float8} {kind}" if kind in {"fp8", "bf8"} else kind](code)

    def place(self, kind: str, side: int, row: int, k: int, block: int) -> tuple[int, int]:
        """Lane and number of an element of A or B, where all elements are stored."""
        form = self.form
        groups = 64 // (side * form.blocks)
        if form.left == "f8f6f4" and WIDTH[kind] > 4:
            return row + side * (k % (16 * groups) // 16), k % 16 + 16 * (k // (16 * groups))
        per_lane = form.depth // groups
        return side * form.blocks * (k // per_lane) + side * block + row, k % per_lane

    def left_element(self, row: int, k: int, block: int) -> Fraction:
        form = self.form
        if form.sparse:
            return self._compressed(row, k)
        block = (block >> self.cbsz << self.cbsz) + self.abid if self.cbsz else block
        lane, at = self.place(self.left, form.rows, row, k, block)
        value = self.value(self.left, self.a[lane], at)
        if form.scaled:
            value *= self._scale(self.scale_a[row + form.rows * (k // 32)], self.scale_bytes[0])
        return -value if self.negate[0] else value

    def _compressed(self, row: int, k: int) -> Fraction:
        """Of four neighbours two are stored; each has two bits that say which it is."""
        form = self.form
        per_lane = form.depth * form.rows // 64
        lane, four = form.rows * (k // per_lane) + row, k % per_lane // 4
        shift = 0 if self.cbsz else self.abid * per_lane
        found = Fraction(0)
        for stored in (2 * four, 2 * four + 1):
            if self.index[lane] >> shift + 2 * stored & 3 == k % 4:
                found += self.value(self.left, self.a[lane], stored)
        return found

    def right_element(self, k: int, column: int, block: int) -> Fraction:
        form = self.form
        lane, at = self.place(self.right, form.columns, column, k, block)
        source = {
            1: lane - 32 if lane >= 32 else lane,
            2: lane + 32 if lane < 32 else lane,
            3: lane - 48 if lane >= 48 else lane + 16,
        }.get(self.blgp, lane if self.blgp == 0 else (self.blgp - 4) * 16 + lane % 16)
        value = self.value(self.right, self.b[source], at)
        if form.scaled:
            value *= self._scale(self.scale_b[column + form.columns * (k // 32)], self.scale_bytes[1])
        return -value if self.negate[1] else value

    @staticmethod
    def _scale(bits: int, byte: int) -> Fraction:
        return Fraction(2) ** ((bits >> 8 * byte & 255) - 127)

    def where(self, row: int, column: int, block: int) -> tuple[int, int]:
        """Lane and number of an element of the result."""
        form = self.form
        if form.total == "f64":
            return (16 * row + 4 * block + column, 0) if form.rows == 4 else (16 * (row % 4) + column, row // 4)
        if form.rows == 4:
            return 4 * block + column, row
        if form.rows == 16:
            return 16 * (row // 4) + column, 4 * block + row % 4
        return 32 * (row // 4) % 64 + column, 16 * block + 4 * (row // 8) + row % 4

    def added(self, row: int, column: int, block: int) -> Fraction:
        if isinstance(self.c, Fraction):
            value = self.c
        else:
            lane, at = self.where(row, column, block)
            width = 64 if self.form.total == "f64" else 32
            value = DECODE[self.form.total](self.c[lane] >> at * width & (1 << width) - 1)
        return -value if self.negate[2] else value

    def exact(self, row: int, column: int, block: int) -> tuple[Fraction, Fraction]:
        """An element of the result before rounding, and the sum of the sizes of its terms."""
        terms = [
            self.left_element(row, k, block) * self.right_element(k, column, block) for k in range(self.form.depth)
        ]
        terms.append(self.added(row, column, block))
        return sum(terms, Fraction(0)), sum(map(abs, terms), Fraction(0))
