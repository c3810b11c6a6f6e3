from __future__ import annotations

from typing import Any

import pytest

from rota import (
    DeclarativeSchedule,
    KernelGeometry,
    Pipeline4Wave,
    PipelineConfig,
    PipelineSchedule,
    ScheduleConfig,
    Severity,
    SingleBufferSchedule,
    TargetProfile,
    compile_schedule,
    mi355x_target,
)
from tests.findings.smallest import Small, reported


class KnobbedSingleBuffer(SingleBufferSchedule):
    def schedule_config(self) -> ScheduleConfig:
        return ScheduleConfig(minimal_barriers=True)


@pytest.mark.parametrize(
    ("knobs", "idle"),
    [
        (ScheduleConfig(max_vgpr=64), "max_vgpr"),
        (ScheduleConfig(lds_contention_penalty=4), "lds_contention_penalty"),
        (ScheduleConfig(wait_vm_last=3), "wait_vm_last"),
        (ScheduleConfig(auto_waits=False, auto_drain=True), "auto_drain"),
        (ScheduleConfig(omit_mma_set_prio=True), "omit_mma_set_prio"),
    ],
)
def test_a_knob_without_effect_is_noted(knobs: ScheduleConfig, idle: str) -> None:
    (finding,) = reported("P109", Small(knobs=knobs))
    assert finding.severity is Severity.NOTE
    assert finding.message.startswith(f"{idle}=")


def test_knobs_that_explicit_blocks_bypass_are_noted() -> None:
    schedule = Pipeline4Wave(KernelGeometry(), ScheduleConfig(sched_barrier_mask=0))
    (finding,) = reported("P109", schedule)
    assert "explicit blocks" in finding.message


def test_knobs_of_a_single_buffer_are_noted() -> None:
    reported("P109", KnobbedSingleBuffer(2))


@pytest.mark.parametrize(
    "changes", [{"prefetch": 2}, {"drain_passes": 1}, {"prologue_fill": 2}, {"mma_serial": False}, {"mma_latency": 8}]
)
def test_fields_that_only_describe_the_shape_are_noted(changes: dict[str, Any]) -> None:
    (finding,) = reported("P109", Small(pipeline=PipelineConfig(m_mmas=1, n_mmas=1, **changes)))
    assert finding.concerns[0].label == f"PipelineConfig.{next(iter(changes))}"


@pytest.mark.parametrize(
    ("geometry", "target", "idle"),
    [
        (KernelGeometry(simd_width=4), None, "simd_width"),
        (KernelGeometry(vm_per_load_a=2), mi355x_target(), "vm_per_load_a"),
    ],
)
def test_what_a_geometry_states_in_vain_is_noted(
    geometry: KernelGeometry, target: TargetProfile | None, idle: str
) -> None:
    (finding,) = reported("P109", Pipeline4Wave(geometry, target=target))
    assert finding.concerns[0].label == f"KernelGeometry.{idle}"


@pytest.mark.parametrize(
    "schedule", [Pipeline4Wave(KernelGeometry()), SingleBufferSchedule(2), DeclarativeSchedule()], ids=type
)
def test_defaults_are_not_noted(schedule: PipelineSchedule) -> None:
    assert not [each for each in compile_schedule(schedule).findings if each.code == "P109"]


def test_a_geometry_that_is_applied_is_not_noted() -> None:
    applied = compile_schedule(Pipeline4Wave(KernelGeometry(vm_per_load_a=2)), sync="as_written")
    assert not [each for each in applied.findings if each.code == "P109"]
