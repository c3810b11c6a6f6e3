"""What a tile must be for a GEMM to be written: takes a tile, gives its rules, each with whether it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.emit.gemm.gemm_factors import BLayout, BlockScales, Element, Factor
from rota.pipeline.geometry import FLOAT_BLOCK
from rota.targets.architecture import architecture_of

if TYPE_CHECKING:
    from rota.emit.gemm.gemm_tile import GemmTile

_TWO = 2  # elements of a register, and columns of a pair
DMA_WORDS = {16: "dwordx4", 4: "dword"}
"""How a DMA is spelled, by the bytes that it moves for each lane."""


def tile_rules(tile: GemmTile) -> dict[str, bool]:
    """All of them, in words."""
    geometry = tile.geometry
    rules = {
        "a DMA moves 4 or 16 bytes a lane": tile.dma_bytes in DMA_WORDS,
        "MMA_M equals MMA_N": geometry.MMA_M == geometry.MMA_N,
        "MMA_M is 16 or 32": geometry.MMA_M in (16, 32),
        "a lane's LDS read is at least as wide as its DMA": tile.read_bytes >= tile.dma_bytes,
        "BK is a multiple of MMA_K": geometry.BK % geometry.MMA_K == 0,
        f"BK elements are a power of 2 of bytes, at most {tile.dma_bytes * tile.lanes}, a DMA of one wave": (
            tile.row_bytes & (tile.row_bytes - 1) == 0 and tile.row_bytes <= tile.dma_bytes * tile.lanes
        ),
        **{
            f"{size} is a multiple of {tile.across(operand) * tile.side}, one {geometry.MMA_M}x{geometry.MMA_N} "
            "product of each wave": tile.rows(operand) % (tile.across(operand) * tile.side) == 0
            for operand, size in ((Factor.A, "BM"), (Factor.B, "BN"))
        },
    }
    if tile.b_layout is BLayout.KN:
        rules |= _of_columns(tile)
    return (
        rules
        | {BlockScales.NONE: {}, BlockScales.MX: _of_bytes(tile), BlockScales.FLOAT: _of_floats(tile)}[tile.scales]
    )


def _of_columns(tile: GemmTile) -> dict[str, bool]:
    """B as K x N lies in LDS in two panels of columns; see `column_panels`."""
    row, moved = tile.geometry.BN // 2 * tile.element.bytes, tile.dma_bytes * tile.lanes * tile.waves
    least = _TWO * tile.side if tile.pairs else 16
    return {
        f"{tile.machine.arch} has a read that transposes {tile.element.name}, or a register holds a pair of them": (
            tile.element.bytes * _TWO == tile.register_bytes
            if tile.pairs
            else tile.read_instruction(Factor.B) in architecture_of(tile.machine).transposed_reads
        ),
        f"half of BN elements are a power of 2, at least {least}, and at most {moved} bytes, a DMA of all waves": (
            row & (row - 1) == 0 and least * tile.element.bytes <= row <= moved
        ),
        f"half of BN by BK elements are whole DMAs of {moved} bytes": tile.tile_bytes(Factor.B) % (2 * moved) == 0,
        "B as K x N has a byte or more for each element, and no scales": (
            tile.element.packed == 1 and not tile.has_scales
        ),
    }


def _of_bytes(tile: GemmTile) -> dict[str, bool]:
    return {
        "scales come four at a time, so that BK is a multiple of 128": tile.geometry.BK % 128 == 0,
        "the scales of a lane's blocks are one, two or four bytes": tile.steps in (1, 2, 4),
        "scales are those of f8f6f4": tile.element in (Element.FP8, Element.FP4),
    }


def _of_floats(tile: GemmTile) -> dict[str, bool]:
    return {
        f"a K-tile is one block with a scale, so that BK is {FLOAT_BLOCK}": tile.geometry.BK == FLOAT_BLOCK,
        "scales in fp32 are those of fp8": tile.element in (Element.FP8, Element.FP8_PAIR),
        "sums of blocks are of 16 x 16": tile.side == 16,
    }
