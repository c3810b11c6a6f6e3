"""A whole GEMM in HIP, for any M, N and K.

The loop is the schedule's, as `hip_gemm` writes it. Around it: edge tiles by the bounds of buffer resources, what whole
trips leave of K, the order of workgroups, splits of K, and D with its epilogue.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.emit.emission import unfit, with_register_waits
from rota.emit.gemm.gemm_binding import GemmBinding
from rota.emit.gemm.gemm_loop import packs_of, pairs_of
from rota.emit.gemm.gemm_tile import (
    Dma,
    Element,
    Factor,
    GemmTile,
    LdsRead,
    Mfma,
    PairRead,
    Piece,
    ScaleDma,
    ScaleRead,
    block_adds,
    gemm_tile,
)
from rota.emit.gemm.gemm_words import (
    NOWHERE,
    PackSpacing,
    asm_resource,
    block_add_text,
    builtin_resource,
    element_fetch,
    gemm_types,
    gemm_words,
    macros,
    mfma_text,
    of_piece,
    of_scale,
    pair_text,
    read_text,
)
from rota.emit.gemm.hip_gemm import (
    GemmKernel,
    column_dma,
    column_fetches,
    column_sizes,
    product_of,
    result_states,
    spoken_element,
    take_columns,
)
from rota.emit.gemm.lds_layout import LdsLayout
from rota.emit.gemm.program_form import form_of
from rota.emit.text import FIRST_MARK, LAST_MARK, apart_text, check_words, comment, contract, identifier
from rota.emit.whole.whole_finish import (
    PARTIAL_UNIT,
    check_room,
    closing_lines,
    finish_types,
    finish_words,
    late_lines,
    matrix_lines,
    reduction_lines,
)
from rota.emit.whole.whole_options import PARAMETERS, REDUCTION_THREADS, WholeGemm, check_layout, check_scales, spoken
from rota.pipeline.geometry import KernelGeometry
from rota.program.kinds import Phase
from rota.targets.architecture import architecture_of

# In which order workgroups take tiles.
#
# The machine deals workgroups to its dies (XCDs) in turn. Each die has an L2 of its own, so that neighbouring
# tiles, which share rows of A or B, should be on one die: each gets a run of tiles. Within it tiles go down `group`
# rows before the next column, so that a run is a block of tiles rather than a line.


def count_lines(geometry: KernelGeometry, asked: WholeGemm) -> Iterator[str]:
    """How many tiles there are."""
    columns = geometry.BN // asked.products
    yield f"const u32 tile_rows = ((u32)M + {geometry.BM - 1}) / {geometry.BM};"
    yield f"const u32 tile_columns = ((u32)N + {columns - 1}) / {columns};"
    yield "const u32 tiles = tile_rows * tile_columns;"


def order_lines(asked: WholeGemm) -> Iterator[str]:
    """`tile_row` and `tile_column` of the workgroup's `turn`."""
    yield "u32 turn_of_tile = turn;"
    if asked.xcds > 1:
        yield f"// {asked.xcds} dies take workgroups in turn; each gets a run of tiles."
        yield f"const u32 die = turn % {asked.xcds};"
        yield f"const u32 more = tiles % {asked.xcds} < die ? tiles % {asked.xcds} : die;"
        yield f"turn_of_tile = die * (tiles / {asked.xcds}) + more + turn / {asked.xcds};"
    if asked.group > 1:
        yield f"// {asked.group} rows of tiles are taken together, a column of them after the other."
        yield f"const u32 of_group = {asked.group} * tile_columns;"
        yield f"const u32 group_first = turn_of_tile / of_group * {asked.group};"
        yield (f"const u32 height = tile_rows - group_first < {asked.group} ? tile_rows - group_first : {asked.group};")
        yield ("const int tile_row = __builtin_amdgcn_readfirstlane(group_first + turn_of_tile % of_group % height);")
        yield "const int tile_column = __builtin_amdgcn_readfirstlane(turn_of_tile % of_group / height);"
    else:
        yield "const int tile_row = __builtin_amdgcn_readfirstlane(turn_of_tile / tile_columns);"
        yield "const int tile_column = __builtin_amdgcn_readfirstlane(turn_of_tile % tile_columns);"
    yield ""


# What whole trips leave of K.
#
# A K-tile that lies within K, of rows that a DMA can fetch, comes as in the loop; any other is fetched element by
# element, with zeros beyond K.


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
        taken = take_columns(binding, source.name, source.numbers) if columns else _take(binding, layout, source)
        yield from (f"      {line}" for line in taken)
    yield from (f"      {line}" for line in scales)
    yield "    }"
    yield "    ROTA_MEET"
    yield from (f"    {line}" for line in _multiply(binding))
    yield "    ROTA_MEET"
    yield "  }"
    yield "}"


def _take(binding: GemmBinding, layout: LdsLayout, source: Source) -> Iterator[str]:
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


def _multiply(binding: GemmBinding) -> Iterator[str]:
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
        yield from _turn(binding, b, spacing) if tile.pairs else ()
        for row in range(binding.parts(Factor.A)):
            for column in range(binding.parts(Factor.B)):
                if states := spacing.before(Mfma(step, row, column, (0,) * len(a), (0,) * len(b))):
                    yield apart_text(states)
                factors = (_factors(Factor.A, row, a), _factors(Factor.B, column, b))
                scaled_by = (of_scale(Factor.A, 0, row), of_scale(Factor.B, 0, column)) if tile.scaled else ()
                total = f"sum[0][{row}][{column}]" if tile.block_sums else f"c[{row}][{column}]"
                yield mfma_text(tile, step, total, *factors, *scaled_by)
    if tile.block_sums:
        yield from _add(binding)


def _add(binding: GemmBinding) -> Iterator[str]:
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


def _turn(binding: GemmBinding, pieces: Sequence[int], spacing: PackSpacing) -> Iterator[str]:
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


# The scales of blocks in a whole kernel.
#
# A's are M rows of K / 32 bytes, B's N rows; each byte is a power of two (E8M0) for a block of 32 elements along K.
# Or they are rows of floats, one for each block of 128. They come to LDS as A and B do, by DMAs of four bytes a
# lane, in the order in which they lie in memory.

_WORD = 4  # bytes that a lane moves
SCALE_PARAMETERS = frozenset(each.name for each in PARAMETERS if "_scale" in each.name and each.type != "const float*")
"""The kernel's parameters that are about scales of blocks."""


def row_name(operand: Factor) -> str:
    """Bytes from a row of scales to the next, in the kernel."""
    return f"{operand.value}_scale_row"


def check_halves(tile: GemmTile) -> None:
    """Where half of a tile is another B's: check that the scales each wave brings belong to one B."""
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
    """How many of a row's scales come before this many bytes of it."""
    each = tile.row_bytes // tile.geometry.scale_line
    return f"({octets} >> {each.bit_length() - 1})"


def plain_scale_dmas(binding: GemmBinding) -> Iterator[str]:
    """The scales of one K-tile into the first buffers, at `at` bytes of K."""
    tile = binding.tile
    for operand in Factor if tile.has_scales else ():
        for number in range(tile.scale_loads(operand)):
            dma = ScaleDma(operand, number * tile.scale_dma_bytes, number, 0)
            yield scale_dma_text(binding, dma, [scales_before(tile, "at")])


def take_scales(binding: GemmBinding) -> Iterator[str]:
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


_DEVICE = "#ifdef __HIP_DEVICE_COMPILE__  // the host needs the name alone"


def emit_whole(
    compiled: CompiledSchedule,
    geometry: KernelGeometry,
    asked: WholeGemm | None = None,
    *,
    element: Element | None = None,
    waves: int | None = None,
) -> str:
    """The kernel, and the one that adds the splits of K."""
    asked = asked or WholeGemm()
    check_words(compiled.lowered)
    planned = with_register_waits(compiled)
    tile = gemm_tile(planned, geometry, element=element, waves=waves)
    kernel = WholeKernel(planned, tile, asked)
    words = [*gemm_words(tile), *_own_words(), *finish_words(tile, asked)]
    name = identifier(whole_name(planned, asked), macros(words))
    lines = [comment(f"D = epilogue({product_of(tile)}) on {tile.machine.name} ({tile.machine.arch})."), *words, ""]
    lines += [*kernel.lines(name), "", *kernel.reduction(f"{name}_reduce")]
    return "\n".join([*lines, "", *(f"#undef {macro}" for macro in macros(words)), ""])


def whole_name(planned: CompiledSchedule, asked: WholeGemm) -> str:
    """What a kernel is called; the one that adds splits has `_reduce` after it."""
    return "_".join([form_of(planned.lowered).symbol, *asked.words])


def _own_words() -> Iterator[str]:
    yield (
        '#define ROTA_MARK(n) { u32 m0; asm volatile("s_mov_b32 m0, %1" : "={m0}"(m0) : "i"(n) : "memory"); } '
        "ROTA_FENCE  // where the schedule begins and ends, for whoever reads the machine code"
    )


class WholeKernel(GemmKernel):
    """Writes the kernel from top to bottom."""

    def __init__(self, compiled: CompiledSchedule, tile: GemmTile, asked: WholeGemm) -> None:
        super().__init__(compiled, tile)
        self.asked = asked
        check_layout(asked, tile)
        check_room(tile, self.binding.lds_bytes)
        check_scales(asked, tile)
        if asked.gate:
            check_halves(tile)
        self.sources = tuple(self._sources())

    @property
    def _ends_late(self) -> bool:
        """True if what only the end needs is read there; before, scalar registers would be short."""
        return self.asked.persistent or self.tile.has_scales

    @property
    def _recounts(self) -> bool:
        """True if the places of B's DMAs are computed anew in every trip; scalar registers would be short for all."""
        return self.tile.by_columns(Factor.B) and (self.tile.pairs or self.asked.persistent)

    def _sources(self) -> Iterator[Source]:
        a, b = (dma_numbers(self.tile, operand) for operand in Factor)
        yield Source("a", Factor.A, range(a))
        if not self.asked.gate:
            yield Source("b", Factor.B, range(b))
            return
        if b % 2:
            raise unfit(
                f"a gated epilogue takes half of a tile from each B; {b} DMAs of {self.tile.dma_rows} rows can't be "
                "halved",
                evidence=(("BN", self.tile.geometry.BN), ("rows of a DMA", self.tile.dma_rows)),
            )
        yield Source("b", Factor.B, range(b // 2))
        yield Source("b_up", Factor.B, range(b // 2, b))

    def lines(self, name: str) -> Iterator[str]:
        """The kernel under a name."""
        yield from self._contract(name)
        yield from self._head(name)
        yield from (f"  {line}" for line in count_lines(self.tile.geometry, self.asked))
        if self.asked.persistent:
            yield "  #pragma clang loop unroll(disable)"
            yield "  for (u32 turn = __builtin_amdgcn_workgroup_id_x(); turn < tiles; turn += (u32)workgroups) {"
        else:
            yield "  const u32 turn = __builtin_amdgcn_workgroup_id_x();"
        yield from (f"  {line}" for line in self._tile())
        if self.asked.persistent:
            yield "  }"
        yield "#endif"
        yield "}"

    def _tile(self) -> Iterator[str]:
        geometry, program, tile = self.tile.geometry, self.program, self.tile
        yield from order_lines(self.asked)
        yield from self._resources()
        yield from self._lane_places()
        yield from self._registers()
        trip = program.tiles_per_trip * tile.row_bytes
        reached = "dma_depth" if tile.by_columns(Factor.B) else "depth"
        yield f"const int whole_tiles = aligned ? {reached} / {geometry.BK} : 0;"
        yield f"const int end = {tile.element.in_bytes('depth')};  // bytes of K"
        yield "int summed = 0;  // of which this many are in the sums"
        yield f"if (whole_tiles >= {program.tiles_outside}) {{"
        yield f"  int trips = (whole_tiles - {program.tiles_outside}) / {program.tiles_per_trip};"
        yield f"  summed = ({program.tiles_outside} + {program.tiles_per_trip} * trips) * {tile.row_bytes};"
        yield f"  ROTA_MARK({FIRST_MARK:#x})"
        yield from self._phase(Phase.PROLOGUE)
        yield ""
        yield f"  int k = {trip};  // bytes of K before this trip's tiles"
        if tile.by_columns(Factor.B):
            yield f"  int b_at = {program.tiles_per_trip} * b_tile;  // bytes of B's rows before them"
        yield "  #pragma clang loop unroll(disable)"
        yield "  for (; trips > 0; --trips) {"
        if self._recounts:  # or all multiples would be kept, and spilled
            yield '    int rows_now = b_dma_rows; asm volatile("" : "+s"(rows_now));'
        yield from self._phase(Phase.KERNEL)
        yield f"    k += {trip};"
        if tile.by_columns(Factor.B):
            yield f"    b_at += {program.tiles_per_trip} * b_tile;"
        yield "  }"
        yield ""
        yield from self._phase(Phase.EPILOGUE)
        kept = " ".join(f'asm volatile("" :: "v"({each}));' for each in self._read_for_nothing())
        if kept:
            yield f"  {kept} ROTA_FENCE  // nothing uses these, but the schedule reads them"
        yield f"  ROTA_MARK({LAST_MARK:#x})"
        yield "}"
        yield ""
        dmas = (*self._plain_dmas(), *plain_scale_dmas(self.binding))
        yield from rest_lines(self.binding, self.layout, self.sources, dmas, [*take_scales(self.binding)])
        yield ""
        yield 'asm volatile("s_nop 15\\n\\ts_nop 3"); ROTA_FENCE  // the last results are in their registers'
        yield from self._pins()
        if not self._ends_late:
            yield from closing_lines(self.binding, self.asked)
            return
        yield "{"
        closing = (*late_lines(), *matrix_lines(self.asked), *closing_lines(self.binding, self.asked))
        yield from (f"  {line}" for line in closing)
        yield "}"

    def _contract(self, name: str) -> Iterator[str]:
        geometry, program, tile, asked = self.tile.geometry, self.program, self.tile, self.asked
        yield f"// {name}"
        held = f"A: M x K, B: {tile.b_layout.spoken}, {spoken_element(tile)}, row-major"
        yield f"// {held}; D: M x N, {asked.output.value}, row-major."
        if tile.has_scales:
            each, block = tile.scales.columns, tile.scales.block
            yield (
                f"// A_scale: M x {each}, B_scale: N x {each}, {tile.scales.spoken}, row-major: each scales {block} "
                "elements along K."
            )
        yield f"// D: {spoken(asked.epilogue)}."
        if tile.scaled or tile.element.packed > 1:
            depth = "any K that is a multiple of 32" if tile.scaled else "any even K"
            apart = "an even" if tile.element.packed > 1 else "any"
            yield f"// Any M and N from 1 on, {depth}.  Rows are {apart} number of elements apart, from K on."
        else:
            yield "// Any M, N and K from 1 on.  Rows may be any number of elements apart, from their own length on."
        yield (
            f"// Where rows of A and B begin at multiples of {tile.dma_bytes} bytes, {geometry.BK} * "
            f"({program.tiles_outside} + {program.tiles_per_trip} * trips) of K are summed by the schedule's loop, "
            "the rest unpipelined; else all of it."
        )
        if tile.by_columns(Factor.B):
            unit = tile.dma_bytes // tile.element.bytes
            yield f"// So is the K-tile of B's last row, where a tile's columns are no multiple of {unit}."
        columns = geometry.BN // asked.products
        yield (
            f"// Launch: grid (ceil(M / {geometry.BM}) * ceil(N / {columns}), splits, batches), "
            f"{tile.waves * tile.lanes} threads, no dynamic LDS."
        )
        yield f"// With splits > 1, {name}_reduce must follow; see there."
        rows = f"{max(geometry.BM, geometry.BN)} rows of A or B"
        if tile.by_columns(Factor.B):
            rows = f"{geometry.BM} rows of A, the rows of B that a split sums"
        yield (
            f"// {rows}, {max(geometry.BM, REDUCTION_THREADS)} rows of D and {geometry.BM} of a split's sums take less "
            "than 2 GiB; the launcher checks it, the kernel doesn't."
        )
        yield (
            "// Loads beyond a buffer resource give 0, in LDS too, and stores have no effect; the scalar offset "
            "counts, and a difference below 0 is 0."
        )
        yield f"// Compile with -O2 or -O3 (clang++ -x hip --offload-arch={tile.toolchain})."
        yield f"// LDS: {self.binding.lds_bytes} bytes."
        yield from contract(self.compiled)
        yield "// Comments give the entry: its number in its phase, its op, and why a wait or barrier is there."

    def _head(self, name: str) -> Iterator[str]:
        tile, geometry = self.tile, self.tile.geometry
        yield self._attributes()
        yield f"void {name}({_parameters()}) {{"
        yield f"  {_unused()}"
        yield _DEVICE
        yield from (f"  {line}" for line in (*gemm_types(tile), *finish_types(self.asked)))
        yield from self._who_it_is()
        yield "  const long long batch = __builtin_amdgcn_workgroup_id_z();"
        yield "  const int split = __builtin_amdgcn_workgroup_id_y();"
        yield "  // Each split sums a run of K-tiles; the last ones may have less, or nothing."
        yield (
            f"  const int k_each = __builtin_amdgcn_readfirstlane((int)(((u32)K + {geometry.BK - 1}) / {geometry.BK} "
            f"+ splits - 1) / splits) * {geometry.BK};"
        )
        yield "  const int k_first = split * k_each < K ? split * k_each : K;"
        yield "  const int depth = K - k_first < k_each ? K - k_first : k_each;"
        for source in self.sources:
            pointer, letter = {"a": "A", "b": "B", "b_up": "B_up"}[source.name], source.operand.value
            first = f"k_first{' * b_stride' if tile.by_columns(source.operand) else ''}"
            offset = tile.element.in_bytes(f"(batch * {letter}_batch + {first})")
            yield f"  const u64 {source.name}_matrix = (u64){pointer} + (u64)({offset});"
        if not self.asked.persistent:
            yield from (f"  {line}" for line in scale_matrix_lines(tile, self.asked))
        if not self._ends_late:
            yield from (f"  {line}" for line in matrix_lines(self.asked))

    def _resources(self) -> Iterator[str]:
        tile, geometry, in_bytes = self.tile, self.tile.geometry, self.tile.element.in_bytes
        columns = geometry.BN // self.asked.products
        yield "// Buffer resources: base, size in bytes (beyond it loads give 0), raw format."
        for operand, extent, where in ((Factor.A, geometry.BM, "tile_row"), (Factor.B, columns, "tile_column")):
            name, limit = operand.value, "M" if operand is Factor.A else "N"
            yield f"int {name}_row_bytes = (int)({in_bytes(f'{name}_stride')});"
            if self.asked.persistent:  # or all offsets would be computed before the first tile, and spilled
                yield f'asm volatile("" : "+s"({name}_row_bytes));'
            if tile.by_columns(operand):
                yield from column_sizes(tile, extent)
                continue
            yield (
                f"const int {name}_rows = {limit} - {where} * {extent} < {extent} ? {limit} - {where} * {extent} : "
                f"{extent};"
            )
            yield f"const u32 {name}_size = (u32)({name}_rows - 1) * {name}_row_bytes + {in_bytes('depth')};"
        for source in self.sources:
            letter, name = source.operand.value, source.name
            where, extent = ("tile_row", geometry.BM) if source.operand is Factor.A else ("tile_column", columns)
            stride = "" if tile.by_columns(source.operand) else f" * {letter}_stride"
            offset = in_bytes(f"(long long){where} * {extent}{stride}")
            yield f"const u64 {name}_base = {name}_matrix + (u64)({offset});"
            yield asm_resource(name, f"{letter}_size")
            yield builtin_resource(name, f"{letter}_size")
        bases = " | ".join(f"(u32){source.name}_base" for source in self.sources)
        if self.asked.persistent and tile.has_scales:
            yield from late_lines(SCALE_PARAMETERS)
            yield from scale_matrix_lines(tile, self.asked)
        yield from scale_resource_lines(tile, self.asked)
        also = "scales_aligned && " if tile.scaled else ""
        yield (
            f"const bool aligned = {also}(({bases} | (u32)a_row_bytes | (u32)b_row_bytes) & {tile.dma_bytes - 1}) == 0;"
        )
        yield ""

    def _lane_places(self) -> Iterator[str]:
        tile = self.tile
        yield f"// A DMA of all waves fills {tile.dma_rows} rows; a lane fetches the chunk that belongs at its place."
        yield f"const u32 lds_wave = (u32)(u64)(ROTA_LDS char*)memory + wave * {tile.lanes * tile.dma_bytes};"
        for operand in Factor:
            name = operand.value
            if tile.by_columns(operand):
                yield from column_fetches(tile)
                continue
            yield f"const int {name}_dma_rows = {tile.dma_rows} * {name}_row_bytes;  // from one DMA to the next"
        yield from (line.removeprefix("  ") for line in self._fetches())
        yield ""
        yield "// Each lane's place in the first part of A and of B, for each piece of it."
        yield f"const int lane_row = lane % {tile.side}, lane_group = lane / {tile.side};"
        yield from (line.removeprefix("  ") for line in self._places())
        yield from scale_place_lines(self.binding, self.asked)
        yield ""

    def _fetch(self, pattern: int, place: str) -> Iterator[str]:
        for operand in Factor:
            if not self.tile.by_columns(operand):
                yield f"  const int {operand.value}_fetch{pattern} = row * {operand.value}_row_bytes + {place};"

    def _registers(self) -> Iterator[str]:
        yield from (line.removeprefix("  ") for line in self._register_lines())

    def _dma(self, dma: Dma, phase: Phase) -> str:
        if self.tile.by_columns(dma.operand):
            now = "rows_now" if phase is Phase.KERNEL and self._recounts else "b_dma_rows"
            return self._dma_text(dma, [] if phase is Phase.PROLOGUE else ["b_at"], now)
        terms = ["k"] if phase is not Phase.PROLOGUE else []
        terms += [str(dma.k_tile * self.tile.row_bytes)] if dma.k_tile else []
        return self._dma_text(dma, terms)

    def _scale_dma(self, dma: ScaleDma, phase: Phase) -> str:
        before = [scales_before(self.tile, "k")] if phase is not Phase.PROLOGUE else []
        before += [str(dma.k_tile * self.tile.geometry.scale_line)] if dma.k_tile else []
        return scale_dma_text(self.binding, dma, before)

    def _dma_text(self, dma: Dma, terms: list[str], rows_of_b: str = "b_dma_rows") -> str:
        operand = dma.operand.value
        source = next(each for each in self.sources if each.operand is dma.operand and dma.number in each.numbers)
        lds = dma.lds + (self.binding.buffer_bytes(Factor.A) if dma.operand is Factor.B else 0)
        number = dma.number - source.numbers.start
        rows, pattern = [f"{number} * {operand}_dma_rows"] if number else [], dma.number % self._patterns()
        if self.tile.by_columns(dma.operand):
            rows, pattern = column_dma(self.tile, number, dma.k_tile, rows_of_b)
        offset = " + ".join([*terms, *rows]) or "0"
        return f"ROTA_DMA({source.name}_global, {lds}, {operand}_fetch{pattern}, {offset})"

    def _plain_dmas(self) -> Iterator[str]:
        """One K-tile into the first buffers, at `at` bytes of K."""
        each = self.tile.dma_rows * self.tile.row_bytes
        for operand in Factor:
            for number in range(dma_numbers(self.tile, operand)):
                at = f"at / {self.tile.element.bytes} * b_row_bytes" if self.tile.by_columns(operand) else "at"
                yield self._dma_text(Dma(operand, number * each, number, 0), [at])

    def reduction(self, name: str) -> Iterator[str]:
        """The kernel that adds the splits of K, under a name."""
        width, threads = self.asked.output.width, REDUCTION_THREADS
        yield f"// {name}: adds the splits of K, the first one first, whatever the order in which they ended."
        yield f"// Launch: grid (ceil(M * ceil(N / {width}) / {threads}), 1, batches), {threads} threads."
        yield (
            f"// `partial` holds splits * M rows for each matrix of a batch, each of {self.asked.products} * N floats, "
            f"N rounded up to a multiple of {PARTIAL_UNIT}; it is aligned to 16 bytes."
        )
        yield f'extern "C" __attribute__((global, amdgpu_flat_work_group_size({threads}, {threads})))'
        yield f"void {name}({_parameters()}) {{"
        yield f"  {_unused()}"
        yield _DEVICE
        yield "  typedef unsigned int u32;"
        yield "  typedef unsigned long long u64;"
        yield from (f"  {line}" for line in (*finish_types(self.asked), *reduction_lines(self.asked)))
        yield "#endif"
        yield "}"


def _parameters() -> str:
    return ", ".join(f"{each.type} {each.name}" for each in PARAMETERS)


def _unused() -> str:
    return " ".join(f"(void){each.name};" for each in PARAMETERS)
