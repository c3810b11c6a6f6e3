"""Kernels for gfx1250: right ones compute what they must under several orders, wrong ones are caught."""

from __future__ import annotations

from pathlib import Path

import pytest

from rota import load_kernel
from rota.errors import IsaError, Severity
from rota.isa.launch.orders import LaunchResult
from tests.isa.corpus.gfx1250_cases import FOLDER, FOLDERS, HARMLESS, UNKNOWN, problem_of
from tests.isa.corpus.problem import Problem
from tests.shared import shared

pytestmark = pytest.mark.no_cover  # whole kernels, thousands of times the same lines

STEMS = [
    str(path.relative_to(shared(FOLDER)))
    for folder in FOLDERS
    for path in sorted(shared(f"{FOLDER}/{folder}").glob("*.gfx1250.hsaco"))
]
RINGS = (
    *(f"hip/h_{name}_ok" for name in ("async_double", "named_ring", "async_read_drain", "tdm_ring", "wmma_gemm")),
    *(f"gluon/g_{name}_ok" for name in ("ws_ring", "tdm_gemm_b2", "tdm_gemm_b3")),
)


def stem_of(path: Path) -> str:
    return path.name.split(".", maxsplit=1)[0]


def run(path: Path, *, orders: int = 3, steps: int = 4) -> tuple[Problem, LaunchResult]:
    problem = problem_of(path, steps)
    kernel, grid, block, lds = load_kernel(path), problem.grid, problem.block, problem.dynamic_lds
    result = kernel.launch(*problem.args, grid=grid, block=block, dynamic_lds=lds, orders=orders, check=False)
    return problem, result


@pytest.mark.parametrize("name", STEMS)
def test_right_kernels_are_right_and_wrong_ones_are_caught(name: str) -> None:
    path = shared(f"{FOLDER}/{name}")
    stem = stem_of(path)
    if stem in UNKNOWN:
        if stem != "h_cluster_exchange_bad":  # it has lost the cluster's barrier
            with pytest.raises(IsaError) as caught:
                load_kernel(path)
            assert {finding.code for finding in caught.value.findings} == {"I102"}
        return
    problem, result = run(path)
    right = problem.off() <= 1 and result.ok
    if "_bad" not in stem:
        assert right, (problem.off(), *map(str, result.findings[:3]))
        assert {finding.code for finding in result.findings} <= {"I304"}  # a barrier in LDS that all lanes set up
    elif stem not in HARMLESS:
        assert not right


@pytest.mark.parametrize("stem", RINGS)
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_rings_are_right_for_other_numbers_of_steps(stem: str, steps: int) -> None:
    problem, result = run(shared(f"{FOLDER}/{stem}.gfx1250.hsaco"), steps=steps)
    assert result.ok
    assert problem.off() <= 1


def test_what_a_wrong_kernel_ends_in_names_its_fault() -> None:
    """One of each kind: a register, an access of its own wave, one of another wave, waves that wait for nobody."""
    for stem, code in (
        ("hip/h_dscnt_missing_bad", "I103"), ("hip/h_tdm_pair_bad", "I106"), ("hip/h_named_ring_bad", "I109"),
        ("hip/h_mbarrier_count_bad", "I108"),
    ):  # fmt: skip
        _, result = run(shared(f"{FOLDER}/{stem}.gfx1250.hsaco"))
        assert code in {finding.code for finding in result.findings if finding.severity is Severity.ERROR}, stem
