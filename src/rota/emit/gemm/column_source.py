"""B as K x N in a whole kernel: takes a bound kernel, gives the source that fetches and reads its panels of columns.

A row of B is one k: rows beyond K are beyond the buffer resource, and read as zeros.  Columns beyond N are whatever
lies there, within the resource; they make columns of D that aren't stored.
"""

from __future__ import annotations

from collections.abc import Iterator

from rota.emit.gemm.buffer_resource import NOWHERE, element_fetch
from rota.emit.gemm.column_panels import TEAM, ColumnPanels, column_panels
from rota.emit.gemm.gemm_binding import GemmBinding
from rota.emit.gemm.gemm_factors import Factor
from rota.emit.gemm.gemm_tile import GemmTile


def column_sizes(tile: GemmTile, columns: int) -> Iterator[str]:
    """The resource ends with the last column of the last row; `dma_depth` of the rows may be fetched by DMAs.

    Whether a lane gets any of the 16 bytes in which the resource ends is nothing to rest on: a last row that ends
    within them is left to whoever fetches element by element.  Of no row at all, a split that has none fetches nothing.
    """
    size = tile.element.bytes
    yield f"const int b_columns = N - tile_column * {columns} < {columns} ? N - tile_column * {columns} : {columns};"
    yield f"const u32 b_size = (u32)(depth - 1) * b_row_bytes + b_columns * {size};"
    yield f"const int dma_depth = b_columns % {tile.dma_bytes // size} ? depth - 1 : depth;  // K that DMAs may fetch"
    yield f"const int b_tile = {tile.geometry.BK} * b_row_bytes;  // from a K-tile to the next"


def column_fetches(tile: GemmTile) -> Iterator[str]:
    """Where in a DMA's rows each lane fetches."""
    panels = column_panels(tile)
    lanes, each = panels.row_bytes // tile.dma_bytes, panels.chunk_bytes // tile.dma_bytes
    yield f"const int b_dma_rows = {panels.dma_rows} * b_row_bytes;  // from one DMA of a panel to the next"
    yield f"const int b_line = thread / {lanes}, b_chunk = thread % {lanes} / {each};"
    for pattern in range(panels.patterns):
        row = f"(b_line + {pattern * panels.dma_rows})" if pattern else "b_line"
        yield (
            f"const int b_fetch{pattern} = b_line * b_row_bytes + (b_chunk ^ {_flipped(panels, row)}) * "
            f"{panels.chunk_bytes} + thread % {each} * {tile.dma_bytes};"
        )


def column_places(binding: GemmBinding, start: int) -> Iterator[str]:
    """Each lane's place in each part, from where B's buffers begin in LDS."""
    tile = binding.tile
    panels = column_panels(tile)
    lanes = panels.side_by_side if tile.pairs else TEAM  # that read a chunk, or turn one
    within = f" + lane_row / {lanes}" if tile.side > lanes else ""
    k_within = "" if tile.pairs else f" + lane % {TEAM} / {panels.side_by_side}"
    yield f"  const int b_k = lane_group * {panels.run}{k_within};"
    yield (
        f"  ROTA_LDS const char* const b_row = (ROTA_LDS const char*)memory + {start} + b_k * {panels.row_bytes} + "
        f"lane % {panels.side_by_side} * {panels.read_bytes};"
    )
    for part in range(0, binding.parts(Factor.B), binding.column_step):
        first = binding.first_row(Factor.B, part) // TEAM
        yield f"  const int b_part{part} = wave_column * {binding.wave_rows(Factor.B) // TEAM} + {first}{within};"
        yield (
            f"  ROTA_LDS const char* const b_lane{part} = b_row + b_part{part} / {panels.chunks} * "
            f"{panels.panel_bytes} + (b_part{part} % {panels.chunks} ^ {_flipped(panels, 'b_k')}) * "
            f"{panels.chunk_bytes};"
        )


def column_dma(tile: GemmTile, number: int, k_tile: int = 0, rows: str = "b_dma_rows") -> tuple[list[str], int]:
    """What a DMA's offset counts from the trip's rows, by its number among its matrix's, and which fetch it takes."""
    panels = column_panels(tile)
    panel, within = divmod(number, panels.dmas)
    before = k_tile * panels.dmas + within
    terms = [f"{before} * {rows}"] if before else []
    return terms + ([str(panel * panels.row_bytes)] if panel else []), within % panels.patterns


def taken_columns(binding: GemmBinding, name: str, numbers: range) -> Iterator[str]:
    """The lanes that a DMA would have fetched for fetch their bytes one element at a time, with zeros beyond."""
    tile = binding.tile
    panels, size = column_panels(tile), tile.element.bytes
    each = panels.chunk_bytes // tile.dma_bytes
    start = binding.buffer_bytes(Factor.A) + numbers.start * panels.dma_rows * panels.row_bytes
    yield "#pragma clang loop unroll(disable)"
    yield f"for (int number = 0; number < {len(numbers)}; ++number) {{"
    yield f"  const int k_row = number % {panels.dmas} * {panels.dma_rows} + b_line, from_row = at / {size} + k_row;"
    yield (
        f"  const int column = number / {panels.dmas} * {panels.columns} + (b_chunk ^ {_flipped(panels, 'k_row')}) * "
        f"{TEAM} + thread % {each} * {tile.dma_bytes // size};"
    )
    fetch = element_fetch(
        tile,
        name,
        element=f"column + word * {tile.register_bytes // size} + e",
        offset=(f"from_row < depth && from < b_columns ? (u32)(from_row * b_row_bytes + from * {size}) : {NOWHERE}"),
        lds=f"{start} + number * {panels.dma_rows * panels.row_bytes}",
    )
    yield from (f"  {line}" for line in fetch)
    yield "}"


def _flipped(panels: ColumnPanels, k: str) -> str:
    """What the chunks of a row are exchanged by, in source."""
    terms = [
        f"({k} >> {bit} & 1) << {place}" if place else f"({k} >> {bit} & 1)"
        for place, bit in enumerate(panels.exchange)
        if bit >= 0
    ]
    return f"({' | '.join(terms) or '0'})"
