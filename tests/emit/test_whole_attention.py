"""Whole attention kernels: the loop in them is the schedule's, they compute any problem, and faults are found."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rota.audit.audit import audit_attention
from rota.emit.attention.attention_kernel import emit_attention, emit_attention_launcher
from rota.emit.attention.attention_ops import INSTRUCTION, ForwardShape, forward_shape
from rota.emit.forms import kernel, project_of
from rota.emit.gemm.program_form import form_of
from rota.emit.planning import AsmSpacing, Issue, Maker
from rota.emit.text import Emission
from rota.isa.binary.toolchain import find_toolchain
from rota.kernels.attention import ATTENTION, HEAD_64, HEAD_128, SMALL_TILE
from rota.kernels.kernel import Kernel
from rota.order.modulo.scheduler import ModuloScheduler
from rota.program.entry import Place, Space
from rota.program.kinds import Phase
from rota.prove.kernel_proof import prove_object
from rota.targets.devices import GFX950
from rota.values.compile_loop import compile_loop
from tests.campaigns.whole.attention_launcher import attention_launcher_missed
from tests.campaigns.whole.attention_problems import AttentionProblem, attention_due, draw_numbers
from tests.campaigns.whole.whole_attention import built_attention, drawn_attention, run_attention, schedule_of
from tests.campaigns.whole.whole_attention_sabotage import (
    ATTENTION_FAULTS,
    PROBLEMS,
    AttentionFault,
    attention_found_by,
)
from tests.emit.test_one_program import TOOLCHAINS, said
from tests.findings.smallest import raised

pytestmark = pytest.mark.thorough  # compiles, or starts commands

SHARE = ("small", "head128")


@pytest.mark.parametrize("name", SHARE)
def test_the_loop_is_the_schedule_and_problems_are_computed(name: str) -> None:
    """A share of the campaign: `python -m benchmarks.whole_attention` has all of it."""
    made = built_attention(name, quick=True)
    audit = audit_attention(made.compiled, made.code)
    assert audit.exact, audit
    assert (audit.facts.spills, audit.facts.private_bytes) == (0, 0)
    assert audit.certificate is not None
    (verdict,) = prove_object(made.code)  # from the machine code alone, for any arguments
    assert verdict.proved, verdict.findings
    problems = [problem for number, _, problem in drawn_attention(9, seed=3) if number % 3 == SHARE.index(name)]
    assert {str(each): wrong for each in problems if (wrong := run_attention(made, each))} == {}


@pytest.mark.parametrize("fault", ATTENTION_FAULTS[4::25], ids=lambda fault: fault.old)
def test_faults_are_found(fault: AttentionFault) -> None:
    """A few of them: `python -m benchmarks.whole_attention_sabotage` has all."""
    assert attention_found_by(fault) is not None


def test_a_key_more_or_less_is_beyond_the_bound() -> None:
    """What is compared with can tell: without the last key most log-sum-exps are others."""
    problem = PROBLEMS[0]
    given = draw_numbers(problem, 64)
    due = attention_due(problem, given, 32)
    less = replace(problem, keys=problem.keys - 1)
    other = attention_due(less, given._replace(k=given.k[:, :, :-1], v=given.v[:, :, :-1]), 32)
    assert (np.abs(due.lse - other.lse) > due.lse_bound).mean() > 0.9
    assert (np.abs(due.o - other.o) > due.o_bound + other.o_bound).any()


def test_rows_that_see_nothing_are_due_as_zeros() -> None:
    problem = AttentionProblem(queries=3, keys=4, causal=True, shift=-2)
    due = attention_due(problem, draw_numbers(problem, 64), 32)
    assert np.isneginf(due.lse[0, 0]).tolist() == [True, True, False]
    assert not due.o[0, 0, :2].any()


def test_the_launcher_refuses_what_it_must(tmp_path: Path) -> None:
    compiled = schedule_of("small", quick=True)
    symbol = form_of(compiled.lowered).symbol
    checks, wrong = attention_launcher_missed(emit_attention_launcher(compiled), symbol, tmp_path)
    assert len(checks) > 30
    assert wrong == []


@pytest.mark.parametrize("toolchain", TOOLCHAINS)
def test_two_kernels_are_one_program(toolchain: str, tmp_path: Path) -> None:
    """No warnings, and nothing but kernels is left behind."""
    compiled = schedule_of("small", quick=True)
    parts = [emit_attention(replace(compiled, name=name)) for name in ("one", "other")]
    assert said(TOOLCHAINS[toolchain], "\n".join(parts), "gfx950", tmp_path) == ""
    for source in parts:
        assert re.findall(r"^#undef (\w+)", source, re.MULTILINE) == re.findall(r"^#define (\w+)", source, re.MULTILINE)
        assert not re.search(r"^(typedef|using|static|const|struct|int|inline)\b", source, re.MULTILINE)


def test_a_shape_is_known_by_its_loop() -> None:
    for shape in (HEAD_128, HEAD_64, SMALL_TILE):
        assert forward_shape(shape.loop()) == shape
    loop = SMALL_TILE.loop()
    assert forward_shape(replace(loop, ops=(*loop.ops[:-1], replace(loop.ops[-1], instructions=2)))) is None
    assert forward_shape(ATTENTION.loop(instructions=False)) is None


@pytest.mark.parametrize(
    ("field", "value"), [("rows", 24), ("keys", 48), ("head", 96), ("head", 256), ("head", 16), ("waves", 3)]
)
def test_shapes_that_leave_a_rest_are_refused(field: str, value: int) -> None:
    shape = ForwardShape(name="odd", **{"rows": 16, "keys": 32, "head": 64, "waves": 4} | {field: value})
    assert raised("D102", shape.loop).message


def test_another_attention_has_no_whole_kernel() -> None:
    compiled = compile_loop(ATTENTION.loop(instructions=False), scheduler=ModuloScheduler(time_limit=0), polish=False)
    raised("T203", lambda: emit_attention(compiled))


def test_settings_and_projects_are_refused() -> None:
    compiled = schedule_of("small", quick=True)
    asked = Emission(compiled=compiled, kernel=Kernel(name="small", source=SMALL_TILE), options={"output": "bf16"})
    raised("T209", lambda: kernel(asked))
    raised("T209", lambda: project_of(replace(asked, options={})))
    assert kernel(replace(asked, options={})) == emit_attention(compiled)


def test_wait_states_are_kept_on_every_way() -> None:
    """A product's result is read by a vector op of the next trip: the way around the loop is the shortest."""
    place = Place(Space.REGISTER, "s")
    product, reads = Issue(Maker.MATRIX, writes=(place,)), Issue(Maker.VECTOR, (place,))
    other = Issue(Maker.VECTOR, instructions=5)
    phases: dict[Phase, list[Issue | None]] = {
        Phase.PROLOGUE: [product, other],
        Phase.KERNEL: [reads, product, None],
        Phase.EPILOGUE: [other, reads],
    }
    assert AsmSpacing(GFX950, INSTRUCTION).find_missing(phases) == {(Phase.KERNEL, 0): 8, (Phase.EPILOGUE, 1): 3}


def test_too_few_wait_states_are_seen_by_the_audit() -> None:
    compiled = schedule_of("small", quick=True)
    source = emit_attention(compiled)
    # Emission doesn't count how long an MFMA waits for its unit, the rules do: four states would be enough here.
    less = source.replace("ROTA_APART(7)", "ROTA_APART(3)")
    assert less != source
    audit = audit_attention(compiled, find_toolchain().compile(less, "gfx950"))
    assert {finding.code for finding in audit.findings} == {"I104"}
