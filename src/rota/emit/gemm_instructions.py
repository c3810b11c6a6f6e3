"""The instructions of a GEMM kernel, with coordinates in its tile: what an op is bound to."""

from __future__ import annotations

from typing import NamedTuple

from rota.emit.gemm_factors import ColumnPair, Factor


class Dma(NamedTuple):
    """One DMA of all waves: its LDS byte within the operand's buffers, its number among the tile's, and the K-tile."""

    operand: Factor
    lds: int
    number: int
    k_tile: int


class LdsRead(NamedTuple):
    """One LDS read of a piece of a part into a copy of its registers; `lds` is the part's start in the buffers."""

    operand: Factor
    lds: int
    part: int
    piece: int
    copy: int


class PairRead(NamedTuple):
    """One LDS read of one k of a pair of parts of B into a copy of its register; `lds` counts as in an `LdsRead`."""

    lds: int
    pair: ColumnPair
    copy: int


class PairPack(NamedTuple):
    """One vector instruction that makes a register of a piece of B: its column's halves of what two reads brought.

    `sources` are what was read, the lower k first, and `copies` theirs.
    """

    part: int
    piece: int
    register: int
    sources: tuple[ColumnPair, ColumnPair]
    copies: tuple[int, int]
    copy: int


class Mfma(NamedTuple):
    """One matrix instruction: a step of K for a part of A and a part of B, each piece in a copy of its registers.

    Where it is scaled, `scale_copies` are those of A's scales and of B's.
    """

    step: int
    a_part: int
    b_part: int
    a_copies: tuple[int, ...]
    b_copies: tuple[int, ...]
    scale_copies: tuple[int, ...] = ()

    def factor(self, operand: Factor) -> tuple[int, tuple[int, ...]]:
        """An operand's part, and the copies of its pieces."""
        return (self.a_part, self.a_copies) if operand is Factor.A else (self.b_part, self.b_copies)


class ScaleDma(NamedTuple):
    """One DMA of all waves that brings scales: its LDS byte within those of the operand, its number, and the K-tile."""

    operand: Factor
    lds: int
    number: int
    k_tile: int


class ScaleRead(NamedTuple):
    """One LDS read of a part's scales of all steps into a copy of their register; `lds` is where the part's begin."""

    operand: Factor
    lds: int
    part: int
    copy: int


Instruction = Dma | LdsRead | Mfma
"""Of a GEMM without scales."""
BoundInstruction = Instruction | ScaleDma | ScaleRead | PairRead | PairPack
"""Of any."""
