"""B as K x N where LDS has no reads that transpose: lanes read pairs of columns, and vector instructions turn them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rota import GFX942, GFX950, KernelGeometry
from rota.audit.audit import audit_gemm
from rota.emit.gemm.gemm_binding import GemmBinding
from rota.emit.gemm.gemm_loop import pairs_of, slice_pairs
from rota.emit.gemm.gemm_plan import gemm_plan, issues_of, spacing_of
from rota.emit.gemm.gemm_tile import (
    BLayout,
    BoundInstruction,
    ColumnPair,
    Element,
    Factor,
    GemmTile,
    LdsRead,
    Mfma,
    PairPack,
    PairRead,
    Piece,
    gemm_tile,
)
from rota.emit.gemm.hip_gemm import COLUMN_HALVES, emit_gemm
from rota.emit.gemm.lds_layout import ColumnPanels, column_panels
from rota.emit.gemm.program_form import TileOperands
from rota.emit.text import apart_text
from rota.emit.whole.whole_kernel import emit_whole
from rota.emit.whole.whole_options import parse_options
from rota.isa.binary.toolchain import find_toolchain
from rota.kernels.gemm import GEMM_SHAPES, MI300X_GEMM_SHAPES
from rota.program.kinds import OpKind, Phase
from rota.program.loop_spec import LoopOp, LoopSpec, Read
from rota.program.lowered import TileSum
from rota.program.machine import Machine
from rota.values.compile_loop import unroll_bare
from rota.values.compiled_loop import CompiledLoop
from rota.values.unroll import Placement
from tests.findings.smallest import raised
from tests.wording.golden import mentions

SHAPE = replace(MI300X_GEMM_SHAPES[-1], rows=64, b_layout=BLayout.KN)
SMALL = GemmTile(
    geometry=KernelGeometry(BM=128, BN=128, MMA_K=16),
    waves=4,
    element=Element.BF16,
    machine=GFX942,
    b_layout=BLayout.KN,
)
TILES = {
    "small": SMALL,
    "fp16": replace(SMALL, element=Element.FP16),
    "eight waves": replace(SMALL, geometry=KernelGeometry(BM=128, BN=256, BK=32, MMA_K=16), waves=8),
    "32 columns": replace(SMALL, geometry=KernelGeometry(BM=128, BN=128, MMA_M=32, MMA_N=32, MMA_K=8)),
}
_TURN = [OpKind.DMA, OpKind.LDS_READ, OpKind.VALU, OpKind.MMA]


def one_by_one(loop: LoopSpec, machine: Machine = GFX942) -> CompiledLoop:
    """One iteration after the other: all loads, all reads, all packs, all products."""
    order = sorted(range(len(loop.ops)), key=lambda index: (_TURN.index(loop.ops[index].kind), index))
    starts = tuple(order.index(index) for index in range(len(order)))
    return unroll_bare(loop, Placement(interval=len(order), starts=starts, copies=()), machine=machine)


def packed_last() -> CompiledLoop:
    """One iteration after the other, where the first product takes what the last vector op packs."""
    loop = SHAPE.loop(instructions=True)
    packs = [index for index, op in enumerate(loop.ops) if op.kind is OpKind.VALU]
    starts = list(one_by_one(loop).placement.starts)
    for index, start in zip(packs, [starts[index] for index in reversed(packs)], strict=True):
        starts[index] = start
    return unroll_bare(loop, Placement(interval=len(starts), starts=tuple(starts), copies=()), machine=GFX942)


def bound(loop: LoopSpec) -> GemmBinding:
    compiled = one_by_one(loop)
    return GemmBinding(compiled, gemm_tile(compiled, SHAPE.geometry))


@pytest.mark.parametrize("tile", TILES.values(), ids=TILES)
def test_reads_have_no_conflicts(tile: GemmTile) -> None:
    assert column_panels(tile).conflicts == 0


def test_what_rows_left_as_they_are_cost_by_hand() -> None:
    """A clock serves 32 lanes: two groups of 16, whose k are 4 rows apart, each of all 32 banks.

    So both groups of a phase want the same 16 banks: a clock more for each of 2 phases, in the 16 reads of a pair.
    """
    assert ColumnPanels(tile=SMALL).conflicts == 1 * 2 * 16


@pytest.mark.parametrize("tile", TILES.values(), ids=TILES)
def test_a_lane_gets_its_column_at_the_k_that_it_has_of_a(tile: GemmTile) -> None:
    """v_perm_b32 by hand: a selector byte below 4 takes that byte of the lower k's register, from 4 on of the higher's.

    A lane has four k in a row of A, those of the next group of lanes follow; two parts' columns take turns.
    """
    panels, side = column_panels(tile), tile.side
    held = {panels.place(k, column): (k, column) for k in range(tile.geometry.BK) for column in range(tile.geometry.BN)}
    for part in range(tile.parts(Factor.B)):
        start = part // 2 * 2 * side
        for step in range(tile.steps):
            pairs = pairs_of(tile, Piece(Factor.B, part, step))
            assert [pair.pair for pair in pairs] == [part // 2] * 4
            for lane in range(64):
                at = [
                    panels.place(panels.lane_k(lane), start + panels.lane_column(lane)) + panels.offset(pair.number)
                    for pair in pairs
                ]
                got = []
                for low, high in ((at[0], at[1]), (at[2], at[3])):
                    octets = [low, low + 1, low + 2, low + 3, high, high + 1, high + 2, high + 3]
                    taken = [octets[COLUMN_HALVES[part % 2] >> 8 * byte & 0xFF] for byte in range(4)]
                    assert (taken[1], taken[3]) == (taken[0] + 1, taken[2] + 1)
                    got += [held[taken[0]], held[taken[2]]]
                first = step * tile.geometry.MMA_K + lane // side * 4
                column = start + 2 * (lane % side) + part % 2
                assert got == [(first + k, column) for k in range(4)]


@pytest.mark.parametrize("tile", TILES.values(), ids=TILES)
def test_reads_wait_for_the_dmas_that_bring_their_rows(tile: GemmTile) -> None:
    panels = column_panels(tile)
    moved = tile.dma_bytes * tile.lanes * tile.waves
    for pair in slice_pairs(tile, 0, 1):
        start = pair.pair * 2 * tile.side
        lanes = [
            panels.place(panels.piece_k(pair.number) + panels.lane_k(lane), start + panels.lane_column(lane) + more)
            for lane in range(64)
            for more in range(2)
        ]
        assert panels.find_dmas(pair.number, iter([start])) == {place // moved for place in lanes}


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        (
            {
                "element": Element.FP8_PAIR,
                "geometry": KernelGeometry(BM=128, BN=128, BK=128, MMA_K=32, elem_bytes=1, is_fp8=True),
            },
            ("gfx942", "FP8_PAIR"),
        ),
        ({"geometry": KernelGeometry(BM=128, BN=64, MMA_M=32, MMA_N=32, MMA_K=8)}, ("64",)),
        ({"geometry": KernelGeometry(BN=96, MMA_K=16)}, ("BN",)),
    ],
)
def test_a_tile_that_can_t_be_read_so_is_refused(fields: dict[str, object], names: tuple[str, ...]) -> None:
    finding = raised("T203", lambda: replace(SMALL, **fields))  # type: ignore[arg-type]
    assert mentions(" ".join(str(value) for _, value in finding.evidence), *names)


def test_a_slice_is_whole_pairs_of_every_wave() -> None:
    assert SMALL.slice_rows(Factor.B, 2) == 64
    narrow = replace(SMALL, geometry=KernelGeometry(BM=128, BN=64, BK=128, MMA_K=16))
    assert "64" in raised("T203", lambda: narrow.slice_rows(Factor.B, 2)).message


@pytest.mark.parametrize("instructions", [False, True])
def test_a_loop_in_pairs_is_written_in_hip_alone(instructions: bool) -> None:
    compiled = one_by_one(SHAPE.loop(instructions=instructions))
    source = emit_whole(compiled, SHAPE.geometry, parse_options({"epilogue": "gated_silu", "layout": "kn"}))
    assert "// A: M x K, B: K x N, bf16, row-major" in source
    assert "ROTA_DMA(b_up_global" in source
    assert "ROTA_KEEP(c[0][1], 1)" in source
    assert "ROTA_STORE(c[0][1], 0, 1)" in emit_gemm(compiled, SHAPE.geometry)
    raised("T203", lambda: gemm_plan(compiled, SHAPE.geometry, plain=True))


@pytest.mark.parametrize("instructions", [False, True])
def test_every_register_is_packed_from_two_reads(instructions: bool) -> None:
    compiled = one_by_one(SHAPE.loop(instructions=instructions))
    binding = GemmBinding(compiled, gemm_tile(compiled, SHAPE.geometry))
    each = [one for entry in compiled.kernel for one in binding.instructions(entry)]
    reads = [one.pair for one in each if isinstance(one, PairRead)]
    packs = [one for one in each if isinstance(one, PairPack)]
    assert sorted(reads) == [(pair, number) for pair in range(2) for number in range(16)]
    assert {one.operand for one in each if isinstance(one, LdsRead)} == {Factor.A}
    assert sorted((one.part, one.piece, one.register) for one in packs) == [
        (part, step, register) for part in range(4) for step in range(4) for register in range(2)
    ]
    assert packs[1].sources == (ColumnPair(0, 2), ColumnPair(0, 3))
    assert [binding.column(part) for part in range(4)] == ([0, 1, 32, 33] if instructions else [0, 1, 64, 65])


def changed(kind: OpKind, name: str, change: Callable[[LoopOp], LoopOp], *, instructions: bool = False) -> LoopSpec:
    loop = SHAPE.loop(instructions=instructions)
    ops = tuple(change(op) if op.kind is kind and name in op.writes else op for op in loop.ops)
    assert ops != loop.ops
    return replace(loop, ops=ops)


def reading(*names: str) -> Callable[[LoopOp], LoopOp]:
    return lambda op: replace(op, reads=tuple(Read(value=name) for name in names))


@pytest.mark.parametrize(
    ("loop", "code", "names"),
    [
        (changed(OpKind.MMA, "c00", reading("a0", "b0_pairs")), "T206", ("mma_c00", "b0_pairs")),
        (changed(OpKind.VALU, "b0", reading("a0")), "T206", ("B0",)),
        (changed(OpKind.VALU, "b0", reading("b0_pairs", "a0")), "T206", ("b0_pairs", "a0")),
        (changed(OpKind.VALU, "b0", reading("b1_pairs")), "T206", ("B0",)),
        (
            changed(OpKind.VALU, "b1_0", reading(*(f"b_pair0_1_{each}" for each in range(4))), instructions=True),
            "T206",
            ("b_pair0_0_0", "b_pair0_0_1", "b_pair0_0_2", "b_pair0_0_3"),
        ),
        (
            changed(OpKind.VALU, "b1_0", reading(*(f"b_pair0_0_{each}" for each in range(3))), instructions=True),
            "T206",
            ("make_b1_0", "b_pair0_0_0", "b_pair0_0_1", "b_pair0_0_2"),
        ),
        (changed(OpKind.VALU, "b0", lambda op: replace(op, instructions=8)), "T202", ("make_b0", "s0")),
        (changed(OpKind.LDS_READ, "b0_pairs", lambda op: replace(op, instructions=8)), "T202", ("16",)),
    ],
)
def test_what_packs_something_else_is_refused(loop: LoopSpec, code: str, names: tuple[str, ...]) -> None:
    assert mentions(raised(code, lambda: bound(loop)).message, *names)


def test_registers_that_pairs_take_are_declared() -> None:
    loop = SHAPE.loop(instructions=False)
    values = tuple(replace(each, size=8) if each.name == "b0_pairs" else each for each in loop.values)
    message = raised("T202", lambda: bound(replace(loop, values=values))).message
    assert mentions(message, "b0_pairs", "read_b0_pairs", "16")


@pytest.mark.thorough  # runs for seconds
def test_wait_states_that_are_missing_behind_a_pack_are_found() -> None:
    compiled, toolchain = packed_last(), find_toolchain()
    source = emit_gemm(compiled, SHAPE.geometry)
    (space,) = (line for line in source.splitlines() if line.strip().startswith(apart_text(2)) and "mma" in line)
    audit = audit_gemm(compiled, SHAPE.geometry, toolchain.compile(source, "gfx942"))
    assert audit.exact, audit
    damaged = audit_gemm(compiled, SHAPE.geometry, toolchain.compile(source.replace(space, ""), "gfx942"))
    assert {finding.code for finding in damaged.findings} == {"I104"}


def test_no_persistent_kernel_turns_pairs() -> None:
    compiled = one_by_one(SHAPE.loop(instructions=False))
    asked = parse_options({"persistent": "true"})
    raised("T209", lambda: emit_whole(compiled, SHAPE.geometry, asked))


def test_a_sum_over_k_tiles_has_no_vector_ops() -> None:
    program = one_by_one(SHAPE.loop(instructions=False)).lowered
    raised("T203", lambda: TileOperands(program, TileSum(products=(), grid=(2, 2)), SMALL))


def test_vector_ops_are_refused_where_reads_transpose() -> None:
    shape = replace(GEMM_SHAPES[2], b_layout=BLayout.KN, b_pairs=True)
    compiled = one_by_one(shape.loop(instructions=False), GFX950)
    finding = raised("T203", lambda: GemmBinding(compiled, gemm_tile(compiled, shape.geometry)))
    assert "make_b0" in finding.message


def test_a_matrix_instruction_waits_for_what_was_just_packed() -> None:
    """Two wait states, each instruction between counts as one; a piece is packed when its last register is."""
    pairs = (ColumnPair(0, 0), ColumnPair(0, 1))
    first, second = (PairPack(0, 0, register, pairs, (0, 0), 0) for register in range(2))
    product = Mfma(step=0, a_part=0, b_part=0, a_copies=(0,), b_copies=(0,))
    other = product._replace(b_part=1)

    def missing(*instructions: BoundInstruction) -> dict[int, int]:
        """By the instruction's number; the one after the last is what may follow."""
        found = spacing_of(SMALL).find_missing({Phase.KERNEL: issues_of(instructions)}, [[Phase.KERNEL]])
        return {number: states for (_, number), states in found.items()}

    assert missing(first, second, product, product) == {2: 2}
    assert missing(first, second, other, product) == {3: 1}
    assert missing(first, second, other) == {3: 1}
    assert missing() == {}
