"""Kernels that others compiled are right and clean, or flagged as is known; `benchmarks.corpus` runs them all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rota.errors import Concern, Finding
from tests.isa.corpus.cases import DUE, FOLDER, TOO_LARGE, Case, Verdict, cases, judged
from tests.isa.corpus.problem import Expected, from_bf16, to_bf16, to_f8
from tests.shared import shared

pytestmark = pytest.mark.no_cover  # whole kernels, thousands of times the same lines

QUICK = (
    *(f"races/{name}.gfx950" for name in (
        "barrier_only_nowait", "divergent_barrier", "global_raw_barrier_nowait", "oob_global", "oob_lds", "raw_nosync",
        "raw_sync_ok", "reduce_missing_last", "reduce_own", "same_value_war", "u16_ok", "war_nosync", "war_ok", "waw",
    )),
    *(f"{name}.{arch}" for name in ("h_reduction", "h_scan", "h_transpose", "t_vadd", "t_vadd_nobuf")
      for arch in ("gfx942", "gfx950")),
    "g_transpose.gfx950", "g_mm_relax.gfx950", "g_mm_wrongwait.gfx950", "t_matmul_bf16_s3_async1.gfx942",
    "triton-3.8.0/pp_on.gfx942", "pp_on.gfx942", "t_matmul_fp8_s2.gfx942", "t_matmul_fp32.gfx950",
    "m_256_256_128_8_2_fp8e4nv.gfx950",
)  # fmt: skip
"""Judged under two orders whenever the tests run."""


def case(name: str) -> Case:
    return Case(path=shared(f"{FOLDER}/{name}.hsaco"), name=name)


@pytest.mark.parametrize("name", QUICK)
def test_a_kernel_is_as_is_known_of_it(name: str) -> None:
    verdict = judged(case(name), orders=2)
    assert verdict.as_due, (verdict.off, *map(str, verdict.findings[:4]))


@pytest.mark.slow
def test_all_of_them_are() -> None:
    """Those with an instruction that isn't known are named apart."""
    verdicts = [judged(each, orders=2) for each in cases(shared(FOLDER))]
    unknown = [each.case.name for each in verdicts if {finding.code for finding in each.findings} == {"I102"}]
    wrong = [each.case.name for each in verdicts if not each.as_due and each.case.name not in unknown]
    assert len(verdicts) == 106
    assert wrong == []
    assert unknown == []


def test_every_kernel_has_a_launch() -> None:
    """Arguments for all that lie there, and every name that something is due for lies there."""
    found = [*cases(shared(FOLDER))]
    for each in found:
        problem = each.problem()
        assert problem.expected or each.due, each.name
        assert problem.off() > 1 or not problem.expected  # nothing is right before it has run
    names = {each.name.rsplit(".", 1)[0] for each in found}
    assert DUE.keys() <= names
    assert {each.path.name.removesuffix(".hsaco") for each in found} >= TOO_LARGE


def verdict(*ends: str, off: float | None = 0.0) -> Verdict:
    """One finding with these ends, of a kernel in which ds_write and ds_read race."""
    finding = Finding("I109", "", concerns=tuple(Concern(label=end) for end in ends))
    raced = Case(path=Path("raw_nosync.gfx950.hsaco"), name="races/raw_nosync.gfx950")
    return Verdict(case=raced, off=off, findings=(finding,) if ends else ())


def test_a_known_fault_is_demanded_with_both_ends() -> None:
    assert verdict("ds_read_b32 v0, v0", "ds_write_b32 v1, v0").as_due
    assert not verdict("ds_write_b32 v1, v0").as_due
    assert not verdict("ds_read_b32 v0, v0", "ds_read_b32 v0, v0").as_due
    assert not verdict("ds_write_b32 v1, v0", "ds_read_b32 v0, v1").as_due
    assert not verdict().as_due
    assert not verdict("ds_read_b32 v0, v0", "ds_write_b32 v1, v0", off=None).as_due
    alike = replace(verdict("ds_read_b32 v0, v0", "ds_write_b32 v1, v0").findings[0], code="I302")
    assert not replace(verdict(), findings=(alike,)).as_due
    clean = replace(verdict(), case=Case(path=Path("raw_sync_ok.gfx950.hsaco"), name="races/raw_sync_ok.gfx950"))
    assert clean.as_due
    assert not replace(clean, off=1.5).as_due
    assert not replace(clean, findings=verdict("s_nop 0").findings).as_due


def test_a_bound_is_a_bound() -> None:
    expected = Expected(argument=0, value=np.array([1.0, np.nan, 4.0]), bound=np.array([0.5, 0.0, 0.0]))
    assert expected.off([np.array([1.25, np.nan, 4.0])]) == 0.5
    assert expected.off([np.array([2.0, np.nan, 4.0])]) == 2.0
    assert expected.off([np.array([1.0, np.nan, 5.0])]) == np.inf
    assert expected.off([np.array([1.0, 0.0, 4.0])]) == np.inf
    assert expected.off([np.array([np.nan, np.nan, 4.0])]) == np.inf


def test_small_floats_are_written_as_they_are_specified() -> None:
    """1.0, -1.5 and 12 in OCP's E4M3 and in the FNUZ form; bf16 rounds ties to even."""
    assert [*to_f8(np.array([0, 1, -2, 3, 12]), 7)] == [0x00, 0x38, 0xC0, 0x44, 0x54]
    assert [*to_f8(np.array([0, 1, -2, 3, 12]), 8)] == [0x00, 0x40, 0xC8, 0x4C, 0x5C]
    assert [*to_bf16(np.array([1.0, 1.00390625, 1.01171875, -3.0]))] == [0x3F80, 0x3F80, 0x3F82, 0xC040]
    assert [*from_bf16(np.array([0x3F80, 0xC040], np.uint16))] == [1.0, -3.0]
