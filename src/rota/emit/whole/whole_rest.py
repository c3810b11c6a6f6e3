"""What whole trips leave of K: takes a bound kernel, gives source that sums it, K-tile by K-tile and unpipelined.

A K-tile that lies within K, of rows that a DMA can fetch, comes as in the loop; any other is fetched element by
element, with zeros beyond K.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rota.emit.gemm.block_spacing import result_states
from rota.emit.gemm.buffer_resource import NOWHERE, element_fetch
from rota.emit.gemm.column_source import taken_columns
from rota.emit.gemm.gemm_binding import GemmBinding
from rota.emit.gemm.gemm_factors import Factor, Piece
from rota.emit.gemm.gemm_instructions import LdsRead, Mfma, PairRead, ScaleRead, block_adds
from rota.emit.gemm.gemm_registers import of_piece, of_scale
from rota.emit.gemm.gemm_tile import GemmTile
from rota.emit.gemm.gemm_words import block_add_text, mfma_text
from rota.emit.gemm.lds_layout import LdsLayout
from rota.emit.gemm.pair_loop import packs_of, pairs_of
from rota.emit.gemm.pair_words import PackSpacing, pair_text
from rota.emit.gemm.read_text import read_text
from rota.emit.text.sync_text import apart_text
from rota.targets.architecture import architecture_of


class Source(NamedTuple):
    """Some DMAs of an operand that have one resource: its name, the first and last but one, and the operand."""

    name: str
    operand: Factor
    numbers: range


def rest_lines(
    binding: GemmBinding, layout: LdsLayout, sources: Sequence[Source], dmas: Sequence[str], scales: Sequence[str] = ()
) -> Iterator[str]:
    """The rest; `dmas` are the statements that bring one K-tile as the loop does, `at` being the bytes of K before.

    `scales` bring the scales of blocks where a DMA can't.
    """
    tile = binding.tile
    yield "// What whole trips leave of K: a K-tile at a time, loaded, awaited and multiplied."
    yield "if (summed < end) {"
    yield "  ROTA_WAIT_VM(0) ROTA_WAIT_LGKM(0) ROTA_MEET"
    yield "  #pragma clang loop unroll(disable)"
    yield f"  for (int at = summed; at < end; at += {tile.row_bytes}) {{"
    last = f"dma_depth * {tile.element.bytes}" if tile.by_columns(Factor.B) else "end"
    yield f"    if (aligned && at + {tile.row_bytes} <= {last}) {{"
    yield from (f"      {line}" for line in dmas)
    yield "      ROTA_WAIT_VM(0)"
    yield "    } else {"
    for source in sources:
        columns = tile.by_columns(source.operand)
        taken = taken_columns(binding, source.name, source.numbers) if columns else _taken(binding, layout, source)
        yield from (f"      {line}" for line in taken)
    yield from (f"      {line}" for line in scales)
    yield "    }"
    yield "    ROTA_MEET"
    yield from (f"    {line}" for line in _multiplied(binding))
    yield "    ROTA_MEET"
    yield "  }"
    yield "}"


def _taken(binding: GemmBinding, layout: LdsLayout, source: Source) -> Iterator[str]:
    """The lanes that a DMA would have fetched for fetch their bytes one element at a time."""
    tile = binding.tile
    name = source.operand.value
    start = binding.buffer_bytes(Factor.A) if source.operand is Factor.B else 0
    shifted = f"place >> {layout.shift}" if layout.shift else "place"
    lanes_per_chunk = layout.chunk_bytes // tile.dma_bytes
    within = f" + thread % {lanes_per_chunk} * {tile.dma_bytes}" if lanes_per_chunk > 1 else ""
    first = source.numbers.start
    yield "#pragma clang loop unroll(disable)"
    yield f"for (int number = 0; number < {len(source.numbers)}; ++number) {{"
    yield f"  const int place = {f'({first} + number)' if first else 'number'} * {tile.dma_rows} + row;"
    exchanged = tile.stored_text(f"(chunk ^ ({shifted} & {layout.mask}))")
    yield f"  const int byte = at + {exchanged} * {layout.chunk_bytes}{within};"
    yield f"  const int line = (number * {tile.dma_rows} + row) * {name}_row_bytes;"
    inside = "byte" if tile.scaled else "from"  # whole blocks end with a lane's bytes: one mask instead of many
    fetch = element_fetch(
        tile,
        source.name,
        element=f"byte + word * {tile.register_bytes} + e * {tile.element.bytes}",
        offset=f"{inside} < end ? (u32)(line + from) : {NOWHERE}",
        lds=f"{start} + {f'({first} + number)' if first else 'number'} * {tile.dma_rows * tile.row_bytes}",
    )
    yield from (f"  {line}" for line in fetch)
    yield "}"


def _multiplied(binding: GemmBinding) -> Iterator[str]:
    """EpilogueStep by step of K: all pieces of a step, then all its products."""
    tile = binding.tile
    for operand in Factor if tile.has_scales else ():
        for part in range(binding.parts(operand)):
            lds = binding.first_row(operand, part) * tile.geometry.scale_line
            yield read_text(binding, ScaleRead(operand, lds, part, 0))
    for step in range(tile.steps):
        a, b = (range(step * each, (step + 1) * each) for each in map(tile.step_pieces, Factor))
        for operand, pieces in zip(Factor, (a, b), strict=True):
            for part in range(binding.parts(operand)):
                yield " ".join(_read(binding, Piece(operand, part, piece)) for piece in pieces)
        yield "ROTA_WAIT_LGKM(0)"
        spacing = PackSpacing(tile)
        yield from _turned(binding, b, spacing) if tile.pairs else ()
        for row in range(binding.parts(Factor.A)):
            for column in range(binding.parts(Factor.B)):
                if states := spacing.before(Mfma(step, row, column, (0,) * len(a), (0,) * len(b))):
                    yield apart_text(states)
                factors = (_factors(Factor.A, row, a), _factors(Factor.B, column, b))
                scaled_by = (of_scale(Factor.A, 0, row), of_scale(Factor.B, 0, column)) if tile.scaled else ()
                total = f"sum[0][{row}][{column}]" if tile.block_sums else f"c[{row}][{column}]"
                yield mfma_text(tile, step, total, *factors, *scaled_by)
    if tile.block_sums:
        yield from _added(binding)


def _added(binding: GemmBinding) -> Iterator[str]:
    """The sums of a K-tile's blocks, scaled and added."""
    tile = binding.tile
    yield apart_text(result_states(architecture_of(tile.machine), tile.instruction))
    for row in range(binding.parts(Factor.A)):
        for column in range(binding.parts(Factor.B)):
            total, scales = f"c[{row}][{column}]", (of_scale(Factor.A, 0, row), of_scale(Factor.B, 0, column))
            yield " ".join(
                block_add_text(each, total, f"sum[0][{row}][{column}]", scales)
                for each in block_adds(row, column, 0, (0, 0))
            )


def _read(binding: GemmBinding, read: Piece) -> str:
    if read.operand is Factor.B and binding.tile.pairs:
        pairs = pairs_of(binding.tile, read) if read.part % 2 == 0 else ()
        reads = (PairRead(binding.read_offset(binding.read_of(pair)), pair, 0) for pair in pairs)
        return " ".join(read_text(binding, each) for each in reads)
    return read_text(binding, LdsRead(read.operand, binding.read_offset(read), read.part, read.piece, 0))


def _turned(binding: GemmBinding, pieces: Sequence[int], spacing: PackSpacing) -> Iterator[str]:
    """Pairs of columns as the pieces of their parts."""
    for part in range(binding.parts(Factor.B)):
        for piece in pieces:
            packs = list(packs_of(binding.tile, Piece(Factor.B, part, piece), Counter(), 0))
            for pack in packs:
                spacing.before(pack)
            yield " ".join(pair_text(binding, pack) for pack in packs)


def _factors(operand: Factor, part: int, pieces: Sequence[int]) -> str:
    return ", ".join(of_piece(operand, 0, part, piece) for piece in pieces)


def dma_numbers(tile: GemmTile, operand: Factor) -> int:
    """DMAs that bring one K-tile of an operand."""
    return tile.dmas(operand)
