"""The scales of blocks in a whole kernel: takes a bound kernel, gives the source that brings and reads them.

A's are M rows of K / 32 bytes, B's N rows; each byte is a power of two (E8M0) for a block of 32 elements along K.  They
come to LDS as A and B do, by DMAs of four bytes a lane, in the order in which they lie in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rota.emit.gemm_binding import GemmBinding
from rota.emit.gemm_instructions import ScaleDma
from rota.emit.gemm_tile import Factor, GemmTile
from rota.emit.whole_rest import NOWHERE
from rota.pipeline.geometry import SCALED_BLOCK

_WORD = 4  # bytes that a lane moves


def row_name(operand: Factor) -> str:
    """Bytes from a row of scales to the next, in the kernel."""
    return f"{operand.value}_scale_row"


def scale_matrix_lines(tile: GemmTile) -> Iterator[str]:
    """The batch's scales, from the split's first block on."""
    for operand in Factor if tile.scaled else ():
        name = f"{operand.value}_scale"
        yield (
            f"const u64 {name}_matrix = (u64){operand.name}_scale + "
            f"(u64)(batch * {name}_batch + k_first / {SCALED_BLOCK});"
        )


def scale_resource_lines(tile: GemmTile, *, persistent: bool) -> Iterator[str]:
    """Buffer resources of a tile's scales."""
    if not tile.scaled:
        return
    yield f"const int scale_end = depth / {SCALED_BLOCK};  // scales of a row"
    for operand, where in ((Factor.A, "tile_row"), (Factor.B, "tile_column")):
        name, row = f"{operand.value}_scale", row_name(operand)
        yield f"int {row} = (int){name}_stride;"
        if persistent:  # as for rows of A and B
            yield f'asm volatile("" : "+s"({row}));'
        before = f"(long long){where} * {tile.rows(operand)} * {name}_stride"
        yield f"const u64 {name}_base = {name}_matrix + (u64)({before});"
        yield f"const u32 {name}_size = (u32)({operand.value}_rows - 1) * {row} + scale_end;"
        yield (
            f"const resource {name}_global = {{(u32){name}_base, (u32)({name}_base >> 32) & 0xffff, {name}_size, "
            "0x00027000u};"
        )
        yield (
            f"const __amdgpu_buffer_rsrc_t {name}_bytes = "
            f"__builtin_amdgcn_make_buffer_rsrc((void*){name}_base, 0, (int){name}_size, 0x00027000);"
        )
    bases = " | ".join(f"(u32){operand.value}_scale_base | (u32){row_name(operand)}" for operand in Factor)
    yield f"const bool scales_aligned = (({bases}) & {_WORD - 1}) == 0;"


def scale_place_lines(binding: GemmBinding) -> Iterator[str]:
    """Where a lane fetches scales, and where it reads those of the first part."""
    tile = binding.tile
    if not tile.scaled:
        return
    words = tile.geometry.scale_line // _WORD
    yield "// Scales: a row's bytes side by side; a lane reads those of its blocks of all steps at once."
    yield f"const u32 scale_wave = (u32)(u64)(ROTA_LDS char*)memory + wave * {tile.lanes * _WORD};"
    for operand in Factor:
        name = operand.value
        yield f"const int {name}_scale_fetch = thread / {words} * {row_name(operand)} + thread % {words} * {_WORD};"
        yield (
            f"ROTA_LDS const char* const {name}_scale_lane = (ROTA_LDS const char*)memory + "
            f"{binding.scale_start(operand)} + {name}_row * {tile.geometry.scale_line} + lane_group * {tile.steps};"
        )


def scale_dma_text(binding: GemmBinding, dma: ScaleDma, before: Sequence[str]) -> str:
    """One DMA; `before` are the bytes of a row's scales that come before, as terms."""
    tile, operand = binding.tile, dma.operand
    rows = tile.scale_dma_bytes // tile.geometry.scale_line
    terms = [*before, *([f"{dma.number * rows} * {row_name(operand)}"] if dma.number else [])]
    lds = binding.scale_start(operand) + dma.lds
    name = f"{operand.value}_scale"
    return f"ROTA_SCALE_DMA({name}_global, {lds}, {name}_fetch, {' + '.join(terms) or '0'})"


def scales_before(tile: GemmTile, octets: str) -> str:
    """How many of a row's scales come before so many bytes of it."""
    each = tile.row_bytes // tile.geometry.scale_line
    return f"({octets} >> {each.bit_length() - 1})"


def plain_scale_dmas(binding: GemmBinding) -> Iterator[str]:
    """The scales of one K-tile into the first buffers, at `at` bytes of K."""
    tile = binding.tile
    for operand in Factor if tile.scaled else ():
        for number in range(tile.scale_loads(operand)):
            dma = ScaleDma(operand, number * tile.scale_dma_bytes, number, 0)
            yield scale_dma_text(binding, dma, [scales_before(tile, "at")])


def taken_scales(binding: GemmBinding) -> Iterator[str]:
    """The same byte by byte, with zeros beyond K: what they scale there is 0, too."""
    tile = binding.tile
    words, threads = tile.geometry.scale_line // _WORD, tile.waves * tile.lanes
    for operand in Factor if tile.scaled else ():
        yield "#pragma clang loop unroll(disable)"
        yield f"for (int number = 0; number < {tile.scale_loads(operand)}; ++number) {{"
        yield f"  const int place = number * {threads} + thread;"
        yield f"  const int first = {scales_before(tile, 'at')} + place % {words} * {_WORD};"
        yield "  u32 word = 0;"
        yield '  _Pragma("unroll")'
        yield f"  for (int e = 0; e < {_WORD}; ++e) {{"
        yield (
            f"    const u32 offset = first + e < scale_end ? (u32)(place / {words} * {row_name(operand)} + first + e) "
            f": {NOWHERE};"
        )
        yield (
            "    word |= (u32)(unsigned char)__builtin_amdgcn_raw_buffer_load_b8("
            f"{operand.value}_scale_bytes, offset, 0, 0) << (8 * e);"
        )
        yield "  }"
        yield f"  *(ROTA_LDS u32*)(memory + {binding.scale_start(operand)} + place * {_WORD}) = word;"
        yield "}"
