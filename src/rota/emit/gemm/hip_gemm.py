"""A GEMM kernel in HIP whose machine code is the schedule.

The idiom: a compiler fence after every instruction; DMAs and matrix instructions as opaque asm, to which the compiler
adds no waits; LDS reads it can see, so that it still guards their registers; waits and barriers as builtins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.emit.emission import unfit
from rota.emit.gemm.gemm_binding import GemmBinding
from rota.emit.gemm.gemm_plan import GemmPlan, gemm_plan
from rota.emit.gemm.gemm_tile import HALVES, BoundInstruction, Dma, Element, Factor, GemmTile, Mfma, ScaleDma
from rota.emit.gemm.gemm_words import (
    NOWHERE,
    TEMPLATE,
    asm_resource,
    element_fetch,
    gemm_types,
    gemm_words,
    lane_column,
    macros,
    write_statement,
)
from rota.emit.gemm.lds_layout import TEAM, ColumnPanels, column_panels
from rota.emit.text import WORDS, apart_text, comment, contract, identifier, sync_text
from rota.pipeline.geometry import KernelGeometry
from rota.program.kinds import Phase

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
    unit = tile.dma_bytes // size
    return TEMPLATE.lines("column_sizes", columns=columns, size=size, unit=unit, bk=tile.geometry.BK)


def column_fetches(tile: GemmTile) -> Iterator[str]:
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
    yield f"const int b_k = lane_group * {panels.run}{k_within};"
    yield (
        f"ROTA_LDS const char* const b_row = (ROTA_LDS const char*)memory + {start} + b_k * {panels.row_bytes} + "
        f"lane % {panels.side_by_side} * {panels.read_bytes};"
    )
    for part in range(0, binding.tile.parts(Factor.B), binding.column_step):
        first = binding.first_row(Factor.B, part) // TEAM
        yield f"const int b_part{part} = wave_column * {binding.wave_rows(Factor.B) // TEAM} + {first}{within};"
        yield (
            f"ROTA_LDS const char* const b_lane{part} = b_row + b_part{part} / {panels.chunks} * "
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
    start = binding.buffer_bytes(Factor.A) + numbers.start * panels.dma_rows * panels.row_bytes
    fetch = element_fetch(
        tile,
        name,
        element=f"column + word * {tile.register_bytes // size} + e",
        offset=(f"from_row < depth && from < b_columns ? (u32)(from_row * b_row_bytes + from * {size}) : {NOWHERE}"),
        lds=f"{start} + number * {panels.dma_rows * panels.row_bytes}",
    )
    return TEMPLATE.lines(
        "take_columns",
        panels=panels,
        count=len(numbers),
        size=size,
        flip=_flip(panels, "k_row"),
        each=panels.chunk_bytes // tile.dma_bytes,
        unit=tile.dma_bytes // size,
        fetch=fetch,
    )


def _flip(panels: ColumnPanels, k: str) -> str:
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
    plans = [gemm_plan(each, geometry, element=element, waves=waves) for each in (compiled, *tails)]
    tile = plans[0].tile
    for other, tail in zip(plans[1:], tails, strict=True):
        if (its := other.tile) != tile:
            raise unfit(
                f"the tail {tail.name} takes {its.instruction}, {its.waves} waves and an {its.machine.name}, the "
                f"kernel itself {tile.instruction}, {tile.waves} and an {tile.machine.name}",
                fixes=("tails are the same loop for the same machine, compiled with other remainders",),
            )
    words = list(gemm_words(tile))
    taken = set(macros(words))
    lines = [comment(f"C = {plans[0].product} on {tile.machine.name} ({tile.machine.arch})."), *words]
    for plan in plans:
        name = identifier(plan.symbol, taken)
        taken.add(name)
        lines += ["", *GemmKernel(plan).lines(name)]
    return "\n".join([*lines, "", *(f"#undef {name}" for name in macros(words)), ""])


class Source(NamedTuple):
    """Some DMAs of an operand that have one resource: its name, the first and last but one, and the operand."""

    name: str
    operand: Factor
    numbers: range


class GemmKernel:
    """Prints a plan from top to bottom; a kernel of the loop alone, which is for whole tiles in rows without gaps."""

    def __init__(self, plan: GemmPlan) -> None:
        self.plan = plan
        self.compiled, self.program = plan.compiled, plan.program
        self.tile, self.layout, self.binding = plan.tile, plan.layout, plan.binding
        self.sources = tuple(self._sources())

    def _sources(self) -> Iterator[Source]:
        for operand in Factor:
            yield Source(operand.value, operand, range(self.tile.dmas(operand)))

    def _prefix(self, operand: Factor) -> str:
        """How names begin of what A and B don't share: rows that are equally long are one's and the other's."""
        return "b_" if self.tile.by_columns(operand) else ""

    @property
    def _recounts(self) -> bool:
        """True if the places of B's DMAs are computed anew in every trip."""
        return False

    def lines(self, name: str) -> Iterator[str]:
        tile, binding, geometry = self.tile, self.binding, self.tile.geometry
        free, plain = self.plan.conflicts
        columns = tile.by_columns(Factor.B)
        return TEMPLATE.lines(
            "kernel",
            tile=tile,
            binding=binding,
            program=self.program,
            name=name,
            element=self.plan.element,
            threads=tile.waves * tile.lanes,
            large=f"{'B and ' if columns else ''}{max(geometry.BM, geometry.BN)}",
            reads="the reads of a part of A and one of B" if columns else "a part's reads",
            free=free,
            plain=plain,
            contract=contract(self.compiled),
            attributes=self._attributes(),
            types=gemm_types(tile),
            thread=self._thread(),
            k_bytes=tile.element.in_bytes("K"),
            resources=self._resources(),
            wave_bytes=tile.lanes * tile.dma_bytes,
            fetches=self._fetches(),
            column_fetches=column_fetches(tile) if columns else (),
            places=self._places(),
            registers=self._registers(),
            loop=self._loop(),
            unused=self._keep_unused(),
            pins=self._pins(),
            a_rows=binding.wave_rows(Factor.A),
            b_rows=binding.wave_rows(Factor.B),
            lane_column=lane_column(binding),
            stores=(
                f"ROTA_STORE(c[{row}][{column}], {binding.first_row(Factor.A, row)}, {binding.column(column)})"
                for row, column in self.plan.blocks
            ),
        )

    def _loop(self, now: Sequence[str] = ()) -> Iterator[str]:
        """The schedule's phases; `now` is what a trip begins with."""
        tiles, columns = self.program.tiles_per_trip, self.tile.by_columns(Factor.B)
        return TEMPLATE.lines(
            "loop",
            prologue=self._phase(Phase.PROLOGUE),
            trip=tiles * self.tile.row_bytes,
            first_rows=[f"int b_at = {tiles} * b_tile;  // bytes of B's rows before them"] if columns else (),
            now=now,
            loop=self._phase(Phase.KERNEL),
            next_rows=[f"b_at += {tiles} * b_tile;"] if columns else (),
            epilogue=self._phase(Phase.EPILOGUE),
        )

    def _attributes(self) -> Iterator[str]:
        per_simd = -(-self.tile.waves // self.tile.simds)
        return WORDS.lines("attributes", threads=self.tile.waves * self.tile.lanes, waves=per_simd)

    def _thread(self) -> Iterator[str]:
        """LDS, and the lane and wave that a thread belongs to."""
        roles = len(self.program.roles)
        return TEMPLATE.lines(
            "thread",
            lds=self.binding.lds_bytes,
            thread=WORDS.lines("thread"),
            across=self.tile.across(Factor.B),
            group=[f"const int wave_group = wave / {self.tile.waves // roles};"] if roles > 1 else (),
        )

    def _resources(self) -> Iterator[str]:
        tile = self.tile
        for operand, where in ((Factor.A, "tile_row"), (Factor.B, "tile_column")):
            name, rows = operand.value, tile.rows(operand)
            row, taken = " * row_bytes", f"(u32){rows} * row_bytes"
            if tile.by_columns(operand):
                size = tile.element.bytes
                row, taken = f" * {size}", f"(u32)(K - 1) * b_row_bytes + {rows * size}"
                yield f"const int b_row_bytes = N * {size}, b_tile = {tile.geometry.BK} * b_row_bytes;  // a K-tile on"
            yield f"const u64 {name}_base = (u64){operand.name} + (u64){where} * {rows}{row};"
            yield asm_resource(name, taken)

    def _registers(self) -> Iterator[str]:
        """Registers of A, B and C, the latter cleared."""
        tile, binding, copies = self.tile, self.binding, self.binding.copies
        m, n = binding.tile.parts(Factor.A), binding.tile.parts(Factor.B)
        a, b = (tile.steps * tile.step_pieces(operand) for operand in Factor)
        others: list[str] = []
        if tile.pairs:
            reads = tile.steps * column_panels(tile).step_reads
            others.append(f"u32 b_pairs[{copies}][{n // 2}][{reads}];  // one k each, of the columns of two parts")
        if tile.scaled:
            others.append(f"u32 a_scale[{copies}][{m}], b_scale[{copies}][{n}];")
        if tile.block_sums:
            others += [f"part a_scale[{copies}][{m}], sum[{copies}][{m}][{n}];", f"float b_scale[{copies}][{n}];"]
            others.append(f"pair scaled[{HALVES}];")
        return TEMPLATE.lines(
            "registers",
            copies=copies,
            m=m,
            n=n,
            a=a,
            b=b,
            kind="; half" if tile.transposes(Factor.B) else ",",
            others=others,
            clear=(
                " ".join(f"c[{row}][{column}] = 0; ROTA_PIN(c[{row}][{column}])" for column in range(n))
                for row in range(m)
            ),
        )

    def _fetches(self) -> Iterator[str]:
        """Where in a DMA's rows each lane fetches: as many offsets as DMAs until the exchange of chunks repeats."""
        tile, layout = self.tile, self.layout
        lanes, lanes_per_chunk = tile.row_bytes // tile.dma_bytes, layout.chunk_bytes // tile.dma_bytes
        chunk, within = f"thread % {lanes}", ""
        if lanes_per_chunk > 1:
            chunk, within = f"{chunk} / {lanes_per_chunk}", f" + thread % {lanes_per_chunk} * {tile.dma_bytes}"
        yield f"const int row = thread / {lanes}, chunk = {chunk};"
        prefixes = dict.fromkeys(self._prefix(operand) for operand in Factor if not tile.by_columns(operand))
        for pattern in range(self.plan.patterns):
            row = f"(row + {pattern * tile.dma_rows})" if pattern else "row"
            place = f"{tile.order_in_memory(layout.exchange('chunk', row))} * {layout.chunk_bytes}{within}"
            for prefix in prefixes:
                yield f"const int {prefix}fetch{pattern} = row * {prefix}row_bytes + {place};"

    def _places(self) -> Iterator[str]:
        tile, layout, start = self.tile, self.layout, 0
        for operand, where in ((Factor.A, "wave_row"), (Factor.B, "wave_column")):
            if tile.by_columns(operand):
                yield from column_places(self.binding, start)
                continue
            name = operand.value
            yield f"const int {name}_row = {where} * {self.binding.wave_rows(operand)} + lane_row;"
            for piece in range(self.plan.pieces):
                chunk = f"({piece * tile.lane_groups} + lane_group)"
                place = f"{layout.exchange(chunk, f'{name}_row')} * {layout.chunk_bytes}"
                yield (
                    f"ROTA_LDS const char* const {name}_lane{piece} = "
                    f"(ROTA_LDS const char*)memory + {start} + {name}_row * {tile.row_bytes} + {place};"
                )
            start += self.binding.buffer_bytes(operand)

    def _phase(self, phase: Phase) -> Iterator[str]:
        indent = "    " if phase is Phase.KERNEL else "  "
        yield f"{indent}// {phase.value.lower()}"
        for entry, instructions, apart, what, after in self.plan.statements[phase]:
            texts = [sync_text(self.program, entry)] if entry.op.is_framework else []
            for states, each in zip(apart, instructions, strict=True):
                written = [*([apart_text(states)] if states else []), self._instruction(each, phase)]
                texts += written if isinstance(each, Mfma) else [" ".join(written)]
            yield from (f"{indent}{text}".ljust(_FAR_APART) + comment(what) for text in texts)
            if after:
                yield f"{indent}{apart_text(after)}  // a matrix instruction may follow"

    def _instruction(self, instruction: BoundInstruction, phase: Phase) -> str:
        if isinstance(instruction, Dma):
            return self._dma(instruction, phase)
        if isinstance(instruction, ScaleDma):
            return self._scale_dma(instruction, phase)
        return write_statement(self.binding, instruction)

    def _scale_dma(self, dma: ScaleDma, phase: Phase) -> str:
        del dma, phase
        raise unfit("scales of blocks have no parameters in the form hip", fixes=("`--form kernel` has them",))

    def _dma(self, dma: Dma, phase: Phase) -> str:
        if not self.tile.by_columns(dma.operand):
            return self._dma_text(dma, self.plan.offset(dma, phase))
        now = "rows_now" if phase is Phase.KERNEL and self._recounts else "b_dma_rows"
        return self._dma_text(dma, [] if phase is Phase.PROLOGUE else ["b_at"], now)

    def _dma_text(self, dma: Dma, terms: Sequence[str], rows_of_b: str = "b_dma_rows") -> str:
        prefix = self._prefix(dma.operand)
        source = next(each for each in self.sources if each.operand is dma.operand and dma.number in each.numbers)
        number = dma.number - source.numbers.start
        rows, pattern = [f"{number} * {prefix}dma_rows"] if number else [], dma.number % self.plan.patterns
        if self.tile.by_columns(dma.operand):
            rows, pattern = column_dma(self.tile, number, dma.k_tile, rows_of_b)
        offset = " + ".join([*terms, *rows]) or "0"
        return f"ROTA_DMA({source.name}_global, {self.plan.lds(dma)}, {prefix}fetch{pattern}, {offset})"

    def _keep_unused(self) -> Iterator[str]:
        """Uses what the epilogue reads once too often: else the compiler would drop the read."""
        if unused := self.plan.find_unused():
            kept = " ".join(f'asm volatile("" :: "v"({each}));' for each in unused)
            yield f"  {kept} ROTA_FENCE  // nothing uses these, but the schedule reads them"

    def _pins(self) -> Iterator[str]:
        for row in range(self.tile.parts(Factor.A)):
            yield " ".join(f"ROTA_PIN(c[{row}][{column}])" for column in range(self.tile.parts(Factor.B)))
