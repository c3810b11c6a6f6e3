"""Each example does what its docstring says; what they print is for readers, what they make is checked here."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from rota import ProofError, compile_loop, compile_schedule, verify
from rota.audit.audit import audit_gemm
from rota.emit.gemm.hip_gemm import emit_gemm
from rota.execute.executor import execute, replay
from rota.isa.binary.toolchain import find_toolchain, find_toolchains
from tests.cli.command import rota

pytestmark = pytest.mark.no_cover  # what examples run counts as covered where it is tested by itself

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = sorted(file.stem for file in EXAMPLES.glob("*.py"))
needs_compiler = pytest.mark.skipif(not any(find_toolchains()), reason="no compiler for AMD GPUs")


def load(name: str) -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))


@pytest.mark.parametrize("name", NAMES)
def test_an_example_runs_as_a_program(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if name == "skeleton_kernel" and not any(find_toolchains()):
        pytest.skip("no compiler for AMD GPUs")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [name])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "proved for every trip count" in printed
    assert "wrong" not in printed or name == "harden_four_wave"


def test_own_gemm_by_stages_needs_no_more_than_what_repair_says() -> None:
    example = load("own_gemm_by_stages")
    made = example["compiled"]()
    assert verify(made).clean
    assert all(execute(made, trips).right for trips in range(4))
    assert {repair.before is not None for repair in made.repairs} == {True}  # waits were strengthened, none added
    with pytest.raises(ProofError):
        compile_schedule(example["LateRefill"](), sync="strict")
    assert rota(f"check {EXAMPLES}/own_gemm_by_stages.py:LateRefill").exit_code == 0


@needs_compiler
def test_own_gemm_by_values_comes_out_of_the_compiler_as_it_went_in() -> None:
    example = load("own_gemm_by_values")
    made = example["compiled"]()
    assert made.modulo.certificate.optimal
    assert all(execute(made, trips).right for trips in range(3))
    code = find_toolchain().compile(emit_gemm(made, example["GEOMETRY"]), "gfx950")
    assert audit_gemm(made, example["GEOMETRY"], code).exact


def test_attention_is_proved_and_carries_its_recurrences() -> None:
    example = load("attention")
    made = example["compiled"]()
    assert verify(made).clean
    carried = {read.value for op in made.loop.ops for read in op.reads if read.distance}
    assert carried == {"m", "l", "o"}
    assert all(execute(made, trips).right for trips in range(3))


def test_every_race_of_the_four_wave_schedule_is_borne_out_and_then_gone() -> None:
    example = load("harden_four_wave")
    written, races = example["as_written"](), example["races"]()
    assert {finding.code for finding in races} == {"R102", "R103"}
    assert not any(replay(written, finding.witness).right for finding in races)
    assert verify(example["hardened"]()).clean
    assert len(example["hardened"]().epilogue) == len(written.epilogue) + 2


@needs_compiler
def test_the_skeleton_kernel_is_the_schedule_and_computes_what_it_should() -> None:
    example = load("skeleton_kernel")
    compiled = compile_loop(example["neighbours"]())
    code, audit = example["audited"](compiled)
    assert audit.exact
    for trips in (0, 1, 2):
        got, due, findings = example["run"](compiled, code, trips)
        assert findings == ()
        assert (got == due).all()


@needs_compiler
def test_the_skeleton_kernel_without_a_barrier_is_noticed() -> None:
    example = load("skeleton_kernel")
    compiled = compile_loop(example["neighbours"]())
    head, loop = example["source"](compiled).split("// kernel\n")
    sabotaged = head + "// kernel\n" + loop.replace("ROTA_BARRIER", "", 1)
    code = find_toolchain().compile(sabotaged, "gfx950")
    *_, findings = example["run"](compiled, code, 2)
    assert "I109" in {finding.code for finding in findings}
