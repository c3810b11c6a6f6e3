"""vmcnt that counts down in any order: a counted wait says nothing about which load is over."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rota import GFX950, KernelGeometry, Machine, compile_loop, compile_schedule, verify
from rota.execute.executor import execute
from rota.kernels.four_wave import Pipeline4Wave
from rota.kernels.ping_pong import DeclarativeSchedule
from rota.kernels.single_buffer import SingleBufferSchedule
from rota.verify.report import in_order_assumption
from tests.findings.test_L106 import gemm
from tests.verify.test_operands import LOOPS
from tests.wording.golden import worded

IN_ORDER = in_order_assumption("vmcnt")
SCHEDULES = {
    "four_wave": Pipeline4Wave(KernelGeometry()),
    "single_buffer": SingleBufferSchedule(2),
    "ping_pong": DeclarativeSchedule(),
}


def test_the_order_is_a_named_assumption_and_matters() -> None:
    compiled = compile_schedule(SCHEDULES["four_wave"])
    assert compiled.certificate is not None
    assert IN_ORDER in compiled.certificate.assumptions
    doubted = replace(compiled, machine=compiled.machine.doubting("vmcnt"), certificate=None)
    report = verify(doubted)
    assert not report.clean
    worded(report.errors[0])
    assert execute(compiled, 2).right
    assert not execute(doubted, 2).right


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_that_need_no_order_are_found_and_run_right(name: str) -> None:
    compiled = compile_schedule(SCHEDULES[name], vmcnt_in_order=False)
    assert compiled.certificate is not None
    assert IN_ORDER not in compiled.certificate.assumptions
    assert all(execute(compiled, trips).right for trips in range(4))


class Doubting(SingleBufferSchedule):
    """An author whose machine counts in any order."""

    def machine(self) -> Machine:
        return GFX950.doubting("vmcnt")


@pytest.mark.parametrize("reentrant", [False, True])
def test_an_authors_doubt_stands_whatever_else_is_asked(reentrant: bool) -> None:
    compiled = compile_schedule(Doubting(2), reentrant=reentrant)
    assert not compiled.machine.counts_in_order("vmcnt")
    assert compiled.certificate is not None
    assert IN_ORDER not in compiled.certificate.assumptions


@pytest.mark.parametrize("spec", [gemm(), *LOOPS.values()], ids=lambda spec: spec.name)
def test_so_are_loops_by_values(spec: object) -> None:
    compiled = compile_loop(spec, vmcnt_in_order=False)  # type: ignore[arg-type]
    assert not compiled.machine.counts_in_order("vmcnt")
    assert compiled.certificate is not None
    assert compiled.loop is not None
    assert all(execute(compiled, trips).right for trips in range(4))
