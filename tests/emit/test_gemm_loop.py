"""Emission writes a loop as GEMM if, and only if, what it declares is one."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from rota import KernelGeometry, RotaError
from rota.emit.gemm.gemm_binding import GemmBinding
from rota.emit.gemm.gemm_plan import gemm_plan
from rota.emit.gemm.gemm_tile import BLayout, Mfma, gemm_tile
from rota.emit.gemm.hip_gemm import emit_gemm
from rota.emit.whole.whole_kernel import emit_whole
from rota.emit.whole.whole_options import WholeGemm, parse_epilogue
from rota.errors import EmissionError
from rota.program.kinds import OpKind
from rota.program.loop_spec import LoopSpec
from rota.values.compile_loop import unroll_bare
from rota.values.compiled_loop import CompiledLoop
from rota.values.unroll import Placement
from tests.emit.gemm_oracle import GEOMETRY, SHAPE, edited, is_gemm
from tests.emit.kernels import FP8, SHAPES
from tests.findings.smallest import raised

LOOPS = [SHAPE.loop(), SHAPE.loop(instructions=True)]
_TURN = [OpKind.DMA, OpKind.LDS_READ, OpKind.LDS_READ_TRANSPOSED, OpKind.MMA, OpKind.VALU]


def one_by_one(loop: LoopSpec) -> CompiledLoop:
    """One iteration after the other: all loads, all reads, all products."""
    order = sorted(range(len(loop.ops)), key=lambda index: (_TURN.index(loop.ops[index].kind), index))
    starts = tuple(order.index(index) for index in range(len(order)))
    return unroll_bare(loop, Placement(interval=len(order), starts=starts, copies=()))


def is_written(loop: LoopSpec, geometry: KernelGeometry = GEOMETRY) -> bool:
    compiled = one_by_one(loop)
    try:
        GemmBinding(compiled, gemm_tile(compiled, geometry))
    except EmissionError:
        return False
    return True


@pytest.mark.parametrize("loop", LOOPS)
def test_a_gemm_is_one(loop: LoopSpec) -> None:
    assert is_gemm(loop)
    assert is_written(loop)


@pytest.mark.thorough  # runs for seconds
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("seed", range(3))
def test_what_is_written_is_a_gemm_and_every_gemm_is_written(loop: LoopSpec, seed: int) -> None:
    """`python -m tests.emit.test_gemm_loop 20000` draws more."""
    seen = draw_edits(loop, seed, 250)
    assert min(seen[True], seen[False]) > 20


def draw_edits(loop: LoopSpec, seed: int, count: int) -> Counter[bool]:
    draw = random.Random(seed)  # a test that can be repeated
    seen: Counter[bool] = Counter()
    while seen.total() < count:
        changes: list[str] = []
        changed = loop
        try:
            for _ in range(draw.choice((1, 1, 2))):
                name, changed = edited(changed, draw)
                changes.append(name)
        except (RotaError, IndexError):
            continue  # can't be declared, or nothing is left to be changed
        gemm = is_gemm(changed)
        assert is_written(changed) == gemm, changes
        seen[gemm] += 1
    return seen


@pytest.mark.parametrize("instructions", [False, True])
def test_b_as_k_x_n_is_written_in_hip_alone(instructions: bool) -> None:
    shape = replace(SHAPE, columns=128, b_layout=BLayout.KN)
    compiled, geometry = one_by_one(shape.loop(instructions=instructions)), shape.geometry
    source = emit_whole(compiled, geometry, WholeGemm(epilogue=parse_epilogue(["gated_silu"])))
    assert "// A: M x K, B: K x N, bf16, row-major" in source
    assert "ROTA_DMA(b_up_global" in source
    assert "// A: M x K, B: K x N, bf16, row-major" in emit_gemm(compiled, geometry)
    raised("T203", lambda: gemm_plan(compiled, geometry, plain=True))


@pytest.mark.parametrize("other", ["a0", "b0"])
def test_all_reads_of_b_transpose_or_none_and_those_of_a_never(other: str) -> None:
    loop = replace(SHAPE, columns=128, b_layout=BLayout.KN).loop(instructions=False)
    turned = {OpKind.LDS_READ: OpKind.LDS_READ_TRANSPOSED, OpKind.LDS_READ_TRANSPOSED: OpKind.LDS_READ}
    ops = tuple(replace(op, kind=turned[op.kind]) if op.writes == (other,) else op for op in loop.ops)
    compiled = one_by_one(replace(loop, ops=ops))
    tile = gemm_tile(compiled, KernelGeometry(BM=64, BN=128))
    raised("T203", lambda: GemmBinding(compiled, tile))


@pytest.mark.parametrize("loop", LOOPS)
def test_the_kernel_of_a_drawn_gemm_is_proved_and_written(loop: LoopSpec) -> None:
    assert "v_mfma_f32_16x16x32_bf16" in emit_gemm(one_by_one(loop), GEOMETRY)


def test_pieces_of_one_factor_may_lie_in_different_copies() -> None:
    """A step of fp8 takes two LDS reads; the first goes to two registers in turn, the second always to the same."""
    shape = SHAPES[FP8]
    loop = shape.loop(instructions=True)
    bare = one_by_one(loop)
    compiled = unroll_bare(loop, replace(bare.placement, copies=(("a0_0", 2),)))
    binding = GemmBinding(compiled, gemm_tile(compiled, shape.geometry))
    bound = [each for entry in compiled.lowered.kernel for each in binding.instructions(entry)]
    products = [each for each in bound if isinstance(each, Mfma)]
    assert {each.a_copies for each in products if each.a_part == 0} == {(0, 0), (1, 0)}
    assert {each.a_copies for each in products if each.a_part == 1} == {(0, 0)}


if __name__ == "__main__":
    import sys

    for number, each in enumerate(LOOPS):
        print(draw_edits(each, number, int(sys.argv[1]) // len(LOOPS)))
