"""Scales of blocks in a loop: which blocks they belong to is followed, and what says otherwise is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from rota.audit.audit import audit_gemm
from rota.emit.gemm.gemm_binding import GemmBinding, check_semantics
from rota.emit.gemm.gemm_loop import GemmLoop
from rota.emit.gemm.gemm_plan import gemm_plan
from rota.emit.gemm.gemm_tile import BlockScales, BoundInstruction, Element, Factor, GemmTile, ScaleDma, gemm_tile
from rota.emit.gemm.hip_gemm import emit_gemm
from rota.emit.gemm.lds_layout import bank_conflicts, free_layout
from rota.emit.gemm.program_form import TileOperands
from rota.emit.planning import with_register_waits
from rota.emit.whole.whole_host import emit_project
from rota.emit.whole.whole_kernel import check_halves, emit_whole, whole_name
from rota.emit.whole.whole_options import WholeGemm, parse_options
from rota.isa.binary.toolchain import find_toolchain
from rota.kernels.gemm import FP4_SMALL, MXFP4_LARGE, MXFP4_SMALL, MXFP8_LARGE, MXFP8_SMALL, GemmShape
from rota.pipeline.geometry import KernelGeometry
from rota.program.entry import Entry, Work
from rota.program.loop_spec import LoopOp, LoopSpec, Value
from rota.targets.devices import GFX950
from tests.campaigns.whole.whole_kernels import LOOPS, loop_of, source_of
from tests.findings.smallest import raised
from tests.wording.golden import mentions

if TYPE_CHECKING:
    from rota.program.lowered import Lowerable, LoweredProgram, TileSum

SHAPES = (MXFP4_LARGE, MXFP4_SMALL, MXFP8_LARGE, MXFP8_SMALL, replace(MXFP8_SMALL, name="deep", depth=256))
LOOP = MXFP4_SMALL.loop(instructions=False)


def _tile(shape: GemmShape, scales: BlockScales = BlockScales.MX) -> GemmTile:
    element = Element.FP4 if shape.packed > 1 else Element.FP8
    return GemmTile(geometry=shape.geometry, waves=shape.waves, element=element, machine=GFX950, scales=scales)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_a_lane_has_the_scales_of_the_blocks_that_its_instruction_takes(shape: GemmShape) -> None:
    """Hardware: 16 bytes of a factor are 16 elements of K, or 32; those of a step, in the order of lanes, are its K."""
    tile = _tile(shape)
    per_chunk = 32 if shape.packed > 1 else 16
    text = tile.order_in_memory("(c + 0)").replace("/", "//")
    taken = []
    for step in range(tile.steps):
        for group in range(tile.lane_groups):  # of whose lanes the scale's byte `step` is block group * steps + step
            places = [32 * group + each for each in range(0, 32, per_chunk)]  # along the K of the instruction
            of_step = tile.pieces_per_step * tile.lane_groups
            chunks = [eval(text, {"c": step * of_step + place // per_chunk}) for place in places]
            assert [chunk * per_chunk // 32 for chunk in chunks] == [group * tile.steps + step] * len(chunks)
            taken += chunks
    assert sorted(taken) == [*range(shape.depth // per_chunk)]
    assert bank_conflicts(tile, free_layout(tile)) == 0


@pytest.mark.parametrize("instructions", [True, False])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_loops_are_what_they_say(shape: GemmShape, *, instructions: bool) -> None:
    loop = GemmLoop(shape.loop(instructions=instructions), _tile(shape))
    assert [*loop.scales.tiles.values()] == [*Factor]
    held = [(operand, part) for operand, parts in loop.scales.parts.values() for part in parts]
    assert sorted(held, key=str) == sorted(
        ((operand, part) for operand in Factor for part in range(loop.tile.parts(operand))), key=str
    )


def _ops(change: Callable[[LoopOp], LoopOp]) -> LoopSpec:
    return replace(LOOP, ops=tuple(map(change, LOOP.ops)))


def _values(change: Callable[[Value], Value]) -> LoopSpec:
    return replace(LOOP, values=tuple(map(change, LOOP.values)))


def _changed(name: str, **fields: object) -> LoopSpec:
    return _ops(lambda op: replace(op, **fields) if op.name == name else op)  # type: ignore[arg-type]


DOUBLE = replace(LOOP, ops=(*LOOP.ops, replace(next(op for op in LOOP.ops if op.name == "load_SA"), name="again")))
THIRD = replace(
    LOOP,
    values=(*LOOP.values, replace(LOOP.value("sa0"), name="sa2")),
    ops=(*LOOP.ops, replace(next(op for op in LOOP.ops if op.name == "read_sa0"), name="read_sa2", writes=("sa2",))),
)


@pytest.mark.parametrize(
    ("loop", "code", "names"),
    [
        (
            _values(lambda value: replace(value, operand="A_scale") if value.name == "SB" else value),
            "T203",
            ("v_mfma_scale_f32_16x16x128_f8f6f4",),
        ),
        (_changed("mma_c00", scales=("sb0",)), "T206", ("mma_c00", "sa0")),
        (DOUBLE, "T203", ()),
        (THIRD, "T203", ()),
        (_values(lambda value: replace(value, size=3) if value.name == "sa0" else value), "T202", ("sa0",)),
        (_changed("load_SB", moved=512), "T202", ("512",)),
    ],
)
def test_what_a_loop_says_of_its_scales_must_hold(loop: LoopSpec, code: str, names: tuple[str, ...]) -> None:
    assert mentions(raised(code, lambda: GemmLoop(loop, _tile(MXFP4_SMALL))).message, *names)


def _scaled_by(*names: str) -> LoopSpec:
    op = next(op for op in LOOP.ops if op.name == "mma_c00")
    factors = tuple(read for read in op.reads if read.value not in op.scales)
    reads = (*factors, *(replace(op.reads[-1], value=name) for name in names))
    return _changed("mma_c00", reads=reads, scales=names)


@pytest.mark.parametrize(
    ("loop", "names"),
    [(_scaled_by("sa1", "sb0"), ("mma_c00",)), (_scaled_by("sa0"), ("mma_c00",)), (_scaled_by("sa0", "b1"), ("b1",))],
)
def test_a_product_has_the_scales_of_its_own_rows(loop: LoopSpec, names: tuple[str, ...]) -> None:
    assert mentions(raised("T206", lambda: GemmLoop(loop, _tile(MXFP4_SMALL))).message, *names)


def test_a_loop_without_scales_has_no_tiles_of_them() -> None:
    raised("T203", lambda: GemmLoop(LOOP, _tile(MXFP4_SMALL, BlockScales.NONE)))


@pytest.mark.parametrize("geometry", [replace(MXFP4_SMALL.geometry, BK=1024), replace(FP4_SMALL.geometry, BK=64)])
def test_tiles_that_scales_do_not_fit_are_refused(geometry: KernelGeometry) -> None:
    scales = BlockScales.MX
    raised("T203", lambda: GemmTile(geometry=geometry, waves=4, element=Element.FP4, machine=GFX950, scales=scales))


def test_one_kernel_multiplies_in_one_way() -> None:
    ops = [SimpleNamespace(op=SimpleNamespace(work=Work(1, 0, each.instruction))) for each in (FP4_SMALL, MXFP4_SMALL)]
    program = SimpleNamespace(waves=4, machine=GFX950, roles=(0,), entries=ops)
    mixed = cast("Lowerable", SimpleNamespace(lowered=program))
    raised("T203", lambda: gemm_tile(mixed, FP4_SMALL.geometry))


def test_loops_by_stages_have_no_sums_of_blocks() -> None:
    program, semantics = cast("LoweredProgram", None), cast("TileSum", SimpleNamespace(grid=(2, 2)))
    tile = _tile(replace(MXFP8_SMALL, depth=128), BlockScales.FLOAT)
    raised("T203", lambda: TileOperands(program, semantics, tile))


class _Late(GemmBinding):
    """Scales of the K-tile before."""

    def instructions(self, entry: Entry) -> tuple[BoundInstruction, ...]:
        found = super().instructions(entry)
        return tuple(each._replace(k_tile=each.k_tile - 1) if isinstance(each, ScaleDma) else each for each in found)


def test_scales_of_another_k_tile_make_no_product() -> None:
    planned = with_register_waits(loop_of("mxfp4_low"))
    tile = gemm_tile(planned, LOOPS["mxfp4_low"][0].geometry)
    raised("T206", lambda: _Late(planned, tile))
    check_semantics(GemmBinding(planned, tile), planned.lowered)


@pytest.mark.thorough  # compiles, or starts commands
@pytest.mark.parametrize(("old", "new"), [("%0, %3, %4", "%0, %4, %3"), ("op_sel:[1,1,0]", "op_sel:[1,0,0]")])
def test_the_audit_sees_which_scales_are_taken(old: str, new: str) -> None:
    source, geometry = source_of("mxfp4_low", WholeGemm()), LOOPS["mxfp4_low"][0].geometry
    code = find_toolchain().compile(source.replace(old, new), "gfx950")
    name = whole_name(loop_of("mxfp4_low"), WholeGemm())
    audit = audit_gemm(loop_of("mxfp4_low"), geometry, code, kernel=name)
    assert {finding.code for finding in audit.findings} == {"I203"}


def test_what_has_no_scales_says_so() -> None:
    compiled, geometry = loop_of("mxfp4_low"), LOOPS["mxfp4_low"][0].geometry
    raised("T203", lambda: emit_gemm(compiled, geometry))
    raised("T203", lambda: gemm_plan(compiled, geometry, plain=True))
    raised("T209", lambda: emit_project(compiled, geometry))
    other = parse_options({"scales": "none"})
    raised("T209", lambda: emit_whole(compiled, geometry, other))
    scaled = parse_options({"scales": "1x32"})
    assert (
        "1x32" in raised("T209", lambda: emit_whole(loop_of("fp4_low"), LOOPS["fp4_low"][0].geometry, scaled)).message
    )


def test_halves_of_scales_are_whole_waves() -> None:
    check_halves(_tile(MXFP8_LARGE))
    odd = replace(MXFP8_SMALL, columns=64)  # a half has 32 rows, and a wave brings 64
    assert "64" in raised("T203", lambda: check_halves(_tile(odd))).message
