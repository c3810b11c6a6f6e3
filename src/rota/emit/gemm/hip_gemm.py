"""A GEMM kernel in HIP whose machine code is the schedule; first the types, macros, registers and statements of it.

The idiom: a compiler fence after every instruction; DMAs and matrix instructions as opaque asm, to which the compiler
adds no waits; LDS reads it can see, so that it still guards their registers; waits and barriers as builtins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.emit.gemm.gemm_binding import GemmBinding
from rota.emit.gemm.gemm_plan import GemmPlan, gemm_plan
from rota.emit.gemm.gemm_tile import (
    HALVES,
    SCALING_OPCODES,
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
    Piece,
    ScaleDma,
    ScaleRead,
)
from rota.emit.gemm.lds_layout import TEAM, ColumnPanels, column_panels
from rota.emit.text import WORDS, Template, apart_text, comment, contract, identifier, sync_text, unfit
from rota.pipeline.geometry import KernelGeometry
from rota.program.kinds import Phase

TEMPLATE = Template("rota.emit", "gemm.hip.txt")


PAIR_READ, PACK = "ds_read_b32", "v_perm_b32"
"""What reads a pair of columns of a k, and what makes of two of them a register of one column."""
# B in pairs of columns, as source.
#
# A read brings a lane two columns of one k; of two such k one v_perm_b32 makes a register of the even column,
# another one a register of the odd. No load of half a register takes part: with ECC, as MI300X has it, LLVM doesn't
# count on such a load keeping the other half (`d16PreservesUnusedBits`).

COLUMN_HALVES = (0x05040100, 0x07060302)
"""The bytes that it takes, for the even column and for the odd one."""


def write_statement(binding: GemmBinding, each: LdsRead | ScaleRead | PairRead | PairPack | Mfma | BlockAdd) -> str:
    """Any instruction but a DMA, whose offset is the kernel's own."""
    if isinstance(each, PairRead):
        lane = binding.lane(binding.read_of(each.pair))
        return f"ROTA_READ_PAIR({each.target}, b_lane{lane}, {each.lds})"
    if isinstance(each, PairPack):
        sources = ", ".join(map(str, each.uses))
        return f"ROTA_PACK({each.target}[{each.register}], {sources}, {'ROTA_ODD' if each.part % 2 else 'ROTA_EVEN'})"
    if isinstance(each, ScaleRead):
        return f"ROTA_SCALE_READ({each.target}, {each.operand.value}_scale_lane, {each.lds})"
    if isinstance(each, LdsRead):
        word = "ROTA_READ_TRANSPOSED" if binding.tile.transposes(each.operand) else "ROTA_READ"
        lane = binding.lane(Piece(each.operand, each.part, each.piece))
        return f"{word}({each.target}, {each.operand.value}_lane{lane}, {each.lds})"
    if isinstance(each, Mfma):
        return f"{_mfma_name(binding.tile, each.step)}({', '.join(map(str, (each.block, *each.uses)))})"
    half, scaled, (of_a, of_b) = ("xy", "zw")[each.half], f"scaled[{each.half}]", each.scales
    added = f"ROTA_BLOCK_ADD(c[{each.a_part}][{each.b_part}], {half}, {scaled}, {of_a})"
    return added if each.adds else f"ROTA_BLOCK_SCALE({scaled}, {each.block}, {half}, {of_b})"


def lane_column(binding: GemmBinding) -> str:
    """The column that a lane has of a part's first, in source."""
    return f"lane_row * {binding.column_step}" if binding.column_step > 1 else "lane_row"


# Buffer resources in HIP.
#
# Loads beyond a resource's size give 0, and stores there have no effect.

NOWHERE = "0x80000000u"
"""An offset beyond any buffer resource."""
RAW = "0x00027000"
"""The last word of a resource of bytes."""


def asm_resource(name: str, size: str) -> str:
    """`NAME_global`, from `NAME_base` on, as asm takes it."""
    return f"const resource {name}_global = {{(u32){name}_base, (u32)({name}_base >> 32) & 0xffff, {size}, {RAW}u}};"


def builtin_resource(name: str, size: str) -> str:
    """`NAME_bytes`, the same as builtins take it."""
    return (
        f"const __amdgpu_buffer_rsrc_t {name}_bytes = "
        f"__builtin_amdgcn_make_buffer_rsrc((void*){name}_base, 0, (int){size}, {RAW});"
    )


def element_fetch(tile: GemmTile, name: str, *, element: str, offset: str, lds: str) -> Iterator[str]:
    """What a DMA would bring a lane, one element at a time from `NAME_bytes` to LDS.

    `element` says which one is `from`, of `word` and `e`, and `offset` where that lies, or that it is nowhere; `lds` is
    the lane's place, in bytes.
    """
    size = tile.element.bytes
    return TEMPLATE.lines(
        "fetch",
        tile=tile,
        name=name,
        element=element,
        offset=offset,
        lds=lds,
        words=tile.dma_bytes // tile.register_bytes,
        elements=tile.register_bytes // size,
        type="char" if size == 1 else "short",
        bits=8 * size,
    )


_TWO = 2
_TRANSPOSED = {1: "__builtin_amdgcn_ds_read_tr8_b64_v2i32", 2: "__builtin_amdgcn_ds_read_tr16_b64_v4i16"}
SCALE_DMA = "buffer_load_dword"
"""What brings scales to LDS."""
_MACRO = re.compile(r"^#define (\w+)")


def gemm_words(tile: GemmTile) -> Iterator[str]:
    """Macros, which use the types below and the kernel's `lds_wave`.

    A DMA takes its LDS address from m0, which is an output of the asm: the compiler refuses it as a clobber.
    """
    named = {operand: _name(operand.value, tile.step_pieces(operand)) for operand in Factor}
    names = ", ".join(name for each in named.values() for name in each)
    factors = ", ".join(f'"v"({_join(each)})' for each in named.values())
    if tile.scaled:
        names, factors = f"{names}, a_scale, b_scale", f'{factors}, "v"(a_scale), "v"(b_scale)'
    scale, add = SCALING_OPCODES
    return TEMPLATE.lines(
        "words",
        sync=WORDS.lines("sync"),
        dma=WORDS.lines("dma", name="ROTA_DMA", instruction=tile.dma_instruction, wave="lds_wave"),
        reads=_read_words(tile),
        scales=_scale_words(tile) if tile.has_scales else (),
        sums=TEMPLATE.lines("sums", apart=WORDS.lines("apart"), first=WORDS.lines("first"), scale=scale, add=add)
        if tile.block_sums
        else (),
        mfmas=(line for step in range(_mfma_words(tile)) for line in _mfma_word(tile, step, names, factors)),
        kept="a" if tile.accumulates_in_agprs else "v",
        stores=" ".join(
            f"out[(u64)(row + {register // 4 * 4 * tile.lane_groups + register % 4}) * N + column] = value[{register}];"
            for register in range(tile.part_registers)
        ),
    )


def _read_words(tile: GemmTile) -> Iterator[str]:
    if tile.pairs:
        even, odd = (f"{halves:#010x}" for halves in COLUMN_HALVES)
        yield from TEMPLATE.lines("pairs", apart=WORDS.lines("apart"), even=even, odd=odd, pack=PACK)
    if tile.transposes(Factor.B):
        yield from TEMPLATE.lines("transposed", builtin=_TRANSPOSED[tile.element.bytes])
        if tile.step_pieces(Factor.B) > _TWO:
            yield "#define ROTA_PAIR(x, y) __builtin_shufflevector(x, y, 0, 1, 2, 3)"
    if any(tile.step_pieces(operand) > 1 for operand in Factor):
        joined = ", ".join(map(str, range(_factor_registers(tile))))
        yield f"#define ROTA_JOIN(x, y) ((factor)__builtin_shufflevector(x, y, {joined}))"


def _mfma_word(tile: GemmTile, step: int, names: str, factors: str) -> Iterator[str]:
    before, written = ("0", "=&") if tile.block_sums and step == 0 else ("%0", "+")
    return TEMPLATE.lines(
        "mfma",
        tile=tile,
        name=_mfma_name(tile, step),
        names=names,
        before=before,
        scales=", %3, %4" if tile.scaled else "",
        modifiers="".join(f" {each}" for each in tile.modifiers(step)),
        written=written,
        kept="a" if tile.accumulates_in_agprs else "v",
        factors=factors,
    )


def _scale_words(tile: GemmTile) -> Iterator[str]:
    """DMAs and reads of scales; `scale_wave` is where a wave's four bytes a lane begin."""
    yield from WORDS.lines("dma", name="ROTA_SCALE_DMA", instruction=SCALE_DMA, wave="scale_wave")
    held = "__typeof__(target)" if tile.block_sums else {1: "unsigned char", 2: "unsigned short", 4: "u32"}[tile.steps]
    yield f"#define ROTA_SCALE_READ(target, lane, lds) target = *(ROTA_LDS const {held}*)((lane) + (lds)); ROTA_FENCE"


def _mfma_words(tile: GemmTile) -> int:
    """How many differ: by the byte of their scales, or in that the first begins a sum."""
    if tile.block_sums:
        return min(2, tile.steps)
    return tile.steps if tile.scaled else 1


def _mfma_name(tile: GemmTile, step: int) -> str:
    return f"ROTA_MFMA{min(step, _mfma_words(tile) - 1)}" if tile.has_scales else "ROTA_MFMA"


def gemm_types(tile: GemmTile) -> Iterator[str]:
    wider: list[str] = []
    if tile.transposes(Factor.B):
        held, count = {1: ("int", 2), 2: ("short", 4)}[tile.element.bytes]
        wider = [
            _vector("u32", "half", tile.piece_bytes(Factor.B) // tile.register_bytes),
            _vector(held, "turned", count),
        ]
    if any(tile.step_pieces(operand) > 1 for operand in Factor):
        wider.append(_vector("u32", "factor", _factor_registers(tile)))
    return TEMPLATE.lines(
        "types",
        tile=tile,
        piece=tile.read_bytes // tile.register_bytes,
        wider=wider,
        sums=[_vector("float", "pair", 2), _vector("float", "single", 1)] if tile.block_sums else (),
    )


def _vector(element: str, name: str, count: int) -> str:
    return f"typedef {element} {name} __attribute__((ext_vector_type({count})));"


def _name(name: str, count: int) -> list[str]:
    return [name, f"{name}_next", f"{name}_third", f"{name}_fourth"][:count]


def _join(names: Sequence[str]) -> str:
    """One, two or four pieces as a factor; of four, each pair is as wide as a plain read first."""
    if len(names) > _TWO:
        return f"ROTA_JOIN(ROTA_PAIR({', '.join(names[:2])}), ROTA_PAIR({', '.join(names[2:])}))"
    return f"ROTA_JOIN({', '.join(names)})" if len(names) == _TWO else names[0]


def macros(words: Iterable[str]) -> list[str]:
    return [match[1] for line in words if (match := _MACRO.match(line))]


def _factor_registers(tile: GemmTile) -> int:
    return tile.pieces_per_step * tile.read_bytes // tile.register_bytes


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
