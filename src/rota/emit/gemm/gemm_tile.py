"""A GEMM's tile on a machine: takes geometry, waves, element and machine, gives what one wave moves and computes.

C = A x B^T: A is M x K, B is N x K, C is M x N, all row-major, C in fp32.  A loop whose reads of B transpose, or whose
vector ops do, takes B as K x N.
"""

from __future__ import annotations

from dataclasses import dataclass

from rota.check import bad_field, check_types
from rota.emit.gemm.gemm_factors import BLayout, BlockScales, Element, Factor, Piece
from rota.emit.gemm.tile_rules import DMA_WORDS, tile_rules
from rota.emit.refusal import unfit
from rota.errors import EmissionError
from rota.pipeline.geometry import SCALED_BLOCK, WAVE_GRIDS, KernelGeometry, check_waves
from rota.program.effects import Space
from rota.program.element import takes_scales
from rota.program.kinds import OpKind
from rota.program.loop_spec import SCALE_OPERANDS
from rota.program.lowered import Lowerable
from rota.program.machine import Machine
from rota.targets.architecture import architecture_of
from rota.targets.device import device_of, rates_of

_WIDEST_READ = 16
_TRANSPOSED_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmTile:
    """One workgroup's tile: the geometry, split among waves in a grid of 2 x 2 or 2 x 4.

    A *part* is the rows (columns) that one matrix instruction takes, a *step* its depth of K, and a *piece* what one
    LDS read brings of a part: a step is one piece, or several where a lane needs more than 16 bytes of it.

    Where it is `scaled`, a byte for each block of 32 along K scales that block of a row.  A lane reads the scales of
    its blocks of all steps at once: those are side by side, so that steps take blocks of K in turn (`stored`).  With
    scales in fp32 a K-tile is one block, whose products are summed by themselves (`block_sums`).

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
            )

    def by_columns(self, operand: Factor) -> bool:
        """Does an operand lie in memory, and in LDS, with K along its columns?"""
        return operand is Factor.B and self.b_layout is BLayout.KN

    @property
    def has_scales(self) -> bool:
        """Have blocks along K scales?"""
        return self.scales is not BlockScales.NONE

    @property
    def scaled(self) -> bool:
        """Does the matrix instruction take them?"""
        return self.scales is BlockScales.MX

    @property
    def block_sums(self) -> bool:
        """Are the products of a block summed by themselves, and the sums scaled?"""
        return self.scales is BlockScales.FLOAT

    @property
    def pairs(self) -> bool:
        """Is B read in pairs of columns, which vector instructions turn?"""
        return self.by_columns(Factor.B) and not architecture_of(self.machine).transposed_reads

    def transposes(self, operand: Factor) -> bool:
        """Do the reads of an operand transpose?"""
        return self.by_columns(operand) and not self.pairs

    @property
    def instruction(self) -> str:
        """The matrix instruction."""
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
        """What moves `dma_bytes` of each lane to LDS."""
        return f"buffer_load_{DMA_WORDS[self.dma_bytes]}"

    @property
    def toolchain(self) -> str:
        """What compilers call the machine."""
        return device_of(self.machine).toolchain

    @property
    def lanes(self) -> int:
        """Lanes of a wave."""
        return device_of(self.machine).lanes.value

    @property
    def register_bytes(self) -> int:
        """What one lane's register holds."""
        return device_of(self.machine).register_bytes.value

    @property
    def simds(self) -> int:
        """SIMDs among which the waves are spread."""
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
        """One row of a K-tile."""
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
        """What one lane gets of an operand with one LDS read."""
        return _TRANSPOSED_BYTES if self.transposes(operand) else self.read_bytes

    def step_pieces(self, operand: Factor) -> int:
        """LDS reads that bring a lane what a matrix instruction takes of an operand."""
        return self._lane_bytes // self.piece_bytes(operand)

    def read_instruction(self, operand: Factor) -> str:
        """What reads a piece of an operand from LDS."""
        bits = 8 * self.piece_bytes(operand)
        return f"ds_read_b{bits}_tr_b{8 * self.element.bytes}" if self.transposes(operand) else f"ds_read_b{bits}"

    @property
    def steps(self) -> int:
        """Matrix instructions along a K-tile."""
        return self.geometry.BK // self.geometry.MMA_K

    def stored(self, chunk: int) -> int:
        """Which chunk of a row in memory, each what one lane reads at once, is a chunk of the row in LDS.

        There pieces follow one another, and in a piece groups of lanes.  With scales, steps take blocks of K in turn.
        """
        if not self.scaled:
            return chunk
        step, place = divmod(chunk, self.pieces_per_step * self.lane_groups)
        block, within = divmod(place, self._block_chunks)
        return (block * self.steps + step) * self._block_chunks + within

    def stored_text(self, chunk: str) -> str:
        """The same as source."""
        if not self.scaled or self.steps == 1:
            return chunk
        of_step, each = self.pieces_per_step * self.lane_groups, self._block_chunks
        block = f"({chunk} % {of_step} / {each} * {self.steps} + {chunk} / {of_step})"
        return f"({block} * {each} + {chunk} % {each})" if each > 1 else block

    @property
    def _block_chunks(self) -> int:
        return SCALED_BLOCK * self.element.bytes // self.element.packed // self.read_bytes

    @property
    def scale_dma_bytes(self) -> int:
        """What all waves bring with one DMA of scales."""
        return self.register_bytes * self.lanes * self.waves

    def scale_loads(self, operand: Factor) -> int:
        """DMAs of each wave that bring the scales of a K-tile."""
        return self.geometry.scale_loads(self.rows(operand), self.waves)

    def scale_bytes(self, operand: Factor) -> int:
        """LDS bytes of the scales of a K-tile, whole DMAs."""
        return self.scale_loads(operand) * self.scale_dma_bytes

    @property
    def accumulator_registers(self) -> int:
        """Registers a lane holds of C."""
        return self.own_rows(Factor.A) * self.own_rows(Factor.B) // self.lanes

    @property
    def part_registers(self) -> int:
        """Registers a lane holds of C for one matrix instruction."""
        return self.side * self.side // self.lanes

    @property
    def fragment_registers(self) -> int:
        """Registers a lane holds of one K-tile of A and B."""
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
        """Does C leave too little of the 256 registers that all instructions can name?"""
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
        """Rows that one wave multiplies."""
        return self.rows(operand) // self.across(operand)

    def tile_bytes(self, operand: Factor) -> int:
        """LDS bytes of one K-tile."""
        return self.rows(operand) * self.row_bytes

    def parts(self, operand: Factor) -> int:
        """Parts that one wave multiplies."""
        return self.own_rows(operand) // self.side

    def dmas(self, operand: Factor) -> int:
        """DMAs of all waves that bring one K-tile of an operand."""
        return self.tile_bytes(operand) // (self.dma_bytes * self.lanes * self.waves)

    def slice_rows(self, operand: Factor, slices: int) -> int:
        """Rows of each slice, if so many slices are whole DMAs and whole parts of every wave."""
        rows, left = divmod(self.rows(operand), slices)
        at_once = self.across(operand) * self.side * (2 if operand is Factor.B and self.pairs else 1)
        if self.by_columns(operand) and slices > 2:  # panels
            raise unfit(
                f"B as K x N can't be loaded in {slices} slices: it lies in LDS in two panels of columns",
                evidence=(("slices", slices), ("panels", 2)),
            )
        whole = self.by_columns(operand) or rows % self.dma_rows == 0
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
        """Rows that one DMA of all waves brings."""
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
    raise _another_instruction(instruction, geometry)


def _instruction(geometry: KernelGeometry, element: Element, *, scaled: bool = False) -> str:
    return (
        f"v_mfma_{'scale_' if scaled else ''}f32_{geometry.MMA_M}x{geometry.MMA_N}x{geometry.MMA_K}_{element.spelled}"
    )


def _another_instruction(instruction: str, geometry: KernelGeometry) -> EmissionError:
    shape = f"{geometry.MMA_M}x{geometry.MMA_N}x{geometry.MMA_K}"
    return unfit(
        f"the kernel multiplies with {instruction}, but the geometry says {shape} (MMA_M, MMA_N, MMA_K)",
        evidence=(
            ("of that shape", _instruction(geometry, element))
            for element in Element
            if (element.bytes, element.packed) == (geometry.elem_bytes, geometry.packed)
        ),
        fixes=("give the geometry the shape of the instruction",),
    )
