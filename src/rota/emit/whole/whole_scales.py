"""The scales of blocks in a whole kernel: takes a bound kernel, gives the source that brings and reads them.

A's are M rows of K / 32 bytes, B's N rows; each byte is a power of two (E8M0) for a block of 32 elements along K.  Or
they are rows of floats, one for each block of 128.  They come to LDS as A and B do, by DMAs of four bytes a lane, in
the order in which they lie in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rota.emit.gemm.buffer_resource import NOWHERE, asm_resource, builtin_resource
from rota.emit.gemm.gemm_binding import GemmBinding
from rota.emit.gemm.gemm_factors import Factor
from rota.emit.gemm.gemm_instructions import ScaleDma
from rota.emit.gemm.gemm_tile import GemmTile
from rota.emit.refusal import unfit
from rota.emit.whole.whole_options import PARAMETERS, WholeGemm

_WORD = 4  # bytes that a lane moves
SCALE_PARAMETERS = frozenset(each.name for each in PARAMETERS if "_scale" in each.name and each.type != "const float*")
"""The kernel's parameters that are about scales of blocks."""


def row_name(operand: Factor) -> str:
    """Bytes from a row of scales to the next, in the kernel."""
    return f"{operand.value}_scale_row"


def check_halves(tile: GemmTile) -> None:
    """Where half of a tile is another B's: is what each wave brings of its scales one B's?"""
    half, each = tile.rows(Factor.B) // 2, _wave_rows(tile)
    if tile.has_scales and (half % each or tile.scale_loads(Factor.B) > 1):
        raise unfit(
            f"a gated epilogue takes half of a tile's scales from each B; waves bring {each} rows each, and a half has "
            f"{half}",
            evidence=(("rows of a half", half), ("rows of a wave", each), ("DMAs", tile.scale_loads(Factor.B))),
        )


def _wave_rows(tile: GemmTile) -> int:
    return tile.lanes * _WORD // tile.geometry.scale_line


def scale_matrix_lines(tile: GemmTile, asked: WholeGemm) -> Iterator[str]:
    """The batch's scales, from the split's first block on."""
    for pointer, letter in _pointers(asked) if tile.has_scales else ():
        before = f"(batch * {letter}_scale_batch + k_first / {tile.scales.block})"
        yield f"const u64 {pointer.lower()}_matrix = (u64){pointer} + (u64)({tile.scales.in_bytes(before)});"


def _pointers(asked: WholeGemm) -> Iterator[tuple[str, str]]:
    yield "A_scale", "a"
    yield "B_scale", "b"
    if asked.gate:
        yield "B_up_scale", "b"


def scale_resource_lines(tile: GemmTile, asked: WholeGemm) -> Iterator[str]:
    """Buffer resources of a tile's scales; where half of it is another B's, each wave has those that it brings."""
    if not tile.has_scales:
        return
    half, scales = tile.rows(Factor.B) // 2, tile.scales
    if asked.gate:
        yield f"const bool scales_up = wave >= {half // _wave_rows(tile)};"
        yield f"const int scales_before = scales_up ? {half} : 0;"
    yield f"const int scale_end = {scales.in_bytes(scales.of_row('depth'))};  // bytes of a row's scales"
    for operand, where in ((Factor.A, "tile_row"), (Factor.B, "tile_column")):
        name, row = f"{operand.value}_scale", row_name(operand)
        yield f"int {row} = (int){name}_stride;" if scales.bytes == 1 else f"int {row} = (int)({name}_stride * 4);"
        if asked.persistent:  # as for rows of A and B
            yield f'asm volatile("" : "+s"({row}));'
        gated = asked.gate and operand is Factor.B
        before = scales.in_bytes(f"(long long){where} * {half if gated else tile.rows(operand)} * {name}_stride")
        matrix = "(scales_up ? b_up_scale_matrix : b_scale_matrix)" if gated else f"{name}_matrix"
        yield f"const u64 {name}_base = {matrix} + (u64)({before});"
        yield f"const u32 {name}_size = (u32)({operand.value}_rows - 1) * {row} + scale_end;"
        yield asm_resource(name, f"{name}_size")
        if tile.scaled:
            yield builtin_resource(name, f"{name}_size")
    if tile.block_sums:  # floats are where DMAs can fetch them
        return
    words = [*(f"{pointer.lower()}_matrix" for pointer, _ in _pointers(asked)), *map(row_name, Factor)]
    yield f"const bool scales_aligned = (({' | '.join(f'(u32){each}' for each in words)}) & {_WORD - 1}) == 0;"


def scale_place_lines(binding: GemmBinding, asked: WholeGemm) -> Iterator[str]:
    """Where a lane fetches scales, and where it reads those of the first part."""
    tile = binding.tile
    if not tile.has_scales:
        return
    words = tile.geometry.scale_line // _WORD
    yield "// Scales: a row's bytes side by side; " + (
        "a lane reads those of its rows of C at once, and that of its column."
        if tile.block_sums
        else "a lane reads those of its blocks of all steps at once."
    )
    yield f"const u32 scale_wave = (u32)(u64)(ROTA_LDS char*)memory + wave * {tile.lanes * _WORD};"
    for operand in Factor:
        name = operand.value
        row = f"thread / {words}"
        if asked.gate and operand is Factor.B:
            row = f"({row} - scales_before)"
        yield f"const int {name}_scale_fetch = {row} * {row_name(operand)} + thread % {words} * {_WORD};"
        place = f"{name}_row * {tile.geometry.scale_line}"
        if tile.scaled:
            place += f" + lane_group * {tile.steps}"
        elif operand is Factor.A:
            first = f"wave_row * {binding.wave_rows(operand)} + lane_group * {tile.part_registers}"
            place = f"({first}) * {tile.geometry.scale_line}"
        yield (
            f"ROTA_LDS const char* const {name}_scale_lane = (ROTA_LDS const char*)memory + "
            f"{binding.scale_start(operand)} + {place};"
        )


def scale_dma_text(binding: GemmBinding, dma: ScaleDma, before: Sequence[str]) -> str:
    """One DMA; `before` are the bytes of a row's scales that come before, as terms."""
    operand = dma.operand
    terms = [*before, *_rows_before(binding.tile, operand, dma.number)]
    lds = binding.scale_start(operand) + dma.lds
    name = f"{operand.value}_scale"
    return f"ROTA_SCALE_DMA({name}_global, {lds}, {name}_fetch, {' + '.join(terms) or '0'})"


def _rows_before(tile: GemmTile, operand: Factor, number: int) -> list[str]:
    """The rows that the DMAs before one bring, in bytes."""
    rows = tile.scale_dma_bytes // tile.geometry.scale_line
    return [f"{number * rows} * {row_name(operand)}"] if number else []


def scales_before(tile: GemmTile, octets: str) -> str:
    """How many of a row's scales come before so many bytes of it."""
    each = tile.row_bytes // tile.geometry.scale_line
    return f"({octets} >> {each.bit_length() - 1})"


def plain_scale_dmas(binding: GemmBinding) -> Iterator[str]:
    """The scales of one K-tile into the first buffers, at `at` bytes of K."""
    tile = binding.tile
    for operand in Factor if tile.has_scales else ():
        for number in range(tile.scale_loads(operand)):
            dma = ScaleDma(operand, number * tile.scale_dma_bytes, number, 0)
            yield scale_dma_text(binding, dma, [scales_before(tile, "at")])


def taken_scales(binding: GemmBinding) -> Iterator[str]:
    """The same byte by byte, with zeros beyond K: what they scale there is 0, too.  Floats can always come by DMA."""
    tile = binding.tile
    if tile.block_sums:
        yield from plain_scale_dmas(binding)
        yield "ROTA_WAIT_VM(0)"
        return
    words = tile.geometry.scale_line // _WORD
    for operand in Factor if tile.scaled else ():
        name, before = f"{operand.value}_scale", scales_before(tile, "at")
        for number in range(tile.scale_loads(operand)):
            further = _rows_before(tile, operand, number)
            yield "{"
            yield f"  const int first = {before} + thread % {words} * {_WORD};"
            yield "  u32 word = 0;"
            yield '  _Pragma("unroll")'
            yield f"  for (int e = 0; e < {_WORD}; ++e) {{"
            line = " + ".join([f"{name}_fetch", before, *further])
            yield f"    const u32 offset = first + e < scale_end ? (u32)({line} + e) : {NOWHERE};"
            yield (
                "    word |= (u32)(unsigned char)__builtin_amdgcn_raw_buffer_load_b8("
                f"{name}_bytes, offset, 0, 0) << (8 * e);"
            )
            yield "  }"
            start = binding.scale_start(operand) + number * tile.scale_dma_bytes
            yield f"  *(ROTA_LDS u32*)(memory + {start} + thread * {_WORD}) = word;"
            yield "}"
