"""A GEMM's tile on a machine: what one wave moves and computes.

C = A x B^T: A is M x K, B is N x K, C is M x N, all row-major, C in fp32. A loop whose reads of B transpose, or whose
vector ops do, takes B as K x N.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from rota.check import bad_field, check_types
from rota.emit.text import GEOMETRY, unfit
from rota.pipeline.geometry import FLOAT_BLOCK, SCALED_BLOCK, WAVE_GRIDS, KernelGeometry, check_waves
from rota.program.entry import Space
from rota.program.kinds import OpKind, takes_scales
from rota.program.loop_spec import SCALE_OPERANDS
from rota.program.lowered import Lowerable
from rota.program.machine import Machine
from rota.targets.architecture import architecture_of
from rota.targets.device import device_of, rates_of

_FP4_FORMAT = 4


class Element(enum.Enum):
    """What A and B hold; the value is how matrix instructions spell it, but for fp4, which they choose by a modifier.

    `FP8_PAIR` is e4m3 as the machine has it, OCP's or FNUZ, in the instructions that take nothing else.
    """

    BF16 = "bf16"
    FP16 = "f16"
    FP8 = "f8f6f4"
    FP8_PAIR = "fp8_fp8"
    FP4 = "fp4"

    @property
    def spelled(self) -> str:
        """How the name of a matrix instruction ends."""
        return Element.FP8.value if self is Element.FP4 else self.value

    @property
    def bytes(self) -> int:
        """Size of one, or of as many as are packed."""
        return 1 if self in (Element.FP8, Element.FP8_PAIR, Element.FP4) else 2

    @property
    def packed(self) -> int:
        """How many share these bytes, the first one lowest."""
        return 2 if self is Element.FP4 else 1

    def in_bytes(self, count: str) -> str:
        """So many elements, as source: a whole number of bytes."""
        return f"{count} / {self.packed}" if self.packed > 1 else f"{count} * {self.bytes}"

    @property
    def modifiers(self) -> tuple[str, ...]:
        """Of the matrix instruction, where both factors' format isn't the one that it takes by itself."""
        return (f"cbsz:{_FP4_FORMAT}", f"blgp:{_FP4_FORMAT}") if self is Element.FP4 else ()


class Factor(enum.Enum):
    """The two factors; A has the rows of C, B its columns."""

    A = "a"
    B = "b"


class BLayout(enum.Enum):
    """How B lies in memory, row-major in either case; the value is its word."""

    NK = "nk"
    KN = "kn"

    def __str__(self) -> str:
        return self.value

    @property
    def spoken(self) -> str:
        return " x ".join(self.sizes)

    @property
    def sizes(self) -> tuple[str, str]:
        return ("K", "N") if self is BLayout.KN else ("N", "K")


class BlockScales(enum.Enum):
    """Scales of blocks along K: bytes (E8M0) that matrix instructions take, or floats that scale sums; the word."""

    NONE = "none"
    MX = "1x32"
    FLOAT = "1x128"

    @property
    def block(self) -> int:
        """Elements of a row that share one."""
        return FLOAT_BLOCK if self is BlockScales.FLOAT else SCALED_BLOCK

    @property
    def bytes(self) -> int:
        return 4 if self is BlockScales.FLOAT else 1

    @property
    def spoken(self) -> str:
        return "fp32" if self is BlockScales.FLOAT else "E8M0 bytes"

    @property
    def columns(self) -> str:
        return f"ceil(K / {self.block})" if self is BlockScales.FLOAT else f"K / {self.block}"

    def in_bytes(self, count: str) -> str:
        return f"{count} * {self.bytes}" if self.bytes > 1 else count

    def of_row(self, depth: str) -> str:
        """How many this many elements of a row have, as source; those with scales in bytes are whole blocks."""
        if self is BlockScales.FLOAT:
            return f"({depth} + {self.block - 1}) / {self.block}"
        return f"{depth} / {self.block}"


class Piece(NamedTuple):
    """What one LDS read brings a wave: a part of its share of an operand, and a piece of that."""

    operand: Factor
    part: int
    piece: int


class ColumnPair(NamedTuple):
    """What one LDS read brings of B in pairs of columns: one k, by its number among a lane's, of two parts' columns."""

    pair: int
    number: int


_TWO = 2  # elements of a register, and columns of a pair
DMA_WORDS = {16: "dwordx4", 4: "dword"}
"""How a DMA is spelled, by the bytes that it moves for each lane."""


def tile_rules(tile: GemmTile) -> dict[str, bool]:
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
    if tile.scaled:
        rules |= {
            "scales come four at a time, so that BK is a multiple of 128": geometry.BK % 128 == 0,
            "the scales of a lane's blocks are one, two or four bytes": tile.steps in (1, 2, 4),
            "scales are those of f8f6f4": tile.element in (Element.FP8, Element.FP4),
        }
    if tile.block_sums:
        rules |= {
            f"a K-tile is one block with a scale, so that BK is {FLOAT_BLOCK}": geometry.BK == FLOAT_BLOCK,
            "scales in fp32 are those of fp8": tile.element in (Element.FP8, Element.FP8_PAIR),
            "sums of blocks are of 16 x 16": tile.side == 16,
        }
    return rules


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
        f"half of BN by BK elements are whole DMAs of {moved} bytes": tile.geometry.BK * row % moved == 0,
        "B as K x N has a byte or more for each element, and no scales": (
            tile.element.packed == 1 and not tile.has_scales
        ),
    }


_WIDEST_READ = 16
_TRANSPOSED_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmTile:
    """One workgroup's tile: the geometry, split among waves in a grid of 2 x 2 or 2 x 4.

    A *part* is the rows (columns) that one matrix instruction takes, a *step* its depth of K, and a *piece* what one
    LDS read brings of a part: a step is one piece, or several where a lane needs more than 16 bytes of it.

    Where it is `scaled`, a byte for each block of 32 along K scales that block of a row.  A lane reads the scales of
    its blocks of all steps at once: those are side by side, so that steps take blocks of K in turn
    (`order_in_memory`).  With scales in fp32 a K-tile is one block, whose products are summed by themselves
    (`block_sums`).

    B as K x N is read by instructions that transpose, or, where LDS has none, in `pairs` of columns: of two k vector
    instructions make a register of the even column and one of the odd, so that the columns of two parts take turns.
    """

    geometry: KernelGeometry
    waves: int
    element: Element
    machine: Machine
    b_layout: BLayout = BLayout.NK
    scales: BlockScales = BlockScales.NONE

    def __post_init__(self) -> None:
        check_types(self, {"geometry": KernelGeometry, "element": Element, "machine": Machine})
        check_types(self, {"b_layout": BLayout, "scales": BlockScales})
        check_waves(self, self.waves)
        geometry = self.geometry
        if (geometry.elem_bytes, geometry.packed) != (self.element.bytes, self.element.packed):
            size = f"{geometry.elem_bytes} bytes" if geometry.packed == 1 else f"{geometry.packed} in a byte"
            raise bad_field(self, "element", self.element, f"an element of {size}")
        rates_of(self.machine).passes(self.instruction)
        broken = tuple(rule for rule, holds in tile_rules(self).items() if not holds)
        if broken:
            raise unfit(
                f"no kernel is written for a tile of {geometry.BM}x{geometry.BN}x{geometry.BK} (BM, BN, BK) by "
                f"{self.waves} waves with {self.instruction}",
                evidence=(("must hold, but doesn't", rule) for rule in broken),
                fixes=(GEOMETRY,),
            )

    def by_columns(self, operand: Factor) -> bool:
        """True if an operand has K along its columns, in memory and in LDS."""
        return operand is Factor.B and self.b_layout is BLayout.KN

    @property
    def has_scales(self) -> bool:
        return self.scales is not BlockScales.NONE

    @property
    def scaled(self) -> bool:
        """True if the matrix instruction takes the scales."""
        return self.scales is BlockScales.MX

    @property
    def block_sums(self) -> bool:
        """True if the products of a block are summed separately, and the sums scaled."""
        return self.scales is BlockScales.FLOAT

    @property
    def pairs(self) -> bool:
        """True if B is read in pairs of columns, which vector instructions transpose."""
        return self.by_columns(Factor.B) and not architecture_of(self.machine).transposed_reads

    def transposes(self, operand: Factor) -> bool:
        return self.by_columns(operand) and not self.pairs

    @property
    def instruction(self) -> str:
        return _instruction(self.geometry, self.element, scaled=self.scaled)

    def modifiers(self, step: int) -> tuple[str, ...]:
        """Of the matrix instruction: which byte of its scales' registers it takes, and the format of its factors."""
        if not self.scaled:
            return self.element.modifiers
        low, high = step % 2, step // 2
        chosen = (f"op_sel:[{low},{low},0]",) if low else ()
        return (*chosen, f"op_sel_hi:[{high},{high},0]", *self.element.modifiers)

    @property
    def dma_instruction(self) -> str:
        return f"buffer_load_{DMA_WORDS[self.dma_bytes]}"

    @property
    def toolchain(self) -> str:
        return device_of(self.machine).toolchain

    @property
    def lanes(self) -> int:
        return device_of(self.machine).lanes.value

    @property
    def register_bytes(self) -> int:
        return device_of(self.machine).register_bytes.value

    @property
    def simds(self) -> int:
        return rates_of(self.machine).simds.value

    @property
    def side(self) -> int:
        """Rows and columns of one matrix instruction."""
        return self.geometry.MMA_M

    @property
    def lane_groups(self) -> int:
        """Groups of lanes that hold the same rows of a part, each another stretch of K."""
        return self.lanes // self.side

    @property
    def row_bytes(self) -> int:
        return self.geometry.line_bytes

    @property
    def dma_bytes(self) -> int:
        """What one lane moves with one DMA."""
        return self.machine.dma_width.value

    @property
    def read_bytes(self) -> int:
        """What one lane reads with one LDS read."""
        return min(_WIDEST_READ, self._lane_bytes)

    @property
    def pieces_per_step(self) -> int:
        """LDS reads that bring one lane's operand of a matrix instruction."""
        return self._lane_bytes // self.read_bytes

    def piece_bytes(self, operand: Factor) -> int:
        return _TRANSPOSED_BYTES if self.transposes(operand) else self.read_bytes

    def step_pieces(self, operand: Factor) -> int:
        """LDS reads that bring a lane what a matrix instruction takes of an operand."""
        return self._lane_bytes // self.piece_bytes(operand)

    def read_instruction(self, operand: Factor) -> str:
        bits = 8 * self.piece_bytes(operand)
        return f"ds_read_b{bits}_tr_b{8 * self.element.bytes}" if self.transposes(operand) else f"ds_read_b{bits}"

    @property
    def steps(self) -> int:
        """Matrix instructions along a K-tile."""
        return self.geometry.BK // self.geometry.MMA_K

    def order_in_memory(self, chunk: str) -> str:
        """Which chunk of a row in memory, each what one lane reads at once, is a chunk of the row in LDS; as source.

        There pieces follow one another, and in a piece groups of lanes.  With scales, steps take blocks of K in turn.
        """
        if not self.scaled or self.steps == 1:
            return chunk
        of_step = self.pieces_per_step * self.lane_groups
        each = SCALED_BLOCK * self.element.bytes // self.element.packed // self.read_bytes
        block = f"({chunk} % {of_step} / {each} * {self.steps} + {chunk} / {of_step})"
        return f"({block} * {each} + {chunk} % {each})" if each > 1 else block

    @property
    def scale_dma_bytes(self) -> int:
        return self.register_bytes * self.lanes * self.waves

    def scale_loads(self, operand: Factor) -> int:
        return self.geometry.scale_loads(self.rows(operand), self.waves)

    def scale_bytes(self, operand: Factor) -> int:
        return self.scale_loads(operand) * self.scale_dma_bytes

    @property
    def accumulator_registers(self) -> int:
        return self.own_rows(Factor.A) * self.own_rows(Factor.B) // self.lanes

    @property
    def part_registers(self) -> int:
        """Registers a lane holds of C for one matrix instruction."""
        return self.side * self.side // self.lanes

    @property
    def fragment_registers(self) -> int:
        rows = sum(self.own_rows(operand) for operand in Factor)
        scales = sum(self.scale_registers(operand) * self.parts(operand) for operand in Factor)
        rows += self.own_rows(Factor.B) if self.pairs else 0  # as they are read, and as they are multiplied
        return rows * self.row_bytes // (self.lanes * self.register_bytes) + scales

    def scale_registers(self, operand: Factor) -> int:
        """Registers of the scales of one part: a lane's bytes, or a float for each of its rows or its column of C."""
        if self.block_sums:
            return self.part_registers if operand is Factor.A else 1
        return 1 if self.scaled else 0

    def scale_read_instruction(self, operand: Factor) -> str:
        """What reads the scales of a part from LDS: a lane's bytes of all steps, or its floats."""
        if self.block_sums:
            return f"ds_read_b{8 * self.register_bytes * self.scale_registers(operand)}"
        return {1: "ds_read_u8", 2: "ds_read_u16"}.get(self.steps, "ds_read_b32")

    @property
    def accumulates_in_agprs(self) -> bool:
        """True if C leaves too few of the 256 registers that all instructions can name."""
        addressable, addresses = 256, 40
        needed = self.accumulator_registers + self.fragment_registers + addresses
        return self.waves <= self.simds and needed > addressable and not self.block_sums

    def rows(self, operand: Factor) -> int:
        """Rows of the workgroup's tile of A, or of B (which are columns of C)."""
        return self.geometry.BM if operand is Factor.A else self.geometry.BN

    def across(self, operand: Factor) -> int:
        """Waves that share the rows of an operand among them."""
        return WAVE_GRIDS[self.waves][0 if operand is Factor.A else 1]

    def own_rows(self, operand: Factor) -> int:
        return self.rows(operand) // self.across(operand)

    def tile_bytes(self, operand: Factor) -> int:
        """What a K-tile of an operand takes in LDS: whole DMAs, of which the last may bring zeros after its rows."""
        return self.dmas(operand) * self.dma_rows * self.row_bytes

    def parts(self, operand: Factor) -> int:
        return self.own_rows(operand) // self.side

    def dmas(self, operand: Factor) -> int:
        """DMAs of all waves that bring a K-tile."""
        return -(-self.rows(operand) // self.dma_rows)

    def slice_dmas(self, operand: Factor, slices: int) -> int:
        self.slice_rows(operand, slices)
        return self.dmas(operand) // slices

    def slice_rows(self, operand: Factor, slices: int) -> int:
        """Rows of each slice, if this many slices are whole DMAs and whole parts of every wave."""
        rows, left = divmod(self.rows(operand), slices)
        at_once = self.across(operand) * self.side * (2 if operand is Factor.B and self.pairs else 1)
        if self.by_columns(operand) and slices > 2:  # panels
            raise unfit(
                f"B as K x N can't be loaded in {slices} slices: it lies in LDS in two panels of columns",
                evidence=(("slices", slices), ("panels", 2)),
            )
        whole = self.by_columns(operand) or slices == 1 or rows % self.dma_rows == 0
        if left or not whole or rows % at_once:
            raise unfit(
                f"{operand.name}'s {self.rows(operand)} rows can't be loaded in {slices} slices: a slice is whole DMAs "
                f"of {self.dma_rows} rows, which all waves bring, and whole parts of {at_once}, which they multiply",
                evidence=(
                    ("rows of a slice", f"{self.rows(operand) / slices:g}"),
                    ("DMA", self.dma_rows),
                    ("waves", at_once),
                ),
            )
        return rows

    def slice_pieces(self, operand: Factor, slice_: int, slices: int) -> tuple[Piece, ...]:
        """What a wave reads of one of several slices: part after part, each over the whole depth of the K-tile."""
        own = self.parts(operand) // slices
        pieces = range(self.steps * self.step_pieces(operand))
        return tuple(
            Piece(operand, part, piece) for part in range(slice_ * own, (slice_ + 1) * own) for piece in pieces
        )

    @property
    def dma_rows(self) -> int:
        return self.dma_bytes * self.lanes * self.waves // self.row_bytes

    @property
    def _lane_bytes(self) -> int:
        return self.side * self.geometry.MMA_K * self.element.bytes // self.element.packed // self.lanes


def gemm_tile(
    compiled: Lowerable, geometry: KernelGeometry, *, element: Element | None = None, waves: int | None = None
) -> GemmTile:
    """The tile a program is for; what it says itself, its waves and matrix instructions, need not be said again.

    Where it doesn't say how many waves it has, every role has one on every SIMD.
    """
    program = compiled.lowered
    if program.waves is not None and waves not in (None, program.waves):
        raise unfit(
            f"the loop is declared for {program.waves} waves, and is asked to be written for {waves}",
            evidence=(("declared", program.waves), ("asked", str(waves))),
            fixes=(f"`--set waves={program.waves}`, or waves={program.waves} in Python",),
        )
    if waves is None:
        waves = program.waves or rates_of(program.machine).simds.value * len(program.roles)
    named = {entry.op.work.instruction for entry in program.entries if entry.op.work and entry.op.work.instruction}
    declared = {element_of(instruction, geometry) for instruction in sorted(named)}
    if element is None:
        element = declared.pop() if declared else Element.FP8 if geometry.is_fp8 else Element.BF16
    if others := declared - {element}:
        raise unfit(
            f"the loop multiplies {' and '.join(sorted(other.name for other in others))}, and the kernel is to "
            f"multiply {element.name}; one kernel multiplies one kind of element",
            evidence=(("to be written with", _instruction(geometry, element)),),
        )
    scaled = {takes_scales(instruction) for instruction in named}
    if len(scaled) > 1:
        raise unfit("some matrix ops of the loop take scales, and some don't; one kernel multiplies in one way")
    if not named:  # then the operands say it
        scaled = {
            any(place.name in SCALE_OPERANDS for place in entry.effect.reads)
            for entry in program.entries
            if entry.op.kind is OpKind.MMA
        }
    adds, turns = (
        any(
            entry.op.kind is OpKind.VALU and any(place.space is space for place in entry.effect.writes)
            for entry in program.entries
        )
        for space in (Space.ACCUMULATOR, Space.REGISTER)
    )
    transposes = any(entry.op.kind is OpKind.LDS_READ_TRANSPOSED for entry in program.entries)
    turned = transposes or (turns and not architecture_of(program.machine).transposed_reads)
    return GemmTile(
        geometry=geometry,
        waves=waves,
        element=element,
        machine=program.machine,
        b_layout=BLayout.KN if turned else BLayout.NK,
        scales=BlockScales.MX if scaled == {True} else BlockScales.FLOAT if adds else BlockScales.NONE,
    )


def element_of(instruction: str, geometry: KernelGeometry) -> Element:
    """The element that a matrix instruction multiplies, which must have the geometry's shape."""
    for element in Element:
        if element.packed == geometry.packed and instruction in (
            _instruction(geometry, element),
            _instruction(geometry, element, scaled=True),
        ):
            return element
    shape = f"{geometry.MMA_M}x{geometry.MMA_N}x{geometry.MMA_K}"
    raise unfit(
        f"the kernel multiplies with {instruction}, but the geometry says {shape} (MMA_M, MMA_N, MMA_K)",
        evidence=(
            ("of that shape", _instruction(geometry, element))
            for element in Element
            if (element.bytes, element.packed) == (geometry.elem_bytes, geometry.packed)
        ),
        fixes=("give the geometry the shape of the instruction: `--set geometry.MMA_M=16`, MMA_N, MMA_K",),
    )


def _instruction(geometry: KernelGeometry, element: Element, *, scaled: bool = False) -> str:
    return (
        f"v_mfma_{'scale_' if scaled else ''}f32_{geometry.MMA_M}x{geometry.MMA_N}x{geometry.MMA_K}_{element.spelled}"
    )


class Register(NamedTuple):
    """The registers that one read fills, or one block of C: an element of an array that has several copies."""

    array: str
    copy: int
    numbers: tuple[int, ...]

    def __str__(self) -> str:
        return self.array + "".join(f"[{each}]" for each in (self.copy, *self.numbers))

    @property
    def name(self) -> str:
        """The same as one word."""
        return f"{self.array}{self.copy}_{'_'.join(map(str, self.numbers))}"


def of_piece(operand: Factor, copy: int, part: int, piece: int) -> Register:
    return Register(operand.value, copy, (part, piece))


def of_scale(operand: Factor, copy: int, part: int) -> Register:
    return Register(f"{operand.value}_scale", copy, (part,))


def of_pair(pair: ColumnPair, copy: int) -> Register:
    """One k of a pair of columns of B, as it is read."""
    return Register("b_pairs", copy, pair)


class Dma(NamedTuple):
    """One DMA of all waves: its LDS byte within the operand's buffers, its number among the tile's, and the K-tile."""

    operand: Factor
    lds: int
    number: int
    k_tile: int


class LdsRead(NamedTuple):
    """One LDS read of a piece of a part into a copy of its registers; `lds` is the part's start in the buffers."""

    operand: Factor
    lds: int
    part: int
    piece: int
    copy: int

    @property
    def target(self) -> Register:
        return of_piece(self.operand, self.copy, self.part, self.piece)


class PairRead(NamedTuple):
    """One LDS read of one k of a pair of parts of B into a copy of its register; `lds` counts as in an `LdsRead`."""

    lds: int
    pair: ColumnPair
    copy: int

    @property
    def target(self) -> Register:
        return of_pair(self.pair, self.copy)


class PairPack(NamedTuple):
    """One vector instruction that makes a register of a piece of B: its column's halves of what two reads brought.

    `sources` are what was read, the lower k first, and `copies` theirs.
    """

    part: int
    piece: int
    register: int
    sources: tuple[ColumnPair, ColumnPair]
    copies: tuple[int, int]
    copy: int

    @property
    def uses(self) -> tuple[Register, ...]:
        return tuple(map(of_pair, self.sources, self.copies))

    @property
    def target(self) -> Register:
        return of_piece(Factor.B, self.copy, self.part, self.piece)


class Mfma(NamedTuple):
    """One matrix instruction: a step of K for a part of A and a part of B, each piece in a copy of its registers.

    Where it is scaled, `scale_copies` are those of A's scales and of B's.  Where it sums a block by itself, `sum_copy`
    is the copy of that sum, which the first step begins.
    """

    step: int
    a_part: int
    b_part: int
    a_copies: tuple[int, ...]
    b_copies: tuple[int, ...]
    scale_copies: tuple[int, ...] = ()
    sum_copy: int | None = None

    def factor(self, operand: Factor) -> tuple[int, tuple[int, ...]]:
        return (self.a_part, self.a_copies) if operand is Factor.A else (self.b_part, self.b_copies)

    def factors(self, operand: Factor) -> tuple[Register, ...]:
        part, copies = self.factor(operand)
        return tuple(of_piece(operand, copy, part, piece) for piece, copy in enumerate(copies, self.step * len(copies)))

    @property
    def scales(self) -> tuple[Register, ...]:
        return _scales(self)

    @property
    def block(self) -> Register:
        """What it adds to: a part of C, or the sum of a block."""
        if self.sum_copy is None:
            return Register("c", self.a_part, (self.b_part,))
        return Register("sum", self.sum_copy, (self.a_part, self.b_part))

    @property
    def uses(self) -> tuple[Register, ...]:
        return (*self.factors(Factor.A), *self.factors(Factor.B), *self.scales)


class ScaleDma(NamedTuple):
    """One DMA of all waves that brings scales: its LDS byte within those of the operand, its number, and the K-tile."""

    operand: Factor
    lds: int
    number: int
    k_tile: int


class ScaleRead(NamedTuple):
    """One LDS read of a part's scales of all steps into a copy of their register; `lds` is where the part's begin."""

    operand: Factor
    lds: int
    part: int
    copy: int

    @property
    def target(self) -> Register:
        return of_scale(self.operand, self.copy, self.part)


class BlockAdd(NamedTuple):
    """One vector instruction on two registers of a block's sum: it scales them by B's, or adds them by A's to C."""

    a_part: int
    b_part: int
    sum_copy: int
    scale_copies: tuple[int, int]
    half: int
    adds: bool

    @property
    def scales(self) -> tuple[Register, ...]:
        return _scales(self)

    @property
    def block(self) -> Register:
        return Register("sum", self.sum_copy, (self.a_part, self.b_part))

    @property
    def uses(self) -> tuple[Register, ...]:
        return self.scales

    @property
    def opcode(self) -> str:
        return SCALING_OPCODES[self.adds]

    @property
    def modifiers(self) -> tuple[str, ...]:
        """B's scale is one for both registers."""
        return () if self.adds else ("op_sel_hi:[1,0]",)


def _scales(each: Mfma | BlockAdd) -> tuple[Register, ...]:
    """The scales of a part of A and of one of B; none where there are none."""
    parts = zip(Factor, (each.a_part, each.b_part), each.scale_copies, strict=False)
    return tuple(of_scale(operand, copy, part) for operand, part, copy in parts)


SCALING_OPCODES = ("v_pk_mul_f32", "v_pk_fma_f32")
"""What scales the sum of a block, and adds it."""
HALVES = 2
"""Of the registers that a lane has of a block's sum."""


def block_adds(a_part: int, b_part: int, sum_copy: int, scale_copies: tuple[int, int]) -> Iterator[BlockAdd]:
    """Both halves of a block's sum are scaled before the first is added: a packed result is read a slot later."""
    for adds in (False, True):
        for half in range(HALVES):
            yield BlockAdd(a_part, b_part, sum_copy, scale_copies, half, adds)


BoundInstruction = Dma | LdsRead | Mfma | ScaleDma | ScaleRead | BlockAdd | PairRead | PairPack
