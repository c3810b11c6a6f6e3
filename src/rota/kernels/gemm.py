"""GEMM loops by values, for a workgroup tile, waves and a matrix instruction.

At tile granularity an op is a quadrant's worth of instructions; at instruction granularity every DMA, LDS read and MFMA
is an op of its own, as in hand-written kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from rota.check import bad_field, check_ints, check_types
from rota.emit.gemm.gemm_tile import BLayout
from rota.pipeline.geometry import FLOAT_BLOCK, WAVE_GRIDS, KernelGeometry, check_waves
from rota.program.kinds import takes_formats, takes_scales
from rota.program.loop_spec import LoopSpec
from rota.targets import cdna
from rota.targets.cdna import element_bytes_named, shape_named
from rota.values.loop import Loop

LANES = cdna.LANES.value
REGISTER_BYTES = cdna.REGISTER_BYTES.value


# Do a shape's numbers fit together.
#
# Asked when a loop is made and not when a shape is: settings are changed one at a time.


def check_fit(shape: object, instruction: str, mma: tuple[int, int], parts: Mapping[str, int]) -> None:
    """`mma` is what the instruction's name says, and each field a multiple of its part: a rest would be left out."""
    side, depth = mma
    named = shape_named(instruction)
    if named not in (None, (side, side, depth)):
        expected = f"({named[0]}, {named[2]}), the side and depth of {instruction}"
        raise bad_field(shape, "mma", mma, expected)
    for name, part in parts.items():
        if getattr(shape, name) % part:
            raise bad_field(shape, name, getattr(shape, name), f"a multiple of {part}")


_BLOCKED = f"false, unless elements are of fp8, depth is {FLOAT_BLOCK} and the instruction takes no scales itself"
_PAIR = 2  # columns that one lane reads at once, where vector ops turn them
_HALVES = 2  # of A and of B, which make the quadrants of a wave's tile
_TRANSPOSED_BYTES = 8  # that one lane gets with an LDS read that transposes


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmShape:
    """A workgroup tile (rows x columns x depth of K), its waves, element size and matrix instruction.

    `dma_bytes` and `read_bytes` are what one lane moves with one DMA or LDS read instruction; `mma` is the shape of one
    matrix instruction (rows and columns, depth of K).  All waves issue every DMA; where the rows of an operand end
    within the last one, its other lanes fill LDS after the tile, with zeros.  B as K x N (`b_layout`) is read by
    instructions that transpose, of 8 bytes a lane, or, with `b_pairs`, in pairs of columns that vector ops turn: for
    machines whose LDS has no such reads.  `packed` elements share the `element_bytes`: two of fp4 a byte.

    With `block_scales` every row of a K-tile, a block of 128, has a scale in fp32: the products of a K-tile are summed
    by themselves, and vector instructions scale these sums on their way to C.
    """

    name: str
    instruction: str
    mma: tuple[int, int]
    rows: int = 256
    columns: int = 256
    depth: int = 64
    waves: int = 8
    element_bytes: int = 2
    dma_bytes: int = 16
    read_bytes: int = 16
    b_layout: BLayout = BLayout.NK
    b_pairs: bool = False
    packed: int = 1
    block_scales: bool = False

    def __post_init__(self) -> None:
        check_types(self, {"b_layout": BLayout, "b_pairs": bool, "block_scales": bool})
        check_ints(self, ("rows", "columns", "depth", "element_bytes", "dma_bytes", "read_bytes", "packed"), least=1)
        check_waves(self, self.waves)

    @property
    def wave_tile(self) -> tuple[int, int]:
        down, across = WAVE_GRIDS[self.waves]
        return self.rows // down, self.columns // across

    def extents(self, operand: str) -> tuple[int, int]:
        """Rows of A, or columns of B, that the workgroup's tile has, and that one wave's has."""
        number = "AB".index(operand)
        return (self.rows, self.columns)[number], self.wave_tile[number]

    def in_pairs(self, operand: str) -> bool:
        """True if an operand is read in pairs of columns, which vector ops transpose."""
        return operand == "B" and self.b_layout is BLayout.KN and self.b_pairs

    def read_by(self, loop: Loop, operand: str) -> tuple[Callable[..., str], int]:
        """What declares a read of an operand from LDS, and the bytes that one lane gets with one."""
        if self.in_pairs(operand):
            return loop.fragment, REGISTER_BYTES
        if operand == "B" and self.b_layout is BLayout.KN:
            return loop.transposed, _TRANSPOSED_BYTES
        return loop.fragment, self.read_bytes

    @property
    def geometry(self) -> KernelGeometry:
        """The workgroup's tile and the matrix instruction, as emission wants them."""
        side, k = self.mma
        return KernelGeometry(
            BM=self.rows,
            BN=self.columns,
            BK=self.depth,
            MMA_M=side,
            MMA_N=side,
            MMA_K=k,
            elem_bytes=self.element_bytes,
            is_fp8=self.element_bytes == self.packed == 1,
            packed=self.packed,
        )

    def loads_of(self, rows: int) -> tuple[int, int]:
        """DMAs of all waves that bring so many rows of a K-tile, and what they write to LDS: they are whole."""
        each = self.dma_bytes * LANES * self.waves
        count = -(-rows * self.geometry.line_bytes // each)
        return count, count * each

    @property
    def scaled(self) -> bool:
        return takes_scales(self.instruction)

    @property
    def has_scales(self) -> bool:
        return self.scaled or self.block_scales

    @property
    def scale_registers(self) -> Mapping[str, int]:
        """Of one row of matrix instructions: bytes of a register, or a float for each row, or column, of a lane's C."""
        side = self.mma[0]
        return {"A": side * side // LANES if self.block_scales else 1, "B": 1}

    @property
    def formats(self) -> tuple[str, ...]:
        """Of the factors, where the matrix instruction leaves them open and they aren't its widest."""
        return ("fp4",) if self.packed > 1 else ()

    def loop(self, *, instructions: bool = True) -> LoopSpec:
        """The loop in single instructions, or in quadrants: coarser, and quicker to schedule."""
        self._check_whole(1 if instructions else _HALVES)
        return _by_instruction(self) if instructions else _by_quadrant(self)

    def _check_whole(self, parts: int) -> None:
        """Check that whole instructions make the tile, whose operands come in this many parts."""
        side, k = self.mma
        down, across = (parts * waves * side for waves in WAVE_GRIDS[self.waves])
        check_fit(self, self.instruction, self.mma, {"depth": k, "rows": down, "columns": across})
        if self.element_bytes != (wide := element_bytes_named(self.instruction)):
            raise bad_field(self, "element_bytes", self.element_bytes, f"{wide}, as {self.instruction} has it")
        if self.packed not in (allowed := (1, 2) if takes_formats(self.instruction) else (1,)):
            raise bad_field(self, "packed", self.packed, " or ".join(map(str, allowed)))
        if self.block_scales and (self.scaled or self.depth != FLOAT_BLOCK or self.element_bytes > 1):
            raise bad_field(self, "block_scales", self.block_scales, _BLOCKED)
        if self.in_pairs("B") and self.element_bytes * _PAIR != REGISTER_BYTES:
            raise bad_field(self, "b_pairs", self.b_pairs, "False: a register holds more than a pair of such elements")
        if self.in_pairs("B"):
            check_fit(self, self.instruction, self.mma, {"columns": _PAIR * across})
        check_fit(self, self.instruction, self.mma, {"dma_bytes": REGISTER_BYTES})
        line = self.geometry.line_bytes
        if side * line % (self.read_bytes * LANES):
            raise bad_field(self, "read_bytes", self.read_bytes, f"a divisor of {side * line / LANES:g}")


def _by_quadrant(shape: GemmShape) -> LoopSpec:
    """Halves of A and B, and the four quadrants of the wave tile that they make."""
    loop = Loop(shape.name, waves=shape.waves)
    fragments: dict[str, list[str]] = {}
    for operand in "AB":
        extent, own = shape.extents(operand)
        loads, size = shape.loads_of(extent // _HALVES)
        part = own // _HALVES * shape.geometry.line_bytes
        tiles = [loop.tile(f"{operand}{half}", size=size, operand=operand) for half in range(_HALVES)]
        for tile in tiles:
            loop.load(tile, instructions=loads, moved=size)
        read, width = shape.read_by(loop, operand)
        registers, reads = part // (REGISTER_BYTES * LANES), part // (width * LANES)
        if shape.in_pairs(operand):
            pairs = [read(f"{tile.lower()}_pairs", tile, registers=registers, instructions=reads) for tile in tiles]
            fragments[operand] = [
                loop.valu(tile.lower(), [each], registers=registers, instructions=registers)
                for tile, each in zip(tiles, pairs, strict=True)
            ]
            continue
        fragments[operand] = [read(tile.lower(), tile, registers=registers, instructions=reads) for tile in tiles]
    scales = {operand: _scales(loop, shape, operand, _HALVES) for operand in "AB"} if shape.has_scales else {}
    down, across = (own // _HALVES for own in shape.wave_tile)
    side, k = shape.mma
    count = (down // side) * (across // side) * (shape.depth // k)
    for row, column in product(range(_HALVES), repeat=2):
        accumulator = loop.accumulator(f"c{row}{column}", registers=down * across // LANES)
        operands = fragments["A"][row], fragments["B"][column]
        scaled_by = (scales["A"][row], scales["B"][column]) if scales else ()
        if shape.block_scales:
            _add_block(loop, shape, accumulator, operands, scaled_by, blocks=(down // side) * (across // side))
        else:
            asked: dict[str, Any] = {"instruction": shape.instruction, "formats": shape.formats}
            loop.mma(accumulator, *operands, instructions=count, scales=scaled_by, **asked)
    return loop.build()


def _by_instruction(shape: GemmShape) -> LoopSpec:
    """Every DMA, LDS read and MFMA of one wave is an op."""
    loop = Loop(shape.name, waves=shape.waves)
    side, k = shape.mma
    pieces = {operand: _pieces(loop, shape, operand) for operand in "AB"}
    scales = {each: _scales(loop, shape, each, len(pieces[each])) for each in "AB"} if shape.has_scales else {}
    if shape.block_scales:
        for row, a in enumerate(pieces["A"]):
            for column, b in enumerate(pieces["B"]):
                name = loop.accumulator(f"c{row}_{column}", registers=side * side // LANES)
                scaled_by = scales["A"][row], scales["B"][column]
                _add_block(loop, shape, name, (*a, *b), scaled_by)
        return loop.build()
    for step in range(shape.depth // k):
        for row, a in enumerate(pieces["A"]):
            for column, b in enumerate(pieces["B"]):
                name = f"c{row}_{column}"
                if step == 0:
                    loop.accumulator(name, registers=side * side // LANES)
                operands = (*_of_step(a, step, shape), *_of_step(b, step, shape))
                loop.mma(
                    name,
                    *operands,
                    instruction=shape.instruction,
                    scales=(scales["A"][row], scales["B"][column]) if scales else (),
                    formats=shape.formats,
                    name=f"mma{step}_{row}_{column}",
                )
    return loop.build()


def _pieces(loop: Loop, shape: GemmShape, operand: str) -> list[list[str]]:
    extent, own = shape.extents(operand)
    side, (loads, size) = shape.mma[0], shape.loads_of(extent)
    tile = loop.tile(operand, size=size, operand=operand)
    for number in range(loads):
        loop.load(tile, name=f"load_{operand}{number}", moved=size // loads)
    if shape.in_pairs(operand):
        return _turn(loop, shape, tile)
    read, width = shape.read_by(loop, operand)
    steps, registers = side * shape.geometry.line_bytes // (width * LANES), width // REGISTER_BYTES
    return [
        [read(f"{operand.lower()}{part}_{step}", tile, registers=registers) for step in range(steps)]
        for part in range(own // side)
    ]


def _add_block(
    loop: Loop, shape: GemmShape, accumulator: str, operands: Sequence[str], scales: Sequence[str], *, blocks: int = 1
) -> None:
    """The products of a K-tile as sums of their own, and the vector instructions that scale and add them.

    `blocks` are those of C; each two registers of one take a product and a sum.
    """
    side, k = shape.mma
    registers = blocks * side * side // LANES
    sums = loop.product(
        accumulator.replace("c", "p", 1),
        operands,
        registers=registers,
        instruction=shape.instruction,
        instructions=blocks * (shape.depth // k),
        formats=shape.formats,
    )
    loop.add(accumulator, [sums, *scales], instructions=registers)


def _turn(loop: Loop, shape: GemmShape, tile: str) -> list[list[str]]:
    """B in pairs of columns: every read brings one k of two parts, and two of a part's k make a register."""
    side, k = shape.mma
    each = side * k // LANES  # k of one lane
    pieces: list[list[str]] = []
    for pair in range(shape.wave_tile[1] // side // _PAIR):
        reads = [
            [loop.fragment(f"b_pair{pair}_{step}_{number}", tile, registers=1) for number in range(each)]
            for step in range(shape.depth // k)
        ]
        pieces += [
            [
                loop.valu(f"b{_PAIR * pair + part}_{step}", read, registers=each // 2, instructions=each // 2)
                for step, read in enumerate(reads)
            ]
            for part in range(_PAIR)
        ]
    return pieces


def _scales(loop: Loop, shape: GemmShape, operand: str, reads: int) -> list[str]:
    """An operand's scales in LDS, and this many reads of them, one for each row of matrix instructions."""
    extent, own = shape.extents(operand)
    loads = shape.geometry.scale_loads(extent, shape.waves)
    size = loads * REGISTER_BYTES * LANES * shape.waves
    tile = loop.tile(f"S{operand}", size=size, operand=f"{operand}_scale")
    loop.load(tile, instructions=loads, moved=size)
    count = own // shape.mma[0] // reads
    name, registers = f"s{operand.lower()}", count * shape.scale_registers[operand]
    return [loop.fragment(f"{name}{each}", tile, registers=registers, instructions=count) for each in range(reads)]


def _of_step(pieces: list[str], step: int, shape: GemmShape) -> list[str]:
    """The LDS reads that bring one K step of the matrix instruction: several where it is deep, else a shared one."""
    steps = shape.depth // shape.mma[1]
    start = step * len(pieces) // steps
    return pieces[start : max(start + 1, (step + 1) * len(pieces) // steps)]


BF16 = "v_mfma_f32_16x16x32_bf16"

GEMM_SHAPES: tuple[GemmShape, ...] = (
    GemmShape(name="gemm_bf16_256x256x64_8wave", instruction=BF16, mma=(16, 32)),
    GemmShape(name="gemm_bf16_256x256x64_4wave", instruction=BF16, mma=(16, 32), waves=4),
    GemmShape(name="gemm_bf16_128x128x64_4wave", instruction=BF16, mma=(16, 32), rows=128, columns=128, waves=4),
    GemmShape(
        name="gemm_fp8_256x256x128_8wave",
        instruction="v_mfma_f32_16x16x128_f8f6f4",
        mma=(16, 128),
        depth=128,
        element_bytes=1,
    ),
)
"""The GEMMs that ship for MI355X."""

_CDNA3: dict[str, Any] = {
    "instruction": "v_mfma_f32_16x16x16_bf16",
    "mma": (16, 16),
    "dma_bytes": 4,
    "read_bytes": 8,
    "b_pairs": True,
}

MI300X_GEMM_SHAPES: tuple[GemmShape, ...] = (
    GemmShape(name="gemm_bf16_256x256x64_8wave_mi300x", **_CDNA3),
    GemmShape(name="gemm_bf16_256x256x64_4wave_mi300x", waves=4, **_CDNA3),
    GemmShape(name="gemm_bf16_128x128x64_4wave_mi300x", rows=128, columns=128, waves=4, **_CDNA3),
)
"""The GEMMs that ship for MI300X, whose DMA moves 4 bytes a lane and whose LDS holds 64 KiB."""


# GEMMs of 4-bit floats (OCP e2m1) and of scaled blocks (OCP MX, or fp32) on MI355X.
#
# Named in full, as `rota.kernels.gemm:FP4_SMALL`.

_SCALED = "v_mfma_scale_f32_16x16x128_f8f6f4"
_FP4: dict[str, Any] = {"mma": (16, 128), "depth": 256, "element_bytes": 1, "packed": 2}
_FP8: dict[str, Any] = {"mma": (16, 128), "depth": 128, "element_bytes": 1}
_SMALL: dict[str, Any] = {"rows": 128, "columns": 128, "waves": 4}

FP4_LARGE = GemmShape(name="gemm_fp4_256x256x256_8wave", instruction="v_mfma_f32_16x16x128_f8f6f4", **_FP4)
FP4_SMALL = GemmShape(name="gemm_fp4_128x128x256_4wave", instruction=FP4_LARGE.instruction, **_FP4, **_SMALL)
MXFP4_LARGE = GemmShape(name="gemm_mxfp4_256x256x128_8wave", instruction=_SCALED, **(_FP4 | {"depth": 128}))
MXFP4_SMALL = GemmShape(name="gemm_mxfp4_128x128x256_4wave", instruction=_SCALED, **_FP4, **_SMALL)
MXFP8_LARGE = GemmShape(name="gemm_mxfp8_128x256x128_8wave", instruction=_SCALED, rows=128, **_FP8)
MXFP8_SMALL = GemmShape(name="gemm_mxfp8_128x128x128_4wave", instruction=_SCALED, **_FP8, **_SMALL)
"""Those with scales are smaller than those without: what a lane needs besides its data must fit into 256 registers."""

_BLOCKS: dict[str, Any] = {**_FP8, "instruction": FP4_LARGE.instruction, "block_scales": True}
BLOCK_FP8_LARGE = GemmShape(name="gemm_block_fp8_128x256x128_8wave", rows=128, **_BLOCKS)
BLOCK_FP8_SMALL = GemmShape(name="gemm_block_fp8_128x128x128_4wave", **_BLOCKS, **_SMALL)
"""Of fp8 with a scale in fp32 for each 128 elements of a row, as of DeepSeek-V3's weights and activations."""
