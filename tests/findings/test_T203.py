from __future__ import annotations

from dataclasses import replace

import pytest

from rota import KernelGeometry, SingleBufferSchedule, compile_schedule
from rota.compiler.loop import compile_loop, unsynchronised
from rota.declare.loop import Loop
from rota.emit.gemm_binding import GemmBinding
from rota.emit.gemm_tile import Element, GemmTile
from rota.emit.hip_gemm import emit_gemm
from rota.kernels.attention import ATTENTION
from rota.program.loop import steps_of
from rota.program.unroll import Placement
from rota.targets.machine import GFX950
from tests.emit.kernels import SMALL, by_values, ping_pong
from tests.findings.smallest import raised

GEOMETRY = KernelGeometry()


@pytest.mark.parametrize(
    "geometry",
    [
        KernelGeometry(BK=16),
        KernelGeometry(BK=96),
        KernelGeometry(BM=192, MMA_M=16, MMA_N=32, MMA_K=32),
        KernelGeometry(BN=48),
        KernelGeometry(BK=1024),
    ],
)
def test_a_geometry_that_does_not_come_out_even_is_refused(geometry: KernelGeometry) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011  # a matrix instruction that doesn't exist is D105
        GemmTile(geometry=geometry, waves=4, element=Element.BF16, machine=GFX950)
    assert caught.value.findings[0].code in ("T203", "D105")  # type: ignore[attr-defined]


def test_a_single_buffer_is_refused() -> None:
    raised("T203", lambda: emit_gemm(compile_schedule(SingleBufferSchedule(2)), GEOMETRY))


def test_a_schedule_for_another_geometry_is_refused() -> None:
    compiled, geometry = by_values(SMALL)
    finding = raised("T203", lambda: emit_gemm(compiled, replace(geometry, BM=256)))
    assert str(compiled.lds_bytes) in finding.message


def test_a_loop_that_is_no_gemm_is_refused() -> None:
    raised("T203", lambda: emit_gemm(compile_loop(ATTENTION.loop(instructions=False)), GEOMETRY))


def test_a_loop_without_one_of_the_operands_is_refused() -> None:
    loop = Loop("lonely", waves=4)
    loop.load(loop.tile("A", size=1024), moved=1024)
    loop.fragment("a", "A", registers=4)
    loop.accumulator("c", registers=4)
    loop.mma("c", "a", instruction="v_mfma_f32_16x16x32_bf16")
    raised("T203", lambda: emit_gemm(compile_loop(loop.build()), GEOMETRY))


SMALLEST = GemmTile(geometry=KernelGeometry(BM=64, BN=64), waves=4, element=Element.BF16, machine=GFX950)


def bound(readers: int, *, mixed: bool = False) -> None:
    """A 64x64x64 GEMM of four waves whose tiles are read by so many ops, or whose product mixes steps of K."""
    loop = Loop("odd", waves=4)
    pieces = {}
    for operand in "AB":
        tile = loop.tile(operand, size=64 * 128)
        loop.load(tile, instructions=2, moved=64 * 128)
        pieces[operand] = [
            loop.fragment(f"{operand.lower()}{number}", tile, registers=4, instructions=max(4 // readers, 1))
            for number in range(readers)
        ]
    loop.accumulator("c", registers=16)
    operands = (pieces["A"][0], pieces["B"][-1]) if mixed else (*pieces["A"], *pieces["B"])
    loop.mma("c", *operands, instruction="v_mfma_f32_16x16x32_bf16", instructions=2 * 2 * 2)
    spec = loop.build()
    compiled = unsynchronised(spec, Placement(interval=1, starts=tuple(range(len(spec.ops))), copies=()))
    binding = GemmBinding(compiled, SMALLEST)
    for step in steps_of(compiled).kernel:
        binding.instructions(step)


def test_an_even_gemm_is_bound() -> None:
    bound(4)
    bound(1)


def test_reads_that_do_not_share_a_tile_evenly_are_refused() -> None:
    assert "not shared evenly" in raised("T203", lambda: bound(3)).message


def test_a_product_of_different_steps_is_refused() -> None:
    assert "the same steps of A and B" in raised("T203", lambda: bound(4, mixed=True)).message


def test_slices_that_are_no_whole_dmas_are_refused() -> None:
    compiled, geometry = ping_pong()
    assert "whole DMAs" in raised("T203", lambda: emit_gemm(compiled, replace(geometry, BM=64))).message


def test_slices_with_different_numbers_of_copies_are_refused() -> None:
    compiled, geometry = by_values(SMALL)
    assert compiled.placement is not None
    copies = tuple((name, 1 if name == "A1" else count) for name, count in compiled.placement.copies)
    uneven = replace(compiled, placement=replace(compiled.placement, copies=copies))
    assert "different numbers of copies" in raised("T203", lambda: emit_gemm(uneven, geometry)).message


@pytest.mark.parametrize(("waves", "element"), [(3, Element.BF16), (4, Element.FP8)])
def test_waves_and_elements_that_do_not_fit_are_refused(waves: int, element: Element) -> None:
    raised("D102", lambda: GemmTile(geometry=GEOMETRY, waves=waves, element=element, machine=GFX950))


def test_a_loop_with_another_matrix_instruction_than_the_geometry_is_refused() -> None:
    compiled, geometry = by_values(SMALL)
    finding = raised("T203", lambda: emit_gemm(compiled, replace(geometry, MMA_M=32, MMA_N=32, MMA_K=16)))
    assert finding.message == "v_mfma_f32_16x16x32_bf16 is not written with this geometry"
    raised("T203", lambda: emit_gemm(compiled, geometry, element=Element.FP16))
