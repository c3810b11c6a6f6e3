"""Repair: cheapest by full enumeration, order untouched, and what it does to the shipped schedules."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rota import (
    CompiledSchedule,
    DeclarativeSchedule,
    FrameworkTag,
    KernelGeometry,
    OpDesc,
    Phase,
    Pipeline4Wave,
    ProofError,
    Repair,
    ScheduleConfig,
    Severity,
    SingleBufferSchedule,
    compile_schedule,
    mi355x_target,
    verify,
)
from rota.sync.repair import repair
from tests.findings.proofs import fragment, load, loop
from tests.sync.brute_force import Cost, cheapest, races

OPS = [load(0), load(1), fragment(0), fragment(1), OpDesc.barrier(), OpDesc.wait_vm(1), OpDesc.wait_lgkm(1)]


def mended(made: CompiledSchedule) -> tuple[CompiledSchedule, tuple[Repair, ...]]:
    done = repair(made, made.machine, compiler_waits=True)
    assert done.minimal
    result = replace(
        made,
        prologue=done.prologue,
        kernel=done.kernel,
        epilogue=done.epilogue,
        warp_stagger_index=done.warp_stagger_index,
    )
    return result, done.repairs


def cost_of(repairs: tuple[Repair, ...]) -> Cost:
    barriers = [r for r in repairs if r.op == OpDesc.barrier()]
    waits = [r for r in repairs if r.op != OpDesc.barrier()]
    largest = {FrameworkTag.WAIT_VM: 62, FrameworkTag.WAIT_LGKM: 14}
    loss = sum((r.before.wait_value if r.before else largest[FrameworkTag(r.op.tag)]) - r.op.wait_value for r in waits)
    return len(barriers), len(waits), sum(r.phase is Phase.KERNEL for r in repairs), loss


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(OPS), min_size=1, max_size=3), st.lists(st.sampled_from(OPS[:5]), max_size=1))
def test_no_cheaper_repair_exists_of_a_small_loop(prologue: list[OpDesc], kernel: list[OpDesc]) -> None:
    made = loop(prologue=prologue, kernel=kernel)
    fixed, repairs = mended(made)
    assert not races(fixed)
    assert cost_of(repairs) == cheapest(made)


@pytest.mark.parametrize(
    "ops",
    [
        [load(0), fragment(0)],
        [load(0), OpDesc.barrier(), fragment(0)],
        [load(0), load(1), OpDesc.wait_vm(6), OpDesc.barrier(), fragment(0), fragment(1)],
        [load(0), OpDesc.wait_vm(0), OpDesc.barrier(), fragment(0), load(0)],
    ],
)
def test_a_straight_program_is_mended_at_the_least_cost(ops: list[OpDesc]) -> None:
    made = loop(prologue=ops)
    fixed, repairs = mended(made)
    assert not races(fixed)
    assert cost_of(repairs) == cheapest(made)


def data_ops(compiled: CompiledSchedule) -> list[OpDesc]:
    entries = (*compiled.prologue, *compiled.kernel, *compiled.epilogue)
    return [entry.op for entry in entries if not entry.op.is_framework]


def test_the_drained_4_wave_gets_a_drain_and_a_barrier_in_front_of_its_epilogue() -> None:
    schedule = Pipeline4Wave(KernelGeometry(lgkm_per_load_a=0, lgkm_per_load_b=0))  # lgkmcnt not counted: full drains
    written, compiled = compile_schedule(schedule, sync="as_written"), compile_schedule(schedule)
    assert [(r.phase, str(r.op), r.before) for r in compiled.repairs] == [
        (Phase.EPILOGUE, "wait_vm(0)", None),
        (Phase.EPILOGUE, "barrier", None),
    ]
    assert compiled.kernel == written.kernel
    assert data_ops(compiled) == data_ops(written)
    assert compiled.certificate is not None
    assert "must be over before" in str(compiled.repairs[0])


def test_strict_names_the_epilogues_reads_and_the_loads_in_flight_and_offers_the_repair() -> None:
    with pytest.raises(ProofError) as caught:
        compile_schedule(Pipeline4Wave(KernelGeometry(lgkm_per_load_a=0, lgkm_per_load_b=0)), sync="strict")
    findings = caught.value.findings
    *races, moved = findings
    assert {finding.code for finding in races} == {"R102"}
    for finding in races:
        load_end, read_end = finding.concerns
        assert load_end.label.startswith("load_")
        assert read_end.role.startswith("epilogue")
    helps = [fix for finding in races for fix in finding.fixes]
    assert helps == [
        f'sync="repair" mends this and the next {len(races) - 1}, and was proved: '
        + "; ".join(f"{op} in the epilogue in front of mma_load_b s0 t1 (#1)" for op in ("wait_vm(0)", "barrier"))
    ]
    assert moved.code == "P115"


def test_a_clean_schedule_is_left_alone() -> None:
    schedule = DeclarativeSchedule(ScheduleConfig(scheduling="GREEDY", lgkm_per_load_a=8, lgkm_per_load_b=4))
    assert compile_schedule(schedule).repairs == ()
    assert compile_schedule(schedule, sync="strict").certificate is not None


def test_wrong_values_are_not_mended() -> None:
    schedule = DeclarativeSchedule(ScheduleConfig(scheduling="GREEDY"), mi355x_target(max_globals=2))
    with pytest.raises(ProofError) as caught:
        compile_schedule(schedule)
    errors = [finding.code for finding in caught.value.findings if finding.severity is Severity.ERROR]
    assert {code[0] for code in errors[: errors.index("P107")]} == {"V"}  # the rest explains them


def test_kernel_dependencies_and_stagger_follow_their_entries() -> None:
    knobs = ScheduleConfig(scheduling="GREEDY", minimal_barriers=True)
    schedule = DeclarativeSchedule(knobs, mi355x_target(max_globals=0))
    written, compiled = compile_schedule(schedule, sync="as_written"), compile_schedule(schedule)
    assert compiled.repairs
    for before, after in zip(written.kernel_deps, compiled.kernel_deps, strict=True):
        assert written.kernel[before.producer_idx].op.tag == compiled.kernel[after.producer_idx].op.tag
        assert written.kernel[before.consumer_idx].op == compiled.kernel[after.consumer_idx].op
    assert compiled.prologue[compiled.warp_stagger_index] == written.prologue[written.warp_stagger_index]
    assert verify(compiled).clean


@pytest.mark.parametrize("tiles", [1, 2, 3, 4])
def test_a_single_buffer_gets_the_waits_that_publish_its_tile(tiles: int) -> None:
    compiled = compile_schedule(SingleBufferSchedule(tiles))
    assert {str(r.op) for r in compiled.repairs} == {"wait_lgkm(0)"}
    assert compiled.certificate is not None
    assert "register waits inserted by the compiler" in compiled.certificate.assumptions


def test_repairs_are_in_place_numbers() -> None:
    compiled = compile_schedule(SingleBufferSchedule(2))
    phases = {Phase.PROLOGUE: compiled.prologue, Phase.KERNEL: compiled.kernel, Phase.EPILOGUE: compiled.epilogue}
    for change in compiled.repairs:
        assert phases[change.phase][change.slot].op == change.op
