"""A better loop is handed over with its proof and leaves the same bits; else there is I610."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from rota.errors import IsaError
from rota.improve import improved_kernel
from rota.improve.improved_kernel import ImprovedKernel, compare_runs, improve_kernel
from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.toolchain import read_object
from rota.prove.kernel_proof import prove_object
from rota.targets.registry import device_named
from tests.campaigns.machine_code.improved_kernels import improve_file, is_same, list_files
from tests.lint.linted import compiled

MATMUL = "t_matmul_bf16_s2.gfx942.hsaco"


def file_of(name: str) -> Path:
    (found,) = list_files("kernels/compiled", name)
    return found


@cache
def matmul() -> tuple[CodeObject, ImprovedKernel]:
    code = read_object(file_of(MATMUL))
    return code, improve_kernel(code, "matmul", device_named("gfx942"), most=30)


@pytest.mark.thorough  # executes a matmul, twice
def test_a_loop_of_others_is_predicted_to_be_faster_and_leaves_the_same_bits() -> None:
    code, made = matmul()
    assert made.gain > 0.02
    assert made.moved > 0
    assert all(each.proved for each in prove_object(made.code, witness=False))
    assert is_same(file_of(MATMUL), code, made, 1)


@pytest.mark.thorough  # searches for seconds
def test_only_the_loop_changes() -> None:
    code, made = matmul()
    old, new = code.hsaco, made.code.hsaco
    assert len(old) == len(new)
    changed = [place for place, (one, other) in enumerate(zip(old, new, strict=True)) if one != other]
    assert changed[-1] - changed[0] < 4 * 2 * made.instructions
    assert [each.text for each in code.instructions()][:100] == [each.text for each in made.code.instructions()][:100]


@pytest.mark.thorough  # searches for seconds
def test_the_same_call_gives_the_same_bytes() -> None:
    code, made = matmul()
    again = improve_kernel(code, "matmul", device_named("gfx942"), most=30)
    assert again.code.hsaco == made.code.hsaco


def refused(code: CodeObject, device: str = "gfx950") -> str:
    with pytest.raises(IsaError) as caught:
        improve_kernel(code, code.kernels[0].name, device_named(device), most=5)
    (finding,) = caught.value.findings
    assert finding.code == "I610"
    return str(dict(finding.evidence)["reason"])


SHORT = "void k(float* x) { x[__builtin_amdgcn_workitem_id_x()] = 1; }"


def test_what_is_refused_says_why() -> None:
    reasons = {refused(compiled(SHORT)), refused(read_object(file_of("g_mm_wrongwait.gfx950.hsaco")))}
    assert len(reasons) == 2
    assert all(reasons)


@pytest.mark.thorough  # searches for seconds
def test_an_order_that_is_not_equal_is_not_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each judge is asked: what one of them refuses isn't handed over."""
    code = read_object(file_of(MATMUL))
    monkeypatch.setattr(improved_kernel, "find_difference", lambda *_: "nothing is equal")
    assert refused(code, "gfx942")


@pytest.mark.thorough  # searches for seconds
def test_an_order_that_is_not_proved_is_not_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    code = read_object(file_of(MATMUL))
    monkeypatch.setattr(improved_kernel, "is_as_good", lambda *_: False)
    assert refused(code, "gfx942")


def launch() -> dict[str, object]:
    return {"args": [np.arange(64, dtype=np.float32)], "block": 64}


def test_runs_are_compared_by_their_bits() -> None:
    one, other = compiled(SHORT), compiled(SHORT.replace("= 1", "= 2"))
    compare_runs(one, one, "k", launch)
    with pytest.raises(IsaError, match="I610"):
        compare_runs(one, other, "k", launch)


@pytest.mark.thorough  # improves three kernels
@pytest.mark.parametrize("name", ["t_matmul_fp8_s2.gfx942", "t_matmul_fp32.gfx942", "m_128_128_64_8_2_bf16.gfx942"])
def test_a_share_of_the_campaign(name: str) -> None:
    (row,) = improve_file(file_of(f"{name}.hsaco"), 1)
    assert row.made is not None
    assert row.made.clocks < row.made.before
    assert (row.executed, row.differ) == (1, 0)
