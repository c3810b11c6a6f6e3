from __future__ import annotations

import pytest

from rota import KernelGeometry, Pipeline4Wave, ScheduleConfig, Severity, SingleBufferSchedule, compile_schedule
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


def test_defaults_are_not_noted() -> None:
    assert not [each for each in compile_schedule(Pipeline4Wave(KernelGeometry())).findings if each.code == "P109"]
