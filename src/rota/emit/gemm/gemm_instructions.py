"""The instructions of a GEMM kernel, with coordinates in its tile: what an op is bound to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rota.emit.gemm.gemm_factors import ColumnPair, Factor


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

    Where it is scaled, `scale_copies` are those of A's scales and of B's.  Where it sums a block by itself, `sum_copy`
    is the copy of that sum, which the first step begins.
    """

    step: int
    a_part: int
    b_part: int
    a_copies: tuple[int, ...]
    b_copies: tuple[int, ...]
    scale_copies: tuple[int, ...] = ()
    sum_copy: int | None = None

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


class BlockAdd(NamedTuple):
    """One vector instruction on two registers of a block's sum: it scales them by B's, or adds them by A's to C."""

    a_part: int
    b_part: int
    sum_copy: int
    scale_copies: tuple[int, int]
    half: int
    adds: bool

    @property
    def opcode(self) -> str:
        """A product, or a product and a sum."""
        return SCALING_OPCODES[self.adds]

    @property
    def modifiers(self) -> tuple[str, ...]:
        """B's scale is one for both registers."""
        return () if self.adds else ("op_sel_hi:[1,0]",)


SCALING_OPCODES = ("v_pk_mul_f32", "v_pk_fma_f32")
"""What scales the sum of a block, and adds it."""
HALVES = 2
"""Of the registers that a lane has of a block's sum."""


def block_adds(a_part: int, b_part: int, sum_copy: int, scale_copies: tuple[int, int]) -> Iterator[BlockAdd]:
    """Both halves of a block's sum are scaled before the first is added: a packed result is read a slot later."""
    for adds in (False, True):
        for half in range(HALVES):
            yield BlockAdd(a_part, b_part, sum_copy, scale_copies, half, adds)


Instruction = Dma | LdsRead | Mfma
"""Of a GEMM without scales."""
BoundInstruction = Instruction | ScaleDma | ScaleRead | BlockAdd | PairRead | PairPack
"""Of any."""
