"""GEMMs of fp4 and with scales of blocks: the loop is the schedule's, and whole kernels compute any problem."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rota.audit.audit import audit_gemm
from rota.audit.gemm_launch import FP4_VALUES, pack
from rota.emit.gemm.gemm_loop import GemmLoop
from rota.emit.gemm.gemm_plan import gemm_plan
from rota.emit.gemm.gemm_tile import Element, GemmTile, gemm_tile
from rota.emit.whole.whole_host import emit_launcher, emit_project
from rota.emit.whole.whole_kernel import emit_whole, whole_name
from rota.emit.whole.whole_options import Output, WholeGemm, parse_epilogue
from rota.isa.binary.toolchain import find_toolchain
from rota.isa.valu.convert import float_values
from rota.kernels.gemm import FP4_LARGE, FP4_SMALL
from rota.program.loop_spec import LoopSpec
from rota.targets.architecture import Float8
from rota.targets.devices import GFX942, GFX950
from tests.campaigns.whole.whole_faults import GATED
from tests.campaigns.whole.whole_gemm_sabotage import DEEP, PROBLEMS
from tests.campaigns.whole.whole_kernels import LOOPS, built, loop_of, source_of
from tests.campaigns.whole.whole_launcher import NARROW_CASES, SCALED_CASES, Case, compiled, program, said
from tests.campaigns.whole.whole_problems import fitted
from tests.campaigns.whole.whole_run import run_problem
from tests.emit.test_one_program import TOOLCHAINS, said as warnings_of
from tests.findings.smallest import raised

LOW = "fp4_low"
GEOMETRY = LOOPS[LOW][0].geometry
TURNS = WholeGemm(output=Output.F16, persistent=True)
ASKED = WholeGemm(output=Output.BF16, epilogue=parse_epilogue(["alpha", "column_bias"]))


@pytest.mark.thorough  # compiles, or starts commands
@pytest.mark.parametrize(("name", "asked"), [(LOW, ASKED), ("mxfp4_low", GATED), ("mxfp8_deep", TURNS)])
def test_the_loop_is_the_schedule_and_problems_are_computed(name: str, asked: WholeGemm, tmp_path: Path) -> None:
    """Scales of one register, two steps of K: a share of `python -m benchmarks.whole_gemm`."""
    made = built(name, asked)
    products = asked.products
    audit = audit_gemm(loop_of(name), LOOPS[name][0].geometry, made.code, kernel=made.name, products=products)
    assert audit.exact, audit
    assert audit.facts.spills == 0
    if asked.gate:
        assert warnings_of(TOOLCHAINS["ziglang"], source_of(name, asked), "gfx950", tmp_path) == ""
    split, rest = replace(PROBLEMS[2], batches=1, whole=False), replace(PROBLEMS[1], m=40, n=70)
    deep = replace(DEEP[0], m=40, k=300 if made.tile.element.packed > 1 else 1200)
    assert fitted(deep, made.tile.element.packed, made.tile.scales).k >= 1200
    assert {str(each): wrong for each in (deep, split, rest) if (wrong := run_problem(made, each))} == {}


def test_two_values_are_a_byte_the_first_one_lowest() -> None:
    values = float_values("fp4", Float8.OCP)
    assert values[:8].tolist() == [*FP4_VALUES]
    codes = [2 * pair | (2 * pair + 1) << 4 for pair in range(8)]
    codes[4] &= 0xF0  # of minus zero the sign is gone
    assert pack(values[None], "fp4").tolist() == [codes]


def test_the_launcher_refuses_half_bytes(tmp_path: Path) -> None:
    compiled_ = loop_of(LOW)
    header = emit_launcher(compiled_, GEOMETRY)
    source, words = program(header, whole_name(compiled_, WholeGemm()), NARROW_CASES)
    lines = said(compiled(find_toolchain(), source, tmp_path))
    assert lines[-len(NARROW_CASES) :] == [case.words for case in NARROW_CASES]
    assert "K is a multiple of 2, the elements of a byte" in words


def test_the_launcher_refuses_scales_that_are_not_there(tmp_path: Path) -> None:
    compiled_ = loop_of("mxfp4_low")
    header = emit_launcher(compiled_, LOOPS["mxfp4_low"][0].geometry)
    scaled = "p.K = 96; p.A_scale = (char*)p.A + 500000; p.B_scale = (char*)p.B + 500000; "
    cases = [case._replace(edit=scaled + case.edit) for case in (*SCALED_CASES, Case("", "launched"))]
    source, words = program(header, whole_name(compiled_, WholeGemm()), cases)
    lines = said(compiled(find_toolchain(), source, tmp_path))
    assert lines[-len(cases) :] == [case.words for case in cases]
    assert {case.words for case in SCALED_CASES} <= {*words}


def _with_formats(*formats: str) -> LoopSpec:
    loop = FP4_SMALL.loop(instructions=False)
    return replace(loop, ops=tuple(replace(op, formats=formats if op.formats else ()) for op in loop.ops))


@pytest.mark.parametrize("formats", [(), ("fp6",), ("fp4", "fp8")])
def test_ops_name_the_format(formats: tuple[str, ...]) -> None:
    tile = GemmTile(geometry=FP4_SMALL.geometry, waves=4, element=Element.FP4, machine=GFX950)
    finding = raised("T203", lambda: GemmLoop(_with_formats(*formats), tile))
    assert "FP4" in finding.message


def test_elements_of_bytes_are_no_fp4() -> None:
    compiled_ = loop_of(LOW)
    wide = replace(GEOMETRY, packed=1)
    assert "FP8" in raised("T203", lambda: emit_whole(compiled_, wide)).message
    raised("T203", lambda: gemm_tile(compiled_, replace(GEOMETRY, packed=4)))
    raised("D102", lambda: GemmTile(geometry=wide, waves=4, element=Element.FP4, machine=GFX950))
    raised("D102", lambda: replace(FP4_SMALL, packed=3).loop())
    bf16 = replace(LOOPS["small"][0], packed=2)
    raised("D102", bf16.loop)


def test_what_has_no_fp4_says_so() -> None:
    assert "fp4" in raised("T209", lambda: emit_project(loop_of(LOW), GEOMETRY)).message
    raised("T203", lambda: gemm_plan(loop_of(LOW), GEOMETRY, plain=True))
    shape = FP4_LARGE.geometry
    raised("D105", lambda: GemmTile(geometry=shape, waves=8, element=Element.FP4, machine=GFX942))
