"""What is known about the reference's schedules, on its own recorded entries."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rota import (
    CompiledSchedule,
    FrameworkTag,
    KernelGeometry,
    OpDesc,
    OpRole,
    Phase,
    Pipeline4Wave,
    ScheduleEntry,
    compile_schedule,
    verify,
)
from tests.conformance.corpus import Case, cases
from tests.conformance.reference_loops import reference_loop
from tests.programs.edits import changed
from tests.wording.golden import worded


def drains_lgkm(case: Case) -> bool:
    """Every lgkm wait of the loop is a full drain, as for a geometry that doesn't count lgkm tokens."""
    waits = [case["ops"][op] for op, *_ in case["kernel"] if case["ops"][op][0] == "WAIT_LGKM"]
    return all(wait[6] == 0 for wait in waits)


FOUR_WAVE = [case for case in cases("four_wave") if drains_lgkm(case)]
PING_PONG = cases("ping_pong_grid")


def phases_of(loop: CompiledSchedule, code: str) -> set[str]:
    return {f.concerns[-1].role.split(",")[0] for f in verify(loop).errors if f.code == code}


def edge_drained(loop: CompiledSchedule) -> CompiledSchedule:
    ops = (OpDesc.wait_vm(0), OpDesc.wait_lgkm(0), OpDesc.barrier(), *(entry.op for entry in loop.epilogue))
    entries = tuple(ScheduleEntry(op=op, time_slot=slot, phase=Phase.EPILOGUE) for slot, op in enumerate(ops))
    return replace(loop, epilogue=entries)


def test_there_are_such_cases() -> None:
    assert len(FOUR_WAVE) == 58
    assert len(PING_PONG) == 144


@pytest.mark.parametrize("case", FOUR_WAVE, ids=lambda case: str(case["id"]))
def test_the_4_wave_epilogue_races_and_a_drain_with_a_barrier_mends_it(case: Case) -> None:
    loop = reference_loop(case)
    assert phases_of(loop, "R102") == {"epilogue"}
    assert {finding.code for finding in verify(loop).errors} == {"R102"}
    assert verify(edge_drained(loop)).clean


def test_the_4_wave_epilogue_races_at_every_trip_count() -> None:
    loop = reference_loop(FOUR_WAVE[0])
    seen = {dict(finding.evidence)["first seen at trip count"] for finding in verify(loop).errors}
    assert seen == {0, 1}, "from the prologue's loads at 0, from the loop's at 1; the state then repeats"


def test_with_lgkm_counts_the_4_wave_loop_itself_races_too() -> None:
    """A derived first wait above 0 leaves the rotating fragments in flight across the loop's barrier."""
    loop = compile_schedule(Pipeline4Wave(KernelGeometry(lgkm_per_load_a=4, lgkm_per_load_b=4)), sync="as_written")
    assert "kernel" in phases_of(loop, "R103")


@pytest.mark.parametrize("case", PING_PONG, ids=lambda case: str(case["id"]))
def test_ping_pong(case: Case) -> None:
    loop = reference_loop(case)
    scheduling, limit = case["input"]["scheduling"], case["input"]["max_globals"]
    report = verify(loop)
    if scheduling == "IDENTITY":
        assert report.clean == (limit == 0)
        assert phases_of(loop, "R103") == (set() if limit == 0 else {"kernel"})
    elif limit == 2:
        assert {finding.code for finding in report.errors} == {"V103", "V104"}
    else:
        assert report.clean


CLEAN = reference_loop(
    next(c for c in PING_PONG if c["input"]["scheduling"] == "GREEDY" and c["input"]["max_globals"] == 0)
)
FIXED = compile_schedule(Pipeline4Wave(KernelGeometry()))


def without(entries: tuple[ScheduleEntry, ...], slot: int) -> tuple[ScheduleEntry, ...]:
    return (*entries[:slot], *entries[slot + 1 :])


def slots(entries: tuple[ScheduleEntry, ...], tag: FrameworkTag) -> list[int]:
    return [slot for slot, entry in enumerate(entries) if entry.op.tag == tag]


def test_public_bug_a_barrier_removed_after_an_entry_wait() -> None:
    for slot in slots(FIXED.kernel, FrameworkTag.BARRIER):
        assert not verify(replace(FIXED, kernel=without(FIXED.kernel, slot))).clean


def test_public_bug_a_read_moved_earlier_in_an_epilogue_without_its_wait() -> None:
    first_read = next(i for i, e in enumerate(FIXED.epilogue) if e.op.role is OpRole.FRAGMENT_LOAD)
    moved = (FIXED.epilogue[first_read], *without(FIXED.epilogue, first_read))
    assert phases_of(replace(FIXED, epilogue=moved), "R102") == {"epilogue"}


def test_public_bug_a_wait_behind_the_barrier_instead_of_before_it() -> None:
    wait, _, barrier = FIXED.kernel[0:3]
    assert (wait.op.tag, barrier.op.tag) == (FrameworkTag.WAIT_VM, FrameworkTag.BARRIER)
    kernel = (FIXED.kernel[1], barrier, wait, *FIXED.kernel[3:])
    assert "kernel" in phases_of(replace(FIXED, kernel=kernel), "R102")


def test_public_bug_a_steady_state_count_reused_in_a_tail_that_issues_no_loads() -> None:
    slot = slots(FIXED.epilogue, FrameworkTag.WAIT_VM)[0]
    tail = list(FIXED.epilogue)
    tail[slot] = replace(tail[slot], op=OpDesc.wait_vm(16))
    assert phases_of(replace(FIXED, epilogue=tuple(tail)), "R102") == {"epilogue"}


def test_public_bug_a_wait_of_15_on_lgkmcnt() -> None:
    slot = slots(FIXED.kernel, FrameworkTag.WAIT_LGKM)[0]
    kernel = list(FIXED.kernel)
    kernel[slot] = replace(kernel[slot], op=OpDesc.wait_lgkm(15))
    assert {"L101", "R103"} <= {finding.code for finding in verify(replace(FIXED, kernel=tuple(kernel))).errors}


def test_public_bug_a_barrier_skipped_by_one_group() -> None:
    for slot in slots(CLEAN.kernel, FrameworkTag.BARRIER):
        skipped = changed(CLEAN, Phase.KERNEL, slot, roles=(1,))
        assert {finding.code for finding in verify(skipped).errors} == {"B101"}


def test_a_report_reads_as_its_findings_or_as_its_certificate() -> None:
    racy, clean = verify(reference_loop(FOUR_WAVE[0])), verify(CLEAN)
    assert str(racy) == "\n\n".join(map(str, racy.findings))
    assert racy.certificate is None
    text = str(clean)
    worded(text)
