"""A GEMM kernel in HIP whose machine code is the schedule.

The idiom: a compiler fence after every instruction; DMAs and matrix instructions as opaque asm, to which the compiler
adds no waits; LDS reads it can see, so that it still guards their registers; waits and barriers as builtins.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.emit.emission import unfit, with_register_waits
from rota.emit.gemm.gemm_binding import GemmBinding
from rota.emit.gemm.gemm_tile import (
    HALVES,
    BLayout,
    BlockAdd,
    BoundInstruction,
    Dma,
    Element,
    Factor,
    GemmTile,
    LdsRead,
    Mfma,
    PairPack,
    PairRead,
    ScaleDma,
    ScaleRead,
    gemm_tile,
)
from rota.emit.gemm.gemm_words import (
    NOWHERE,
    PackSpacing,
    asm_resource,
    block_add_text,
    element_fetch,
    gemm_types,
    gemm_words,
    lane_column,
    list_multiplied,
    macros,
    mfma_text,
    pair_text,
    read_for_nothing,
    read_text,
    scaling,
)
from rota.emit.gemm.lds_layout import TEAM, ColumnPanels, bank_conflicts, column_panels, free_layout, plain_layout
from rota.emit.gemm.program_form import form_of
from rota.emit.text import apart_text, check_words, comment, contract, identifier, sync_reason, sync_reasons, sync_text
from rota.pipeline.geometry import KernelGeometry
from rota.program.kinds import PATHS, Phase
from rota.targets.architecture import Architecture, architecture_of
from rota.targets.device import rates_of

# Wait states of sums of blocks.
#
# The compiler doesn't look into inline assembly. What is between two instructions counts as one state each, waits
# and barriers as none: the compiler may join them.

Bound = Sequence[Sequence[BoundInstruction]]
"""The instructions of each entry of a phase."""


def block_wait_states(phases: Mapping[Phase, Bound], tile: GemmTile) -> dict[tuple[Phase, int, int], int]:
    """Wait states by phase, entry and instruction; the most that any path there requires."""
    due: dict[tuple[Phase, int, int], int] = {}
    after = result_states(architecture_of(tile.machine), tile.instruction)
    for path in PATHS:
        ready: dict[tuple[int, int, int | None], int] = {}
        now = 0
        for phase in path:
            for entry, instructions in enumerate(phases[phase]):
                for number, each in enumerate(instructions):
                    where = phase, entry, number
                    if isinstance(each, BlockAdd):
                        missing = ready.get((each.a_part, each.b_part, each.sum_copy), 0) - now
                        due[where] = max(due.get(where, 0), missing, 0)
                        now += due[where]
                    now += 1
                    if isinstance(each, Mfma):
                        ready[each.a_part, each.b_part, each.sum_copy] = now + after
    return {where: states for where, states in due.items() if states}


def result_states(architecture: Architecture, instruction: str) -> int:
    """Wait states from a matrix instruction to a vector one that reads its result."""
    return rates_of(architecture).passes(instruction) + architecture.hazards.result.value


# B as K x N in a whole kernel.
#
# A row of B is one k: rows beyond K are beyond the buffer resource, and read as zeros. Columns beyond N are
# whatever lies there, within the resource; they make columns of D that aren't stored.


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
            f"const int b_fetch{pattern} = b_line * b_row_bytes + (b_chunk ^ {_flip(panels, row)}) * "
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
            f"{panels.panel_bytes} + (b_part{part} % {panels.chunks} ^ {_flip(panels, 'b_k')}) * "
            f"{panels.chunk_bytes};"
        )


def column_dma(tile: GemmTile, number: int, k_tile: int = 0, rows: str = "b_dma_rows") -> tuple[list[str], int]:
    """What a DMA's offset counts from the trip's rows, by its number among its matrix's, and which fetch it takes."""
    panels = column_panels(tile)
    panel, within = divmod(number, panels.dmas)
    before = k_tile * panels.dmas + within
    terms = [f"{before} * {rows}"] if before else []
    return terms + ([str(panel * panels.row_bytes)] if panel else []), within % panels.patterns


def take_columns(binding: GemmBinding, name: str, numbers: range) -> Iterator[str]:
    """The lanes that a DMA would have fetched for fetch their bytes one element at a time, with zeros beyond."""
    tile = binding.tile
    panels, size = column_panels(tile), tile.element.bytes
    each = panels.chunk_bytes // tile.dma_bytes
    start = binding.buffer_bytes(Factor.A) + numbers.start * panels.dma_rows * panels.row_bytes
    yield "#pragma clang loop unroll(disable)"
    yield f"for (int number = 0; number < {len(numbers)}; ++number) {{"
    yield f"  const int k_row = number % {panels.dmas} * {panels.dma_rows} + b_line, from_row = at / {size} + k_row;"
    yield (
        f"  const int column = number / {panels.dmas} * {panels.columns} + (b_chunk ^ {_flip(panels, 'k_row')}) * "
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


def _flip(panels: ColumnPanels, k: str) -> str:
    """What the chunks of a row are exchanged by, in source."""
    terms = [
        f"({k} >> {bit} & 1) << {place}" if place else f"({k} >> {bit} & 1)"
        for place, bit in enumerate(panels.exchange)
        if bit >= 0
    ]
    return f"({' | '.join(terms) or '0'})"


_FAR_APART = 100  # the column of comments


def emit_gemm(
    compiled: CompiledSchedule,
    geometry: KernelGeometry,
    *,
    element: Element | None = None,
    waves: int | None = None,
    tails: Sequence[CompiledSchedule] = (),
) -> str:
    """A complete kernel; waits for registers are planned first where the schedule left them to the compiler.

    `tails` are the same loop compiled with other remainders, for the numbers of K-tiles that whole trips don't reach:
    one more kernel each.  A remainder is part of a kernel's name, so that several files can be one program; nothing
    else of a file is seen outside of it.
    """
    for each in (compiled, *tails):
        check_words(each.lowered)
    variants = [with_register_waits(each) for each in (compiled, *tails)]
    tile, *others = (gemm_tile(each, geometry, element=element, waves=waves) for each in variants)
    for other, tail in zip(others, tails, strict=True):
        if other != tile:
            raise unfit(
                f"the tail {tail.name} takes {other.instruction}, {other.waves} waves and an {other.machine.name}, the "
                f"kernel itself {tile.instruction}, {tile.waves} and an {tile.machine.name}",
                fixes=("tails are the same loop for the same machine, compiled with other remainders",),
            )
    kernels = [GemmKernel(each, tile) for each in variants]
    words = list(gemm_words(tile))
    taken = set(macros(words))
    lines = [comment(f"C = {product_of(tile)} on {tile.machine.name} ({tile.machine.arch})."), *words]
    for kernel in kernels:
        name = identifier(form_of(kernel.program).symbol, taken)
        taken.add(name)
        lines += ["", *kernel.lines(name)]
    return "\n".join([*lines, "", *(f"#undef {name}" for name in macros(words)), ""])


def product_of(tile: GemmTile) -> str:
    return "A x B" if tile.b_layout is BLayout.KN else "A x B^T"


def spoken_element(tile: GemmTile) -> str:
    """What A and B hold, in words."""
    if tile.element in (Element.FP8, Element.FP8_PAIR):
        return f"fp8 ({architecture_of(tile.machine).float8.value} E4M3)"
    return {
        Element.BF16: "bf16",
        Element.FP16: "fp16",
        Element.FP4: "fp4 (OCP E2M1, the first of two in the low bits)",
    }[tile.element]


class GemmKernel:
    """Writes one kernel from top to bottom."""

    def __init__(self, compiled: CompiledSchedule, tile: GemmTile) -> None:
        self.compiled = compiled
        self.tile = tile
        self.layout = free_layout(tile)
        self.binding = GemmBinding(compiled, tile)
        self.program = compiled.lowered
        self.reasons = sync_reasons(compiled)
        self.apart: dict[tuple[Phase, int, int], int] = {}
        if tile.block_sums:
            bound = {phase: [*map(self.binding.instructions, self.program.phase(phase))] for phase in Phase}
            self.apart = block_wait_states(bound, tile)

    def lines(self, name: str) -> Iterator[str]:
        """The kernel under a name."""
        trip = self.program.tiles_per_trip * self.tile.row_bytes
        yield from self._contract(name)
        yield from self._opening(name)
        yield from self._phase(Phase.PROLOGUE)
        yield ""
        yield f"  int k = {trip};  // bytes of K before this trip's tiles"
        if self.tile.by_columns(Factor.B):
            yield f"  int b_at = {self.program.tiles_per_trip} * b_tile;  // bytes of B's rows before them"
        yield "  #pragma clang loop unroll(disable)"
        yield "  for (; trips > 0; --trips) {"
        yield from self._phase(Phase.KERNEL)
        yield f"    k += {trip};"
        if self.tile.by_columns(Factor.B):
            yield f"    b_at += {self.program.tiles_per_trip} * b_tile;"
        yield "  }"
        yield ""
        yield from self._phase(Phase.EPILOGUE)
        yield from self._closing()

    def _contract(self, name: str) -> Iterator[str]:
        geometry, program, tile = self.tile.geometry, self.program, self.tile
        free, plain = (bank_conflicts(tile, layout) for layout in (self.layout, plain_layout(tile)))
        yield f"// {name}"
        held = f"A: M x K, B: {tile.b_layout.spoken}, {spoken_element(tile)}, row-major"
        yield f"// {held}; C: M x N, fp32, row-major, overwritten."
        yield "// Rows follow one another without gaps; A and B are aligned to 16 bytes."
        yield (
            f"// Launch: grid (M / {geometry.BM}, N / {geometry.BN}), {tile.waves * tile.lanes} threads, "
            f"no dynamic LDS; M and N are multiples of {geometry.BM} and {geometry.BN}."
        )
        yield (
            f"// K / {geometry.BK} = {program.tiles_outside} + {program.tiles_per_trip} * trips, for any trips >= 0; "
            f"{'B and ' if tile.by_columns(Factor.B) else ''}{max(geometry.BM, geometry.BN)} rows take less than 2 GiB."
        )
        yield "// The kernel checks none of these: where one doesn't hold, C is wrong."
        yield f"// Compile with -O2 or -O3 (clang++ -x hip --offload-arch={tile.toolchain})."
        part = "a part's reads"
        if tile.by_columns(Factor.B):
            part = "the reads of a part of A and one of B"
            free += column_panels(tile).conflicts
            plain += ColumnPanels(tile=tile).conflicts
        yield (
            f"// LDS: {self.binding.lds_bytes} bytes; bank conflicts of {part}: {free} clocks "
            f"({plain} without the exchange of chunks)."
        )
        yield from contract(self.compiled)
        yield "// Comments give the entry: its number in its phase, its op, and why a wait or barrier is there."

    def _attributes(self) -> str:
        """What is before a kernel's name: its threads, and how many waves share a SIMD."""
        threads, per_simd = self.tile.waves * self.tile.lanes, -(-self.tile.waves // self.tile.simds)
        return (
            f'extern "C" __attribute__((global, amdgpu_flat_work_group_size({threads}, {threads}), '
            f"amdgpu_waves_per_eu({per_simd}, {per_simd})))"
        )

    def _who_it_is(self) -> Iterator[str]:
        """LDS, and the lane and wave that a thread belongs to."""
        across = self.tile.across(Factor.B)
        yield f"  __attribute__((shared, aligned(16))) static char memory[{self.binding.lds_bytes}];"
        yield "  const int thread = __builtin_amdgcn_workitem_id_x(), lane = thread & 63;"
        yield "  const int wave = __builtin_amdgcn_readfirstlane(thread >> 6);"
        yield f"  const int wave_row = wave / {across}, wave_column = wave % {across};"
        if len(self.program.roles) > 1:
            yield f"  const int wave_group = wave / {self.tile.waves // len(self.program.roles)};"

    def _opening(self, name: str) -> Iterator[str]:
        tile, geometry = self.tile, self.tile.geometry
        yield self._attributes()
        yield f"void {name}(const void* A, const void* B, float* C, int N, int K) {{"
        yield from (f"  {line}" for line in gemm_types(tile))
        yield from self._who_it_is()
        yield "  const int tile_row = __builtin_amdgcn_workgroup_id_x();"
        yield "  const int tile_column = __builtin_amdgcn_workgroup_id_y();"
        yield f"  const int row_bytes = {tile.element.in_bytes('K')};"
        yield f"  int trips = (K / {geometry.BK} - {self.program.tiles_outside}) / {self.program.tiles_per_trip};"
        yield ""
        yield "  // Buffer resources: base, size in bytes (beyond it loads give 0), raw format."
        for operand, where in ((Factor.A, "tile_row"), (Factor.B, "tile_column")):
            name, rows = operand.value, tile.rows(operand)
            row, taken = " * row_bytes", f"(u32){rows} * row_bytes"
            if tile.by_columns(operand):
                size = tile.element.bytes
                row, taken = f" * {size}", f"(u32)(K - 1) * b_row_bytes + {rows * size}"
                yield f"  const int b_row_bytes = N * {size}, b_tile = {geometry.BK} * b_row_bytes;  // a K-tile on"
            yield f"  const u64 {name}_base = (u64){operand.name} + (u64){where} * {rows}{row};"
            yield f"  {asm_resource(name, taken)}"
        yield ""
        yield f"  // A DMA of all waves fills {tile.dma_rows} rows; a lane fetches the chunk that belongs at its place."
        yield f"  const u32 lds_wave = (u32)(u64)(ROTA_LDS char*)memory + wave * {tile.lanes * tile.dma_bytes};"
        yield f"  const int dma_rows = {tile.dma_rows} * row_bytes;  // from one DMA to the next in global memory"
        yield from self._fetches()
        if tile.by_columns(Factor.B):
            yield from (f"  {line}" for line in column_fetches(tile))
        yield ""
        yield "  // Each lane's place in the first part of A and of B, for each piece of it."
        yield f"  const int lane_row = lane % {tile.side}, lane_group = lane / {tile.side};"
        yield from self._places()
        yield ""
        yield from self._register_lines()

    def _register_lines(self) -> Iterator[str]:
        """Registers of A, B and C, the latter cleared."""
        tile, binding = self.tile, self.binding
        m, n = binding.parts(Factor.A), binding.parts(Factor.B)
        a, b = (tile.steps * tile.step_pieces(operand) for operand in Factor)
        kind = "; half" if tile.transposes(Factor.B) else ","
        yield f"  piece a[{binding.copies}][{m}][{a}]{kind} b[{binding.copies}][{n}][{b}];"
        if tile.pairs:
            reads = tile.steps * column_panels(tile).step_reads
            yield f"  u32 b_pairs[{binding.copies}][{n // 2}][{reads}];  // one k each, of the columns of two parts"
        if tile.scaled:
            yield f"  u32 a_scale[{binding.copies}][{m}], b_scale[{binding.copies}][{n}];"
        if tile.block_sums:
            yield f"  part a_scale[{binding.copies}][{m}], sum[{binding.copies}][{m}][{n}];"
            yield f"  float b_scale[{binding.copies}][{n}];"
            yield f"  pair scaled[{HALVES}];"
        yield f"  part c[{m}][{n}];"
        for row in range(m):
            yield "  " + " ".join(f"c[{row}][{column}] = 0; ROTA_PIN(c[{row}][{column}])" for column in range(n))
        yield '  asm volatile("s_nop 1"); ROTA_FENCE  // a matrix instruction reads a register 2 slots after it was set'
        yield ""

    def _fetches(self) -> Iterator[str]:
        """Where in a DMA's rows each lane fetches: as many offsets as DMAs until the exchange of chunks repeats."""
        tile, layout = self.tile, self.layout
        lanes, lanes_per_chunk = tile.row_bytes // tile.dma_bytes, layout.chunk_bytes // tile.dma_bytes
        chunk, within = f"thread % {lanes}", ""
        if lanes_per_chunk > 1:
            chunk, within = f"{chunk} / {lanes_per_chunk}", f" + thread % {lanes_per_chunk} * {tile.dma_bytes}"
        yield f"  const int row = thread / {lanes}, chunk = {chunk};"
        for pattern in range(self._patterns()):
            row = f"(row + {pattern * tile.dma_rows})" if pattern else "row"
            place = f"{tile.stored_text(self._exchanged('chunk', row))} * {layout.chunk_bytes}{within}"
            yield from self._fetch(pattern, place)

    def _fetch(self, pattern: int, place: str) -> Iterator[str]:
        yield f"  const int fetch{pattern} = row * row_bytes + {place};"

    def _places(self) -> Iterator[str]:
        tile, layout, start = self.tile, self.layout, 0
        for operand, where in ((Factor.A, "wave_row"), (Factor.B, "wave_column")):
            if tile.by_columns(operand):
                yield from column_places(self.binding, start)
                continue
            name = operand.value
            yield f"  const int {name}_row = {where} * {self.binding.wave_rows(operand)} + lane_row;"
            for piece in range(tile.steps * tile.pieces_per_step):
                chunk = f"({piece * tile.lane_groups} + lane_group)"
                place = f"{self._exchanged(chunk, f'{name}_row')} * {layout.chunk_bytes}"
                yield (
                    f"  ROTA_LDS const char* const {name}_lane{piece} = "
                    f"(ROTA_LDS const char*)memory + {start} + {name}_row * {tile.row_bytes} + {place};"
                )
            start += self.binding.buffer_bytes(operand)

    def _exchanged(self, chunk: str, row: str) -> str:
        layout = self.layout
        shifted = f"{row} >> {layout.shift}" if layout.shift else row
        return f"({chunk} ^ ({shifted} & {layout.mask}))"

    def _patterns(self) -> int:
        return max(1, self.layout.period // self.tile.dma_rows)

    def _phase(self, phase: Phase) -> Iterator[str]:
        indent = "    " if phase is Phase.KERNEL else "  "
        yield f"{indent}// {phase.value.lower()}"
        spacing = PackSpacing(self.tile)
        for place, entry in enumerate(self.program.phase(phase)):
            what = f"{entry.phase.at(entry.time_slot)} {entry.op}"
            texts = []
            for number, each in enumerate(self.binding.instructions(entry)):
                texts += [apart_text(states)] if (states := spacing.before(each)) else []
                texts.append(f"{self._apart(phase, place, number)}{self._instruction(each, phase)}")
            if entry.op.is_framework:
                texts, why = [sync_text(self.program, entry)], sync_reason(self.program, entry, self.reasons)
                what = f"{what}: {why}" if why else what
            for text in texts:
                yield f"{indent}{text}".ljust(_FAR_APART) + comment(what)
        if states := spacing.at_the_end():
            yield f"{indent}{apart_text(states)}  // a matrix instruction may follow"

    def _apart(self, phase: Phase, entry: int, number: int) -> str:
        """The wait states before an instruction."""
        states = self.apart.get((phase, entry, number), 0)
        return f"{apart_text(states)} " if states else ""

    def _instruction(self, instruction: BoundInstruction, phase: Phase) -> str:
        if isinstance(instruction, Dma):
            return self._dma(instruction, phase)
        if isinstance(instruction, ScaleDma):
            return self._scale_dma(instruction, phase)
        if isinstance(instruction, PairPack):
            return pair_text(self.binding, instruction)
        if isinstance(instruction, LdsRead | ScaleRead | PairRead):
            return read_text(self.binding, instruction)
        a_part, b_part, copy = instruction.a_part, instruction.b_part, instruction.sum_copy
        total, summed = f"c[{a_part}][{b_part}]", f"sum[{copy}][{a_part}][{b_part}]"
        if isinstance(instruction, BlockAdd):
            return block_add_text(instruction, total, summed, scaling(instruction))
        return mfma_text(self.tile, instruction.step, total if copy is None else summed, *list_multiplied(instruction))

    def _scale_dma(self, dma: ScaleDma, phase: Phase) -> str:
        del dma, phase
        raise unfit("scales of blocks have no parameters in the form hip", fixes=("`--form kernel` has them",))

    def _dma(self, dma: Dma, phase: Phase) -> str:
        operand = dma.operand
        if self.tile.by_columns(operand):
            return self._column_dma(dma, phase)
        lds = dma.lds + (self.binding.buffer_bytes(Factor.A) if operand is Factor.B else 0)
        terms = ["k"] if phase is not Phase.PROLOGUE else []
        terms += [str(dma.k_tile * self.tile.row_bytes)] if dma.k_tile else []
        terms += [f"{dma.number} * dma_rows"] if dma.number else []
        offset = " + ".join(terms) or "0"
        return f"ROTA_DMA({operand.value}_global, {lds}, fetch{dma.number % self._patterns()}, {offset})"

    def _column_dma(self, dma: Dma, phase: Phase) -> str:
        rows, pattern = column_dma(self.tile, dma.number, dma.k_tile)
        terms = [] if phase is Phase.PROLOGUE else ["b_at"]
        lds = dma.lds + self.binding.buffer_bytes(Factor.A)
        return f"ROTA_DMA(b_global, {lds}, b_fetch{pattern}, {' + '.join([*terms, *rows]) or '0'})"

    def _read_for_nothing(self) -> list[str]:
        """Registers that the epilogue reads once more than it uses them."""
        return read_for_nothing(each for entry in self.program.epilogue for each in self.binding.instructions(entry))

    def _closing(self) -> Iterator[str]:
        tile, binding = self.tile, self.binding
        a_rows, b_rows = binding.wave_rows(Factor.A), binding.wave_rows(Factor.B)
        m, n = binding.parts(Factor.A), binding.parts(Factor.B)
        yield ""
        kept = " ".join(f'asm volatile("" :: "v"({each}));' for each in self._read_for_nothing())
        if kept:
            yield f"  {kept} ROTA_FENCE  // nothing uses these, but the schedule reads them"
        yield '  asm volatile("s_nop 15\\n\\ts_nop 3"); ROTA_FENCE  // the last results are in their registers'
        yield from (f"  {line}" for line in self._pins())
        yield (
            f"  float* const out = C + (u64)(tile_row * {tile.geometry.BM} + wave_row * {a_rows} + lane_group * 4) * N "
            f"+ tile_column * {tile.geometry.BN} + wave_column * {b_rows} + {lane_column(binding)};"
        )
        for row in range(m):
            for column in range(n):
                first, second = binding.first_row(Factor.A, row), binding.column(column)
                yield f"  ROTA_STORE(c[{row}][{column}], {first}, {second})"
        yield "}"

    def _pins(self) -> Iterator[str]:
        """Accumulators stay where the matrix instructions have them."""
        for row in range(self.binding.parts(Factor.A)):
            yield " ".join(f"ROTA_PIN(c[{row}][{column}])" for column in range(self.binding.parts(Factor.B)))
