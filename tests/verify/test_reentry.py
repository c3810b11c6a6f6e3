"""A loop that is run again immediately after itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rota import KernelGeometry, Severity, compile_loop, compile_schedule, verify
from rota.compiled.proved import repaired
from rota.kernels.four_wave import Pipeline4Wave
from rota.kernels.ping_pong import DeclarativeSchedule
from rota.kernels.single_buffer import SingleBufferSchedule
from rota.program.entry import wait_op
from rota.program.kinds import Home, OpKind
from rota.program.loop_spec import LoopOp, LoopSpec, Read, Value
from rota.values.compile_loop import unroll_bare
from rota.values.unroll import Placement
from rota.verify.report import ENTERED_ONCE
from tests.findings.test_L106 import gemm
from tests.verify.test_operands import LOOPS, MFMA
from tests.wording.golden import worded

pytestmark = pytest.mark.thorough  # runs for seconds

SCHEDULES = {
    "four_wave": Pipeline4Wave(KernelGeometry()),
    "single_buffer": SingleBufferSchedule(2),
    "ping_pong": DeclarativeSchedule(),
}


@pytest.mark.parametrize("name", ["four_wave", "single_buffer"])
def test_a_loop_that_is_proved_once_may_race_with_itself(name: str) -> None:
    once = compile_schedule(SCHEDULES[name])
    assert once.certificate is not None
    assert ENTERED_ONCE in once.certificate.assumptions
    races = verify(replace(once, reentrant=True, certificate=None)).errors
    assert {finding.code for finding in races} == {"R103"}
    worded(races[0])
    assert all("on re-entry" in dict(finding.evidence) for finding in races)
    assert all(finding.concerns[0].role.startswith("epilogue") for finding in races)
    assert all(finding.concerns[1].role.startswith("prologue") for finding in races)
    assert all(finding.witness is None for finding in races)


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_reentrant_schedule_is_repaired_and_proved(name: str) -> None:
    again = compile_schedule(SCHEDULES[name], reentrant=True)
    assert again.certificate is not None
    assert ENTERED_ONCE not in again.certificate.assumptions
    assert any(text.startswith("re-entry") for text in again.certificate.obligations)
    assert verify(replace(again, reentrant=False, certificate=None)).clean


def test_nothing_of_what_re_entry_needs_can_go() -> None:
    once, again = (compile_schedule(SCHEDULES["four_wave"], reentrant=each) for each in (False, True))
    (new,) = {change.change for change in again.repairs} - {change.change for change in once.repairs}
    assert new.startswith("epilogue")
    slot = int(new.split("[")[1].split("]")[0])
    less = (*again.epilogue[:slot], *again.epilogue[slot + 1 :])
    assert not verify(replace(again, epilogue=less, certificate=None)).clean


@pytest.mark.parametrize("spec", [gemm(), *LOOPS.values()], ids=lambda spec: spec.name)
def test_loops_by_values_can_be_asked_for_it(spec: object) -> None:
    compiled = compile_loop(spec, reentrant=True)  # type: ignore[arg-type]
    assert compiled.reentrant
    assert compiled.certificate is not None
    barriers = [entry for entry in compiled.kernel if entry.op.kind is OpKind.BARRIER]
    assert barriers


def carried(distance: int) -> LoopSpec:
    """A fragment that the next iteration uses; its tile of this iteration, or of the one before."""
    values = {"T": Home.LDS, "x": Home.REGISTERS, "c": Home.ACCUMULATOR}
    return LoopSpec(
        name="carried",
        waves=4,
        values=tuple(Value(name=name, home=home, size=4) for name, home in values.items()),
        ops=(
            LoopOp(name="load_T", kind=OpKind.DMA, writes=("T",)),
            LoopOp(name="read_x", kind=OpKind.LDS_READ, reads=(Read(value="T", distance=distance),), writes=("x",)),
            LoopOp(
                name="mma_c", kind=OpKind.MMA, reads=(Read(value="x", distance=1),), writes=("c",), instruction=MFMA
            ),
        ),
    )


def test_a_load_must_not_land_on_the_next_runs_initial_value() -> None:
    """The last x of a run is used by nobody and waited for by nobody; the next run begins with an x of its own."""
    placement = Placement(interval=100, starts=(0, 50, 10), copies=(("T", 1), ("x", 1)))
    made = repaired(unroll_bare(carried(distance=0), placement))
    *others, wait = made.kernel
    assert wait.op == wait_op("lgkmcnt", 0)
    late = tuple(replace(entry, time_slot=slot) for slot, entry in enumerate((wait, *others)))
    once = replace(made, kernel=late)
    assert verify(once).clean
    races = verify(replace(once, reentrant=True, certificate=None)).errors
    (finding,) = (each for each in races if each.code == "R105")
    worded(finding)
    assert compile_loop(carried(distance=0), reentrant=True).certificate is not None
    waiting = replace(once, reentrant=True, certificate=None, compiler_tracks_registers=True)
    assert {each.severity for each in verify(waiting).findings if each.code == "R105"} == {Severity.ERROR}
    again = replace(made, reentrant=True, certificate=None, compiler_tracks_registers=True)
    assert repaired(again).certificate is not None


def test_tiles_that_are_read_first_are_filled_by_whoever_runs_the_loop_again() -> None:
    certificate = compile_loop(carried(distance=1), reentrant=True).certificate
    assert certificate is not None
    assert any(text.startswith("before every run the caller fills the tiles") for text in certificate.assumptions)
