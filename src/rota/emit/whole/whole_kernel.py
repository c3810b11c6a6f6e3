"""A whole GEMM in HIP, for any M, N and K.

The loop is the schedule's, as `hip_gemm` writes it. Around it: edge tiles by the bounds of buffer resources, what whole
trips leave of K, the order of workgroups, splits of K, and the end, from sums to D with its epilogue.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.emit.gemm.gemm_binding import GemmBinding
from rota.emit.gemm.gemm_plan import GemmPlan, gemm_plan, plan_k_tile
from rota.emit.gemm.gemm_tile import Dma, Element, Factor, GemmTile, ScaleDma
from rota.emit.gemm.hip_gemm import (
    NOWHERE,
    RAW,
    GemmKernel,
    Source,
    asm_resource,
    builtin_resource,
    column_fetches,
    column_sizes,
    element_fetch,
    gemm_types,
    gemm_words,
    lane_column,
    macros,
    take_columns,
    write_statement,
)
from rota.emit.gemm.program_form import form_of
from rota.emit.text import FIRST_MARK, LAST_MARK, WORDS, Template, apart_text, comment, contract, identifier, unfit
from rota.emit.whole.whole_options import (
    PARAMETERS,
    REDUCTION_THREADS,
    EpilogueStep,
    Output,
    WholeGemm,
    also_before_a_gate,
    check_layout,
    check_scales,
    spoken,
    step_lines,
)
from rota.pipeline.geometry import KernelGeometry
from rota.program.kinds import Phase

TEMPLATE = Template("rota.emit", "whole.hip.txt")
_PAD = 4  # floats after a row of sums in LDS, so that rows begin in different banks
_LATE = frozenset(
    "C bias row_scale column_scale D partial c_stride d_stride c_batch d_batch alpha beta".split()  # noqa: SIM905  # brief
)
PARTIAL_UNIT = 8
"""Columns of which the sums of a split are whole multiples: what any output stores at once."""


def pitch(tile: GemmTile) -> int:
    """Floats from a row of sums in LDS to the next."""
    return tile.geometry.BN + _PAD


def block_rows(tile: GemmTile) -> int:
    """Rows that lie in LDS together: one row of parts of every wave."""
    return tile.across(Factor.A) * tile.side


def check_room(tile: GemmTile, lds_bytes: int) -> None:
    needed = block_rows(tile) * pitch(tile) * 4
    if needed > lds_bytes:
        raise unfit(
            f"{block_rows(tile)} rows of sums take {needed} bytes of LDS on their way to D, and the loop leaves "
            f"{lds_bytes}",
            evidence=(("needed", needed), ("there", lds_bytes)),
        )


def finish_words(tile: GemmTile, asked: WholeGemm) -> Iterator[str]:
    stores = " ".join(
        f"keep[{(register // 4 * 4 * tile.lane_groups + register % 4) * pitch(tile)} + (column)] = value[{register}];"
        for register in range(tile.part_registers)
    )
    return TEMPLATE.lines("words", meet=WORDS.lines("meet"), stores=stores, width=asked.output.width)


def finish_types(asked: WholeGemm) -> Iterator[str]:
    gelu = TEMPLATE.lines("gelu") if EpilogueStep.GELU in asked.epilogue else ()
    return TEMPLATE.lines("types", type=asked.output.type, width=asked.output.width, gelu=gelu)


def finish_lines(asked: WholeGemm) -> Iterator[str]:
    """`values` (and `others`) at `row` and `column` become D's, at `offset` bytes of `out`.

    Nothing here branches lane by lane: every lane stores, those beyond N beyond `out`, where stores have no effect.
    So the number of stores in flight is the same on every path, which a proof of the machine code rests on.
    """
    steps: list[str] = []
    before = asked.gate is not None
    for step in asked.epilogue:
        before = before and not step.gates
        steps += step_lines(step)
        if before:
            steps.append(also_before_a_gate(step))
    beta = EpilogueStep.BETA in asked.epilogue
    return TEMPLATE.lines(
        "finish",
        asked=asked,
        read=TEMPLATE.lines("read_c", width=asked.output.width) if beta else (),
        steps=steps,
        nowhere=NOWHERE,
        bits=8 * asked.output.bytes,
        word="u32" if asked.output is Output.F32 else "unsigned short",
    )


def matrix_lines(asked: WholeGemm) -> Iterator[str]:
    """The batch's D, and C, and whether their rows begin where 16 bytes may be moved at once."""
    size = asked.output.bytes
    yield from TEMPLATE.lines("matrix", size=size)
    if EpilogueStep.BETA in asked.epilogue:
        yield from TEMPLATE.lines("matrix_c", size=size)


def _rows_of_d(asked: WholeGemm, first: str, rows: str) -> Iterator[str]:
    """Some rows of D as a buffer resource: what is stored after the last one is dropped."""
    return TEMPLATE.lines("rows_of_d", first=first, rows=rows, size=asked.output.bytes, raw=RAW)


def late_lines(names: Collection[str] = _LATE) -> Iterator[str]:
    """What only the end of a tile needs, read from the arguments' memory: kept through the loop it would be spilled.

    A pointer that is read is cast from global memory's, as those of parameters are.
    """
    constant, at = "__attribute__((address_space(4)))", 0
    yield f"const {constant} char* late = (const {constant} char*)__builtin_amdgcn_kernarg_segment_ptr();"
    yield 'asm volatile("" : "+s"(late));'
    for each in PARAMETERS:
        size = 4 if each.type in ("int", "float") else 8
        if each.name in names:
            read = each.type.replace("*", " __attribute__((address_space(1)))*")
            yield f"{each.type} const {each.name} = ({each.type})*({read} const {constant}*)(late + {at});"
        at += size
    yield " ".join(f"(void){name};" for name in sorted(names))


def closing_lines(binding: GemmBinding, asked: WholeGemm) -> Iterator[str]:
    """From the accumulators through LDS to D: a row of parts of all waves at a time, so that lanes store along rows."""
    tile, width = binding.tile, asked.output.width
    m, n = binding.tile.parts(Factor.A), binding.tile.parts(Factor.B)
    slices = binding.buffers[Factor.A].slices
    columns = tile.geometry.BN // asked.products
    units, threads = columns // width, tile.waves * tile.lanes
    runs = block_rows(tile) * units
    unit, column = "first + thread", f"tile_column * {columns} + at_column"
    if runs % threads:  # in the last turn some lanes have nothing to store
        unit, column = (f"first + thread < {runs} ? {each}" for each in ("first + thread : 0", f"{column} : N"))
    cases = (
        (
            f"case {row}:" if row < m - 1 else "default:",
            *(f"ROTA_KEEP(c[{row}][{part}], {binding.column(part)})" for part in range(n)),
            "break;",
        )
        for row in range(m)
    )
    others = [f"float others[{width}];", f"ROTA_EACH others[e] = from[{columns} + e];"]
    return TEMPLATE.lines(
        "closing",
        tile=tile,
        asked=asked,
        rows_of_d=_rows_of_d(asked, f"(long long)tile_row * {tile.geometry.BM}", "a_rows"),
        columns=columns,
        sums=_sums_of_a_split(asked, tile),
        pitch=pitch(tile),
        a_rows=binding.wave_rows(Factor.A),
        b_rows=binding.wave_rows(Factor.B),
        lane_column=lane_column(binding),
        strips=m,
        cases=map(" ".join, cases),
        own_parts=m // slices,
        slice_rows=tile.rows(Factor.A) // slices,
        runs=runs,
        threads=threads,
        unit=unit,
        units=units,
        column=column,
        others=others if asked.gate else (),
        partial=_partial_lines(asked),
        finish=finish_lines(asked),
    )


def _sums_of_a_split(asked: WholeGemm, tile: GemmTile) -> Iterator[str]:
    """The rows of a tile where a split leaves its sums, each of whole units."""
    return TEMPLATE.lines(
        "sums_of_a_split",
        tile=tile,
        asked=asked,
        unit=PARTIAL_UNIT,
        last=PARTIAL_UNIT - 1,
        row_bytes=4 * asked.products,
        raw=RAW,
    )


def _partial_lines(asked: WholeGemm) -> Iterator[str]:
    yield "typedef float floats __attribute__((ext_vector_type(4)));"
    yield f"const int at = column < N ? line * sums_row_bytes + column * 4 : (int){NOWHERE};"
    for first in range(0, asked.output.width, 4):
        for name, beyond in (("values", ""), ("others", "across * 4 + "))[: asked.products]:
            listed = ", ".join(f"{name}[{first + each}]" for each in range(4))
            yield (
                f"__builtin_amdgcn_raw_buffer_store_b128(__builtin_bit_cast(quad, floats{{{listed}}}), place, "
                f"at + {beyond}{4 * first}, 0, 0);"
            )


def reduction_lines(asked: WholeGemm) -> Iterator[str]:
    """The kernel that adds the splits in their order, always the same, and ends as the other does."""
    width = asked.output.width
    return TEMPLATE.lines(
        "reduce",
        asked=asked,
        threads=REDUCTION_THREADS,
        matrices=matrix_lines(asked),
        last=width - 1,
        rows_of_d=_rows_of_d(asked, "(long long)first", "rows"),
        unit=PARTIAL_UNIT,
        last_of_unit=PARTIAL_UNIT - 1,
        others=[f"float others[{width}];", "ROTA_EACH others[e] = 0;"] if asked.gate else (),
        more=["ROTA_EACH others[e] += from[across + e];"] if asked.gate else (),
        finish=finish_lines(asked),
    )


# In which order workgroups take tiles.
#
# The machine deals workgroups to its dies (XCDs) in turn. Each die has an L2 of its own, so that neighbouring
# tiles, which share rows of A or B, should be on one die: each gets a run of tiles. Within it tiles go down `group`
# rows before the next column, so that a run is a block of tiles rather than a line.


def order_lines(asked: WholeGemm) -> Iterator[str]:
    """`tile_row` and `tile_column` of the workgroup's `turn`."""
    yield "u32 turn_of_tile = turn;"
    if asked.xcds > 1:
        yield from TEMPLATE.lines("dies", xcds=asked.xcds)
    yield from TEMPLATE.lines("grouped", group=asked.group) if asked.group > 1 else TEMPLATE.lines("in_order")
    yield ""


# What whole trips leave of K.
#
# A K-tile that lies within K, of rows that a DMA can fetch, comes as in the loop; any other is fetched element by
# element, with zeros beyond K.


def _multiply(binding: GemmBinding) -> Iterator[str]:
    for states, instructions in plan_k_tile(binding):
        if states:
            yield apart_text(states)
        texts = ["ROTA_WAIT_LGKM(0)"] if instructions is None else map(partial(write_statement, binding), instructions)
        yield " ".join(texts)


# The scales of blocks in a whole kernel.
#
# A's are M rows of K / 32 bytes, B's N rows; each byte is a power of two (E8M0) for a block of 32 elements along K.
# Or they are rows of floats, one for each block of 128. DMAs of four bytes a lane bring them to LDS in the order in
# which they lie in memory.

_PARAMETER_LIST = ", ".join(map(str, PARAMETERS))
_UNUSED = " ".join(f"(void){each.name};" for each in PARAMETERS)
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
            yield from TEMPLATE.lines(
                "take_scales",
                before=before,
                words=words,
                line=" + ".join([f"{name}_fetch", before, *_rows_before(tile, operand, number)]),
                nowhere=NOWHERE,
                name=name,
                start=binding.scale_start(operand) + number * tile.scale_dma_bytes,
            )


def emit_whole(
    compiled: CompiledSchedule,
    geometry: KernelGeometry,
    asked: WholeGemm | None = None,
    *,
    element: Element | None = None,
    waves: int | None = None,
) -> str:
    """The kernel, and the one that adds the splits of K."""
    return print_whole(gemm_plan(compiled, geometry, element=element, waves=waves), asked or WholeGemm())


def print_whole(plan: GemmPlan, asked: WholeGemm) -> str:
    kernel, tile = WholeKernel(plan, asked), plan.tile
    words = [*gemm_words(tile), *WORDS.lines("mark"), *finish_words(tile, asked)]
    name = identifier(whole_name(plan.compiled, asked), macros(words))
    lines = [comment(f"D = epilogue({plan.product}) on {tile.machine.name} ({tile.machine.arch})."), *words, ""]
    lines += [*kernel.lines(name), "", *kernel.reduction(f"{name}_reduce")]
    return "\n".join([*lines, "", *(f"#undef {macro}" for macro in macros(words)), ""])


def whole_name(planned: CompiledSchedule, asked: WholeGemm) -> str:
    """What a kernel is called; the one that adds splits has `_reduce` after it."""
    return "_".join([form_of(planned.lowered).symbol, *asked.words])


class WholeKernel(GemmKernel):
    def __init__(self, plan: GemmPlan, asked: WholeGemm) -> None:
        self.asked = asked
        super().__init__(plan)
        tile = self.tile
        check_layout(asked, tile)
        check_room(tile, self.binding.lds_bytes)
        check_scales(asked, tile)
        if asked.gate:
            check_halves(tile)

    def _prefix(self, operand: Factor) -> str:
        return f"{operand.value}_"

    @property
    def _ends_late(self) -> bool:
        """True if what only the end needs is read there; before, scalar registers would be short."""
        return self.asked.persistent or self.tile.has_scales

    @property
    def _recounts(self) -> bool:
        """True if the places of B's DMAs are computed anew in every trip; scalar registers would be short for all."""
        return self.tile.by_columns(Factor.B) and (self.tile.pairs or self.asked.persistent)

    def _sources(self) -> Iterator[Source]:
        if not self.asked.gate:
            yield from super()._sources()
            return
        tile = self.tile
        a, b = (tile.dmas(operand) for operand in Factor)
        yield Source("a", Factor.A, range(a))
        if b % 2 or (not tile.by_columns(Factor.B) and tile.rows(Factor.B) % tile.dma_rows):
            raise unfit(
                f"a gated epilogue takes half of a tile from each B; {tile.rows(Factor.B)} rows, in {b} DMAs of "
                f"{tile.dma_rows}, can't be halved",
                evidence=(("BN", tile.geometry.BN), ("rows of a DMA", tile.dma_rows)),
            )
        yield Source("b", Factor.B, range(b // 2))
        yield Source("b_up", Factor.B, range(b // 2, b))

    def lines(self, name: str) -> Iterator[str]:
        geometry, tile, asked = self.tile.geometry, self.tile, self.asked
        columns = geometry.BN // asked.products
        opening, closing = ["const u32 turn = __builtin_amdgcn_workgroup_id_x();"], []
        if asked.persistent:
            turns = "u32 turn = __builtin_amdgcn_workgroup_id_x(); turn < tiles; turn += (u32)workgroups"
            opening, closing = ["#pragma clang loop unroll(disable)", f"for ({turns}) {{"], ["}"]
        return TEMPLATE.lines(
            "kernel",
            tile=tile,
            name=name,
            contract=self._contract(name),
            attributes=self._attributes(),
            parameters=_PARAMETER_LIST,
            unused=_UNUSED,
            types=(*gemm_types(tile), *finish_types(asked)),
            thread=self._thread(),
            last_k=geometry.BK - 1,
            matrices=self._matrices(),
            columns=columns,
            last_row=geometry.BM - 1,
            last_column=columns - 1,
            opening=opening,
            body=self._tile(),
            closing=closing,
        )

    def _tile(self) -> Iterator[str]:
        program, tile = self.program, self.tile
        # Where B's rows are counted anew in every trip: all multiples would be kept, and spilled.
        now = ['int rows_now = b_dma_rows; asm volatile("" : "+s"(rows_now));'] if self._recounts else ()
        closing = [*closing_lines(self.binding, self.asked)]
        if self._ends_late:
            late = (*late_lines(), *matrix_lines(self.asked), *closing)
            closing = ["{", *(f"  {line}" for line in late), "}"]
        return TEMPLATE.lines(
            "tile",
            tile=tile,
            program=program,
            order=order_lines(self.asked),
            resources=self._resources(),
            places=self._lane_places(),
            registers=self._registers(),
            reached="dma_depth" if tile.by_columns(Factor.B) else "depth",
            depth_bytes=tile.element.in_bytes("depth"),
            first_mark=f"{FIRST_MARK:#x}",
            loop=self._loop(now),
            unused=self._keep_unused(),
            last_mark=f"{LAST_MARK:#x}",
            rest=self._rest(),
            pins=self._pins(),
            closing=closing,
        )

    def _rest(self) -> Iterator[str]:
        tile = self.tile
        taken = (
            take_columns(self.binding, source.name, source.numbers)
            if tile.by_columns(source.operand)
            else self._take(source)
            for source in self.sources
        )
        return TEMPLATE.lines(
            "rest",
            tile=tile,
            last=f"dma_depth * {tile.element.bytes}" if tile.by_columns(Factor.B) else "end",
            dmas=(*self._plain_dmas(), *plain_scale_dmas(self.binding)),
            taken=chain.from_iterable(taken),
            scales=take_scales(self.binding),
            multiply=_multiply(self.binding),
        )

    def _take(self, source: Source) -> Iterator[str]:
        """The lanes that a DMA would have fetched for fetch their bytes one element at a time."""
        tile, layout = self.tile, self.layout
        start = self.binding.buffer_bytes(Factor.A) if source.operand is Factor.B else 0
        lanes_per_chunk = layout.chunk_bytes // tile.dma_bytes
        first = source.numbers.start
        number = f"({first} + number)" if first else "number"
        fetch = element_fetch(
            tile,
            source.name,
            element=f"byte + word * {tile.register_bytes} + e * {tile.element.bytes}",
            # Whole blocks end with a lane's bytes: one mask instead of many.
            offset=f"{'byte' if tile.scaled else 'from'} < end ? (u32)(line + from) : {NOWHERE}",
            lds=f"{start} + {number} * {tile.dma_rows * tile.row_bytes}",
        )
        return TEMPLATE.lines(
            "take",
            tile=tile,
            layout=layout,
            source=source,
            count=len(source.numbers),
            number=number,
            exchanged=tile.order_in_memory(layout.exchange("chunk", "place")),
            within=f" + thread % {lanes_per_chunk} * {tile.dma_bytes}" if lanes_per_chunk > 1 else "",
            fetch=fetch,
        )

    def _contract(self, name: str) -> Iterator[str]:
        geometry, program, tile, asked = self.tile.geometry, self.program, self.tile, self.asked
        columns, packed = tile.by_columns(Factor.B), tile.element.packed
        scales: Iterable[str] = ()
        if tile.has_scales:
            each, block = tile.scales.columns, tile.scales.block
            scales = TEMPLATE.lines("scales_contract", each=each, scales=tile.scales.spoken, block=block)
        sizes = "Any M, N and K from 1 on.  Rows may be any number of elements apart, from their own length on."
        if tile.scaled or packed > 1:
            depth = "any K that is a multiple of 32" if tile.scaled else "any even K"
            apart = "an even" if packed > 1 else "any"
            sizes = f"Any M and N from 1 on, {depth}.  Rows are {apart} number of elements apart, from K on."
        unit = tile.dma_bytes // tile.element.bytes
        last_row = f"// So is the K-tile of B's last row, where a tile's columns are no multiple of {unit}."
        rows = f"{max(geometry.BM, geometry.BN)} rows of A or B"
        return TEMPLATE.lines(
            "contract",
            tile=tile,
            asked=asked,
            program=program,
            binding=self.binding,
            name=name,
            element=self.plan.element,
            scales=scales,
            epilogue=spoken(asked.epilogue),
            sizes=sizes,
            last_row=[last_row] if columns else (),
            columns=geometry.BN // asked.products,
            threads=tile.waves * tile.lanes,
            rows=f"{geometry.BM} rows of A, the rows of B that a split sums" if columns else rows,
            d_rows=max(geometry.BM, REDUCTION_THREADS),
            contract=contract(self.compiled),
        )

    def _matrices(self) -> Iterator[str]:
        for source in self.sources:
            pointer, letter = {"a": "A", "b": "B", "b_up": "B_up"}[source.name], source.operand.value
            first = f"k_first{' * b_stride' if self.tile.by_columns(source.operand) else ''}"
            offset = self.tile.element.in_bytes(f"(batch * {letter}_batch + {first})")
            yield f"const u64 {source.name}_matrix = (u64){pointer} + (u64)({offset});"
        if not self.asked.persistent:
            yield from scale_matrix_lines(self.tile, self.asked)
        if not self._ends_late:
            yield from matrix_lines(self.asked)

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
        yield from self._fetches()
        yield ""
        yield "// Each lane's place in the first part of A and of B, for each piece of it."
        yield f"const int lane_row = lane % {tile.side}, lane_group = lane / {tile.side};"
        yield from self._places()
        yield from scale_place_lines(self.binding, self.asked)
        yield ""

    def _scale_dma(self, dma: ScaleDma, phase: Phase) -> str:
        before = [scales_before(self.tile, "k")] if phase is not Phase.PROLOGUE else []
        before += [str(dma.k_tile * self.tile.geometry.scale_line)] if dma.k_tile else []
        return scale_dma_text(self.binding, dma, before)

    def _plain_dmas(self) -> Iterator[str]:
        """One K-tile into the first buffers, at `at` bytes of K."""
        each = self.tile.dma_rows * self.tile.row_bytes
        for operand in Factor:
            for number in range(self.tile.dmas(operand)):
                at = f"at / {self.tile.element.bytes} * b_row_bytes" if self.tile.by_columns(operand) else "at"
                yield self._dma_text(Dma(operand, number * each, number, 0), [at])

    def reduction(self, name: str) -> Iterator[str]:
        return TEMPLATE.lines(
            "reduction",
            asked=self.asked,
            name=name,
            threads=REDUCTION_THREADS,
            unit=PARTIAL_UNIT,
            parameters=_PARAMETER_LIST,
            unused=_UNUSED,
            types=finish_types(self.asked),
            lines=reduction_lines(self.asked),
        )
