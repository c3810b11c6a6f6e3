from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rota import CompiledSchedule, KernelGeometry, SingleBufferSchedule, compile_schedule
from rota.emit.forms import emit_skeleton
from rota.emit.gemm.gemm_binding import GemmBinding
from rota.emit.gemm.gemm_tile import Element, GemmTile, gemm_tile
from rota.emit.gemm.hip_gemm import emit_gemm
from rota.kernels.attention import ATTENTION
from rota.program.kinds import Home, OpKind
from rota.program.loop_spec import LoopOp, LoopSpec, Read, Value
from rota.targets.devices import GFX950
from rota.values.compile_loop import compile_loop, unroll_bare
from rota.values.compiled_loop import CompiledLoop
from rota.values.loop import Loop
from rota.values.unroll import Placement
from tests.emit.kernels import SMALL, by_values, ping_pong
from tests.findings.smallest import raised
from tests.wording.golden import mentions

GEOMETRY = KernelGeometry()
SMALL_GEOMETRY = KernelGeometry(BM=64, BN=64)


def other_ops(
    more: Callable[[Loop], object],
    readers: int = 1,
    change: Callable[[LoopSpec], LoopSpec] = lambda spec: spec,
    **names: str,
) -> CompiledSchedule:
    """A 64x64x64 GEMM of four waves whose tiles are read by so many ops, and more ops; tiles by other names."""
    loop = Loop("odd", waves=4)
    pieces = {}
    for operand in "AB":
        tile = loop.tile(names.get(operand, operand), size=64 * 128, operand=operand)
        loop.load(tile, instructions=2, moved=64 * 128)
        pieces[operand] = [
            loop.fragment(f"{operand.lower()}{number}", tile, registers=16 // readers, instructions=4 // readers)
            for number in range(readers)
        ]
    loop.accumulator("c", registers=16)
    operands = (*pieces["A"], *pieces["B"])
    loop.mma("c", *operands, instruction="v_mfma_f32_16x16x32_bf16", instructions=2 * 2 * 2)
    more(loop)
    spec = change(loop.build())
    count = len(spec.ops)
    return unroll_bare(spec, Placement(interval=count, starts=tuple(range(count)), copies=()))


def fits(compiled: CompiledSchedule) -> None:
    GemmBinding(compiled, gemm_tile(compiled, SMALL_GEOMETRY))


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
    finding = raised("T203", lambda: emit_gemm(compile_schedule(SingleBufferSchedule(2)), GEOMETRY))
    assert mentions(finding.message, "load_dram", "s0", "t0")
    assert [name for name, _ in finding.evidence] == ["what it does"]


def test_a_schedule_for_another_geometry_is_refused() -> None:
    compiled, geometry = by_values(SMALL)
    finding = raised("T203", lambda: emit_gemm(compiled, replace(geometry, BM=256)))
    assert mentions(finding.message, "A0", "8192", "16384")


def test_buffers_of_another_size_are_refused() -> None:
    compiled, geometry = by_values(SMALL)
    other = replace(compiled, lds_bytes=4 * 65536)
    finding = raised("T203", lambda: GemmBinding(other, gemm_tile(other, geometry)))
    assert finding.evidence == (("the schedule", 262144), ("this geometry", 131072))


def test_a_loop_that_is_no_gemm_is_refused_and_told_of_the_form_that_it_has() -> None:
    compiled = compile_loop(ATTENTION.loop(instructions=False))
    finding = raised("T203", lambda: emit_gemm(compiled, GEOMETRY))
    assert "--form skeleton" in finding.fixes[-1]
    assert emit_skeleton(compiled)


@pytest.mark.parametrize("name", ["K", "Bias", "Alpha", "a", "A0", "B_"])
def test_a_tile_that_does_not_say_whose_it_is_is_no_operand(name: str) -> None:
    compiled = other_ops(lambda loop: loop.load(loop.tile(name, size=8192), instructions=2, moved=8192))
    assert mentions(raised("T203", lambda: fits(compiled)).message, name)


@pytest.mark.parametrize(
    ("more", "names"),
    [
        (lambda loop: loop.input("q", registers=4), ("q",)),
        (lambda loop: loop.valu("m", ["a0"], registers=4), ("make_m", "valu")),
        (lambda loop: loop.valu("m", ["a0"], registers=16, into="a0"), ("m", "a0")),
        (lambda loop: [loop.load("A", name=f"load{n}", instructions=1, moved=4096) for n in (1, 2)], ("3",)),
    ],
)
def test_what_a_gemm_does_not_have_is_refused(more: Callable[[Loop], object], names: tuple[str, ...]) -> None:
    assert mentions(raised("T203", lambda: fits(other_ops(more))).message, *names)


def written_out(kind: OpKind) -> CompiledSchedule:
    """The even GEMM, whose second operand is written to memory in every iteration."""

    def stored(spec: LoopSpec) -> LoopSpec:
        out = Value(name="out", home=Home.MEMORY, size=1)
        op = LoopOp(name="put", kind=kind, reads=(Read(value="b0"),), writes=("out",))
        return replace(spec, values=(*spec.values, out), ops=(*spec.ops, op))

    return other_ops(lambda _: None, change=stored)


def read_otherwise(kind: OpKind) -> CompiledSchedule:
    """The even GEMM, one tile of which is read by another kind of op."""

    def changed(spec: LoopSpec) -> LoopSpec:
        return replace(spec, ops=tuple(replace(op, kind=kind) if op.name == "read_a0" else op for op in spec.ops))

    return other_ops(lambda _: None, change=changed)


def computed(kind: OpKind) -> CompiledSchedule:
    """The even GEMM, and a value that another kind of op makes."""

    def more(spec: LoopSpec) -> LoopSpec:
        op = LoopOp(name="make_m", kind=kind, reads=(Read(value="a0"),), writes=("m",))
        return replace(spec, values=(*spec.values, Value(name="m", home=Home.REGISTERS, size=4)), ops=(*spec.ops, op))

    return other_ops(lambda _: None, change=more)


@pytest.mark.parametrize(
    ("compiled", "names"),
    [
        (written_out(OpKind.GLOBAL_STORE), ("put", "gstore")),
        (written_out(OpKind.ATOMIC), ("put", "atomic")),
        (read_otherwise(OpKind.LDS_READ_TRANSPOSED), ("read_a0", "transposed")),
        (computed(OpKind.TRANSCENDENTAL), ("make_m", "transcendental")),
        (computed(OpKind.GLOBAL_LOAD), ("make_m", "gload")),
    ],
)
def test_a_kind_of_op_without_an_instruction_is_refused_by_name(
    compiled: CompiledSchedule, names: tuple[str, ...]
) -> None:
    finding = raised("T203", lambda: fits(compiled))
    assert mentions(finding.message, *names)
    assert "--form skeleton" in finding.fixes[-1]


@pytest.mark.parametrize(
    ("compiled", "call"),
    [
        (written_out(OpKind.GLOBAL_STORE), "template <int from_b0> void put(int k);"),
        (written_out(OpKind.ATOMIC), "template <int from_b0> void put(int k);"),
        (read_otherwise(OpKind.LDS_READ_TRANSPOSED), "template <int to_a0, int from_A> void read_a0(int k);"),
        (computed(OpKind.TRANSCENDENTAL), "template <int to_m, int from_a0> void make_m(int k);"),
        (computed(OpKind.GLOBAL_LOAD), "template <int to_m, int from_a0> void make_m(int k);"),
    ],
)
def test_and_has_a_function_in_a_skeleton(compiled: CompiledSchedule, call: str) -> None:
    """The fix of the finding above."""
    assert f"//   {call}\n" in emit_skeleton(compiled)


def test_a_kernel_for_other_waves_than_its_loop_is_refused() -> None:
    compiled = other_ops(lambda _: None)
    finding = raised("T203", lambda: gemm_tile(compiled, SMALL_GEOMETRY, waves=8))
    assert finding.evidence == (("declared", 4), ("asked", "8"))


def test_a_loop_without_one_of_the_operands_is_refused() -> None:
    loop = Loop("lonely", waves=4)
    loop.load(loop.tile("A", size=1024), moved=1024)
    loop.fragment("a", "A", registers=4)
    loop.accumulator("c", registers=4)
    loop.mma("c", "a", instruction="v_mfma_f32_16x16x32_bf16")
    raised("T203", lambda: emit_gemm(compile_loop(loop.build()), GEOMETRY))


@pytest.mark.parametrize("readers", [1, 4])
def test_an_even_gemm_is_bound(readers: int) -> None:
    fits(other_ops(lambda _: None, readers))


def test_a_tile_may_have_any_name_if_it_says_whose_it_is() -> None:
    fits(other_ops(lambda _: None, A="weights", B="A"))


def test_reads_that_do_not_share_a_tile_evenly_are_refused() -> None:
    assert mentions(raised("T203", lambda: fits(other_ops(lambda _: None, 3))).message, 3, 4, "A")


def test_slices_that_are_no_whole_dmas_are_refused() -> None:
    compiled, geometry = ping_pong()
    raised("T203", lambda: emit_gemm(compiled, replace(geometry, BM=64)))


def test_slices_with_different_numbers_of_copies_are_refused() -> None:
    compiled, geometry = by_values(SMALL)
    assert isinstance(compiled, CompiledLoop)
    copies = tuple((name, 1 if name == "A1" else count) for name, count in compiled.placement.copies)
    uneven = unroll_bare(compiled.loop, replace(compiled.placement, copies=copies))
    finding = raised("T203", lambda: GemmBinding(uneven, gemm_tile(uneven, geometry)))
    assert finding.evidence == (("A0", dict(compiled.placement.copies)["A0"]), ("A1", 1))


@pytest.mark.parametrize(("waves", "element"), [(3, Element.BF16), (4, Element.FP8)])
def test_waves_and_elements_that_do_not_fit_are_refused(waves: int, element: Element) -> None:
    raised("D102", lambda: GemmTile(geometry=GEOMETRY, waves=waves, element=element, machine=GFX950))


def test_a_loop_with_another_matrix_instruction_than_the_geometry_is_refused() -> None:
    compiled, geometry = by_values(SMALL)
    finding = raised("T203", lambda: emit_gemm(compiled, replace(geometry, MMA_M=32, MMA_N=32, MMA_K=16)))
    assert mentions(finding.message, "v_mfma_f32_16x16x32_bf16", "32x32x16", "MMA_M", "MMA_N", "MMA_K")
    raised("T203", lambda: emit_gemm(compiled, geometry, element=Element.FP16))
