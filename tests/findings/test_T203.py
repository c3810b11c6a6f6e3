from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rota import CompiledSchedule, KernelGeometry, SingleBufferSchedule, compile_schedule
from rota.compiler.loop import compile_loop, unsynchronised
from rota.declare.loop import Loop
from rota.emit.gemm_binding import GemmBinding
from rota.emit.gemm_tile import Element, GemmTile, gemm_tile
from rota.emit.hip_gemm import emit_gemm
from rota.emit.skeleton import emit_skeleton
from rota.kernels.attention import ATTENTION
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
    assert finding.message == "the tile A0 has 8192 bytes, but a slice of A takes 16384 in this geometry"


def test_buffers_of_another_size_are_refused() -> None:
    compiled, geometry = by_values(SMALL)
    other = replace(compiled, lds_bytes=4096)
    finding = raised("T203", lambda: GemmBinding(other, gemm_tile(other, geometry)))
    assert finding.evidence == (("the schedule", 4096), ("this geometry", 131072))


def test_a_loop_that_is_no_gemm_is_refused_and_told_of_the_form_that_it_has() -> None:
    compiled = compile_loop(ATTENTION.loop(instructions=False))
    finding = raised("T203", lambda: emit_gemm(compiled, GEOMETRY))
    assert "the full form writes GEMMs, C = A x B^T, alone" in finding.message
    assert "--form skeleton" in finding.fixes[-1]
    assert emit_skeleton(compiled)


@pytest.mark.parametrize("name", ["K", "Bias", "Alpha", "a"])
def test_a_tile_by_another_name_is_no_operand(name: str) -> None:
    compiled = other_ops(lambda loop: loop.load(loop.tile(name, size=8192), instructions=2, moved=8192))
    assert f"the LDS tile {name} is neither A's nor B's" in raised("T203", lambda: fits(compiled)).message


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (lambda loop: loop.input("q", registers=4), "q is an input"),
        (lambda loop: loop.valu("m", ["a0"], registers=4), "make_m is a valu op"),
        (lambda loop: loop.valu("m", ["a0"], registers=16, into="a0"), "m is written into the registers of a0"),
        (lambda loop: [loop.load("A", name=f"load{n}", instructions=1, moved=4096) for n in (1, 2)], "3 loads can't"),
    ],
)
def test_what_a_gemm_does_not_have_is_refused(more: Callable[[Loop], object], message: str) -> None:
    assert message in raised("T203", lambda: fits(other_ops(more))).message


def test_a_kernel_for_other_waves_than_its_loop_is_refused() -> None:
    compiled = other_ops(lambda _: None)
    assert "declared for 4 waves" in raised("T203", lambda: gemm_tile(compiled, SMALL_GEOMETRY, waves=8)).message


def test_a_loop_without_one_of_the_operands_is_refused() -> None:
    loop = Loop("lonely", waves=4)
    loop.load(loop.tile("A", size=1024), moved=1024)
    loop.fragment("a", "A", registers=4)
    loop.accumulator("c", registers=4)
    loop.mma("c", "a", instruction="v_mfma_f32_16x16x32_bf16")
    raised("T203", lambda: emit_gemm(compile_loop(loop.build()), GEOMETRY))


SMALL_GEOMETRY = KernelGeometry(BM=64, BN=64)


def other_ops(more: Callable[[Loop], object], readers: int = 1) -> CompiledSchedule:
    """A 64x64x64 GEMM of four waves whose tiles are read by so many ops, and more ops."""
    loop = Loop("odd", waves=4)
    pieces = {}
    for operand in "AB":
        tile = loop.tile(operand, size=64 * 128)
        loop.load(tile, instructions=2, moved=64 * 128)
        pieces[operand] = [
            loop.fragment(f"{operand.lower()}{number}", tile, registers=16 // readers, instructions=4 // readers)
            for number in range(readers)
        ]
    loop.accumulator("c", registers=16)
    operands = (*pieces["A"], *pieces["B"])
    loop.mma("c", *operands, instruction="v_mfma_f32_16x16x32_bf16", instructions=2 * 2 * 2)
    more(loop)
    spec = loop.build()
    count = len(spec.ops)
    return unsynchronised(spec, Placement(interval=count, starts=tuple(range(count)), copies=()))


def fits(compiled: CompiledSchedule) -> None:
    GemmBinding(compiled, gemm_tile(compiled, SMALL_GEOMETRY))


@pytest.mark.parametrize("readers", [1, 4])
def test_an_even_gemm_is_bound(readers: int) -> None:
    fits(other_ops(lambda _: None, readers))


def test_reads_that_do_not_share_a_tile_evenly_are_refused() -> None:
    finding = raised("T203", lambda: fits(other_ops(lambda _: None, 3)))
    assert finding.message == "3 reads can't evenly share the 4 LDS reads of each wave that A takes"


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
    assert finding.message == (
        "the kernel multiplies with v_mfma_f32_16x16x32_bf16, but the geometry says 32x32x16 (MMA_M, MMA_N, MMA_K)"
    )
    raised("T203", lambda: emit_gemm(compiled, geometry, element=Element.FP16))
