"""How a program holds the operands of a GEMM: what a binding asks of it, whichever way the program says what it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from rota.emit.gemm.block_sum_loop import SumParts
from rota.emit.gemm.gemm_factors import ColumnPair, Factor, Piece
from rota.program.effects import Place
from rota.program.entry import Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffers:
    """How an operand lies in LDS: `stages` copies of a K-tile, each cut into `slices` that are loaded on their own."""

    stages: int
    slices: int


class GemmOperands(Protocol):
    """Which part of A and B each op, and each place in registers, is about."""

    @property
    def buffers(self) -> Mapping[Factor, Buffers]:
        """The LDS of each operand."""
        ...

    @property
    def copies(self) -> int:
        """The most copies that any register value has."""
        ...

    def loads(self, entry: Entry) -> tuple[Factor, range]:
        """Which DMAs a load is, of all that bring its operand's tile."""
        ...

    def k_tile(self, entry: Entry) -> int:
        """The K-tile that a load fetches, counted from the trip's k."""
        ...

    def pieces(self, entry: Entry, place: Place) -> Sequence[Piece]:
        """What a place in registers holds."""
        ...

    def pairs(self, place: Place) -> Sequence[ColumnPair]:
        """What a place in registers holds of B in pairs of columns; nothing where it holds something else."""
        ...

    def copy(self, place: Place) -> int:
        """Which copy of its pieces' registers a place is."""
        ...

    @property
    def scale_stages(self) -> Mapping[Factor, int]:
        """Copies in LDS of the scales of each operand; nothing where there are none."""
        ...

    def scale_loads(self, entry: Entry) -> tuple[Factor, range] | None:
        """Which DMAs a load of scales is, of all that bring its operand's; None for other loads."""
        ...

    def scale_parts(self, place: Place) -> tuple[Factor, Sequence[int]] | None:
        """The parts whose scales a place in registers holds; None where it holds something else."""
        ...

    def sums(self, place: Place) -> SumParts | None:
        """The parts of A and B whose products a place in registers sums; None where it holds something else."""
        ...

    def fix(self, entry: Entry, due: int) -> str:
        """How an op is declared as so many instructions."""
        ...
