"""GEMMs with scales of blocks in fp32: sums of blocks are scaled and added by vector ops of the schedule."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from rota.audit.audit import audit_gemm
from rota.emit.gemm.gemm_binding import GemmBinding
from rota.emit.gemm.gemm_loop import GemmLoop
from rota.emit.gemm.gemm_plan import gemm_plan, issue_of, spacing_of
from rota.emit.gemm.gemm_tile import (
    BLayout,
    BlockAdd,
    BlockScales,
    BoundInstruction,
    Dma,
    Element,
    Factor,
    GemmTile,
    Mfma,
    ScaleDma,
    block_adds,
    gemm_tile,
)
from rota.emit.gemm.hip_gemm import emit_gemm
from rota.emit.planning import Maker, with_register_waits
from rota.emit.whole.whole_host import emit_launcher, emit_project
from rota.emit.whole.whole_kernel import emit_whole, whole_name
from rota.emit.whole.whole_options import Output, WholeGemm, parse_options
from rota.isa.binary.toolchain import find_toolchain
from rota.kernels.gemm import BLOCK_FP8_LARGE, BLOCK_FP8_SMALL, MXFP8_SMALL, GemmShape
from rota.program.entry import Entry
from rota.program.kinds import Home, OpKind, Phase
from rota.program.loop_spec import LoopOp, LoopSpec, Read, Value
from rota.prove.kernel_proof import prove_object
from rota.targets.devices import GFX942, GFX950
from rota.values.compile_loop import compile_loop
from tests.campaigns.whole.whole_block_faults import BLOCK_FAULTS
from tests.campaigns.whole.whole_faults import GATED, Fault
from tests.campaigns.whole.whole_gemm_sabotage import DEEP, PROBLEMS, found_by
from tests.campaigns.whole.whole_kernels import LOOPS, built, loop_of
from tests.campaigns.whole.whole_launcher import FLOAT_CASES, Case, compiled, program, said
from tests.campaigns.whole.whole_run import run_problem
from tests.findings.smallest import raised
from tests.wording.golden import mentions

LOW = "block_fp8_low"
LOOP = BLOCK_FP8_SMALL.loop(instructions=False)
HALF = WholeGemm(output=Output.BF16)


def _tile(shape: GemmShape = BLOCK_FP8_SMALL, scales: BlockScales = BlockScales.FLOAT) -> GemmTile:
    return GemmTile(geometry=shape.geometry, waves=shape.waves, element=Element.FP8, machine=GFX950, scales=scales)


@pytest.mark.thorough  # compiles, or starts commands
@pytest.mark.parametrize(("name", "asked"), [(LOW, WholeGemm()), (LOW, GATED), ("block_fp8_mi300x", HALF)])
def test_the_loop_is_the_schedule_and_problems_are_computed(name: str, asked: WholeGemm) -> None:
    """One step of K and four: a share of `python -m benchmarks.whole_gemm`, and of `benchmarks.prove_own`."""
    made = built(name, asked)
    geometry = LOOPS[name][0].geometry
    audit = audit_gemm(loop_of(name), geometry, made.code, kernel=made.name, products=asked.products)
    assert audit.exact, audit
    assert audit.facts.spills == 0
    assert all(verdict.proved for verdict in prove_object(made.code))
    deep, rest = replace(DEEP[0], m=40, whole=False), replace(PROBLEMS[2], m=40, n=70)
    split = replace(PROBLEMS[3], n=70, batches=1)
    assert {str(each): wrong for each in (deep, rest, split) if (wrong := run_problem(made, each))} == {}


@pytest.mark.thorough  # compiles, or starts commands
def test_single_instructions_keep_their_distance() -> None:
    """Some sums are scaled as soon as they may be; without the wait states the audit says so."""
    shape, machine = BLOCK_FP8_SMALL, GFX950
    loop = compile_loop(shape.loop(), machine)
    source, name = emit_whole(loop, shape.geometry), whole_name(loop, WholeGemm())
    early = re.sub(r"ROTA_APART\(\d+\) (?=ROTA_BLOCK_SCALE)", "", source)
    audits = [
        audit_gemm(loop, shape.geometry, find_toolchain().compile(text, machine.arch), kernel=name)
        for text in (source, early)
    ]
    assert [{finding.code for finding in audit.findings} for audit in audits] == [set(), {"I104"}]


@pytest.mark.thorough  # compiles, or starts commands
@pytest.mark.parametrize("fault", BLOCK_FAULTS[10::12], ids=lambda fault: fault.name)
def test_faults_are_found(fault: Fault) -> None:
    """A few of `python -m benchmarks.whole_gemm_sabotage`."""
    assert found_by(fault, fault.asked) is not None


@pytest.mark.parametrize("instructions", [True, False])
@pytest.mark.parametrize("shape", [BLOCK_FP8_SMALL, BLOCK_FP8_LARGE], ids=lambda shape: shape.name)
def test_every_block_is_summed_and_added_once(shape: GemmShape, *, instructions: bool) -> None:
    loop = GemmLoop(shape.loop(instructions=instructions), _tile(shape))
    blocks = [(m, n) for parts in loop.sums.values() for m in parts[Factor.A] for n in parts[Factor.B]]
    assert sorted(blocks) == [(m, n) for m in range(4) for n in range(4)]


def _ops(change: Callable[[LoopOp], LoopOp]) -> LoopSpec:
    return replace(LOOP, ops=tuple(map(change, LOOP.ops)))


def _op(name: str) -> LoopOp:
    return next(op for op in LOOP.ops if op.name == name)


def _reading(name: str, *values: str) -> LoopSpec:
    reads = tuple(Read(value=value) for value in values)
    return _ops(lambda op: replace(op, reads=reads) if op.name == name else op)


def _resized(name: str, size: int) -> LoopSpec:
    def sized(value: Value) -> Value:
        return replace(value, size=size) if value.name == name else value

    return replace(LOOP, values=tuple(map(sized, LOOP.values)))


AGAIN = replace(LOOP, ops=(*LOOP.ops, replace(_op("add_c00"), name="again")))
FORGOTTEN = replace(
    LOOP,
    values=tuple(value for value in LOOP.values if value.name != "c11"),
    ops=tuple(op for op in LOOP.ops if op.name != "add_c11"),
)
TO_REGISTERS = replace(
    LOOP, values=tuple(replace(each, home=Home.REGISTERS) if each.name == "c00" else each for each in LOOP.values)
)


@pytest.mark.parametrize(
    ("loop", "code", "names"),
    [
        (_reading("add_c00", "p00", "sa1", "sb0"), "T206", ("add_c00",)),
        (_reading("add_c00", "p00", "sa0"), "T206", ("add_c00",)),
        (_reading("add_c00", "p00", "sa0", "sb0", "b1"), "T206", ("b1",)),
        (_reading("add_c00", "sa0", "sb0"), "T206", ("add_c00",)),
        (_reading("add_c00", "p00", "p01", "sa0", "sb0"), "T206", ("p00", "p01")),
        (AGAIN, "T206", ("add_c00", "p00")),
        (FORGOTTEN, "T206", ("p11",)),
        (TO_REGISTERS, "T206", ("add_c00",)),
        (_resized("c00", 12), "T202", ("c00", "12")),
        (_resized("sa0", 2), "T202", ("sa0",)),
        (_resized("p00", 12), "T202", ("p00", "12")),
    ],
)
def test_what_a_loop_says_of_its_sums_must_hold(loop: LoopSpec, code: str, names: tuple[str, ...]) -> None:
    assert mentions(raised(code, lambda: GemmLoop(loop, _tile())).message, *names)


def test_vector_ops_belong_to_sums_of_blocks_alone() -> None:
    assert "mma_p00" in raised("T206", lambda: GemmLoop(LOOP, _tile(scales=BlockScales.NONE))).message
    raised("T203", lambda: GemmLoop(_without_tiles(), _tile()))


def _without_tiles() -> LoopSpec:
    """Scales that are taken for rows of A and B."""

    def owned(value: Value) -> Value:
        return replace(value, operand=value.operand.removesuffix("_scale"))

    return replace(LOOP, values=tuple(map(owned, LOOP.values)))


class _Late(GemmBinding):
    """Scales of the K-tile before."""

    def instructions(self, entry: Entry) -> tuple[BoundInstruction, ...]:
        found = super().instructions(entry)
        return tuple(each._replace(k_tile=each.k_tile - 1) if isinstance(each, ScaleDma) else each for each in found)


class _Partial(GemmBinding):
    """Sums without the last step."""

    def instructions(self, entry: Entry) -> tuple[BoundInstruction, ...]:
        found = super().instructions(entry)
        return tuple(each for each in found if not isinstance(each, Mfma) or each.step < self.tile.steps - 1)


@pytest.mark.parametrize(("name", "changed"), [(LOW, _Late), ("block_fp8_mi300x", _Partial)])
def test_whole_sums_have_the_scales_of_their_own_k_tile(name: str, changed: type[GemmBinding]) -> None:
    planned = with_register_waits(loop_of(name))
    tile = gemm_tile(planned, LOOPS[name][0].geometry)
    assert tile.scales is BlockScales.FLOAT
    raised("T206", lambda: changed(planned, tile))


def test_a_sum_is_read_once_it_is_there() -> None:
    """Eight passes and four wait states; what stands between counts, on every way there."""
    tile = _tile()
    assert spacing_of(tile).between(Maker.MATRIX, Maker.PACKED) == 12
    mfma, others = Mfma(0, 0, 0, (0, 0), (0, 0), (), 0), [Dma(Factor.A, 0, 0, 0)] * 5
    adds = [*block_adds(0, 0, 0, (0, 0))]
    assert [(each.half, each.adds) for each in adds] == [(0, False), (1, False), (0, True), (1, True)]
    phases = {
        Phase.PROLOGUE: [issue_of(mfma)],
        Phase.KERNEL: [*map(issue_of, others), *map(issue_of, adds), issue_of(mfma)],
        Phase.EPILOGUE: [*map(issue_of, adds)],
    }
    assert spacing_of(tile).find_missing(phases) == {(Phase.KERNEL, len(others)): 7, (Phase.EPILOGUE, 0): 12}


@pytest.mark.parametrize("fields", [{"depth": 256}, {"instruction": MXFP8_SMALL.instruction}, {"block_scales": 1}])
def test_shapes_that_have_no_such_blocks_are_refused(fields: dict[str, object]) -> None:
    raised("D102", lambda: replace(BLOCK_FP8_SMALL, **fields).loop())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("geometry", "element", "layout"),
    [
        (replace(BLOCK_FP8_SMALL.geometry, BK=256), Element.FP8, BLayout.NK),
        (replace(BLOCK_FP8_SMALL.geometry, MMA_M=32, MMA_N=32, MMA_K=64), Element.FP8, BLayout.NK),
        (BLOCK_FP8_SMALL.geometry, Element.FP8, BLayout.KN),
    ],
)
def test_tiles_that_have_no_such_blocks_are_refused(geometry: object, element: Element, layout: BLayout) -> None:
    fields: dict[str, object] = {"geometry": geometry, "element": element, "b_layout": layout, "machine": GFX950}
    raised("T203", lambda: GemmTile(waves=4, scales=BlockScales.FLOAT, **fields))  # type: ignore[arg-type]


def test_what_has_no_scales_says_so() -> None:
    compiled_, geometry = loop_of(LOW), LOOPS[LOW][0].geometry
    raised("T203", lambda: emit_gemm(compiled_, geometry))
    raised("T203", lambda: gemm_plan(compiled_, geometry, plain=True))
    raised("T209", lambda: emit_project(compiled_, geometry))
    asked = parse_options({"scales": "1x32"})
    assert mentions(raised("T209", lambda: emit_whole(compiled_, geometry, asked)).message, "1x128", "1x32")
    assert "1x64" in raised("T209", lambda: parse_options({"scales": "1x64"})).message
    turns = WholeGemm(persistent=True)
    raised("T209", lambda: emit_whole(compiled_, geometry, turns))


def test_the_launcher_refuses_scales_that_are_not_there(tmp_path: Path) -> None:
    compiled_ = loop_of(LOW)
    header = emit_launcher(compiled_, LOOPS[LOW][0].geometry)
    given = "p.K = 200; p.a_stride = p.b_stride = 0; p.a_batch = p.b_batch = 0; "
    given += "p.A_scale = (char*)p.A + 500000; p.B_scale = (char*)p.B + 500000; "
    cases = [case._replace(edit=given + case.edit) for case in (*FLOAT_CASES, Case("", "launched"))]
    source, words = program(header, whole_name(compiled_, WholeGemm()), cases)
    lines = said(compiled(find_toolchain(), source, tmp_path))
    assert lines[-len(cases) :] == [case.words for case in cases]
    assert {case.words for case in FLOAT_CASES} <= {*words}


def test_machine_code_on_both_machines_has_a_vector_op_for_each_half() -> None:
    for name, machine in ((LOW, GFX950), ("block_fp8_mi300x", GFX942)):
        planned = with_register_waits(loop_of(name))
        binding = GemmBinding(planned, gemm_tile(planned, LOOPS[name][0].geometry))
        ops = [entry for entry in planned.lowered.kernel if entry.op.kind is OpKind.VALU]
        found = [each for entry in ops for each in binding.instructions(entry)]
        assert binding.tile.machine is machine
        assert all(isinstance(each, BlockAdd) for each in found)
        assert len(found) == planned.lowered.tiles_per_trip * 4 * binding.tile.parts(Factor.A) * binding.tile.parts(
            Factor.B
        )
