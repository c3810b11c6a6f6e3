from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import pytest

from rota import (
    DeclarativeSchedule,
    KernelGeometry,
    OpDesc,
    Pipeline4Wave,
    PipelineConfig,
    PipelineProgram,
    PipelineSchedule,
    ScheduleConfig,
    Severity,
    SingleBufferSchedule,
    TargetProfile,
    compile_schedule,
    mi355x_target,
)
from tests.findings.smallest import Small, reported
from tests.programs.ported import Plain, Rotating


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
    (mask, _) = reported("P109", schedule)
    assert mask.message.startswith("sched_barrier_mask=0")


class Template(Rotating):
    """Fragments rotate, and blocks follow the template."""

    def build_explicit_blocks(self, body: Sequence[OpDesc], program: PipelineProgram) -> Sequence[Sequence[OpDesc]]:
        return ()


OTHERS: dict[str, tuple[Any, ...]] = {
    "sched_barrier_mask": (0, 255, 0b1_0101_0101),
    "auto_waits": (False,),
    "drain_lgkm_mask": (0b1111_1111, 0b1000, 0b1_0000_0000),
    "auto_drain": (True,),
    "wait_lgkm_first": (3, 255),
    "wait_vm_last": (1,),
    "lgkm_per_load_a": (5,),
    "lgkm_per_load_b": (7,),
    "lgkm_after_last": (True,),
    "minimal_barriers": (True,),
    "omit_mma_set_prio": (True,),
    "global_before_frag": (True,),
    "barrier_before_pre_ops": (True,),
    "inter_block_lgkm_drain": (True,),
    "partial_prologue_drain": (True,),
    "wrap_waits_with_sched_barrier": (True,),
}
BESIDE: tuple[dict[str, Any], ...] = (
    {},
    {"minimal_barriers": True},
    {"auto_waits": False},
    {"minimal_barriers": False},
)


@pytest.mark.thorough  # runs for seconds
@pytest.mark.parametrize("schedule", [Plain, Template, Rotating])
@pytest.mark.parametrize("beside", BESIDE, ids=str)
@pytest.mark.parametrize("knob", OTHERS)
def test_a_knob_is_noted_just_where_the_schedule_is_the_same_without_it(
    schedule: type[Plain], beside: dict[str, Any], knob: str
) -> None:
    beside = {name: value for name, value in beside.items() if name != knob}
    default = {field.name: field.default for field in fields(ScheduleConfig)}[knob]
    before = compile_schedule(schedule(**beside, **{knob: default}), sync="as_written").lowered
    for value in OTHERS[knob]:
        compiled = compile_schedule(schedule(**beside, **{knob: value}), sync="as_written")
        noted = [each for each in compiled.findings if each.code == "P109" and each.message.startswith(f"{knob}=")]
        same = (compiled.lowered.prologue, compiled.lowered.kernel, compiled.lowered.epilogue) == (
            before.prologue,
            before.kernel,
            before.epilogue,
        )
        if schedule is Rotating and knob in ("wrap_waits_with_sched_barrier", "barrier_before_pre_ops"):
            assert not noted  # the author's own listing may read it
        else:
            assert len(noted) == same, f"{knob}={value} beside {beside}"


class CountedB(Plain):
    """Whatever moves B states its own tokens."""

    def build_body(self) -> Sequence[OpDesc]:
        return [op.but(lgkm_cost=3) if op.channel == 1 else op for op in super().build_body()]


@pytest.mark.parametrize(("knob", "idle"), [("lgkm_per_load_a", False), ("lgkm_per_load_b", True)])
def test_a_count_that_every_op_of_the_operand_states_itself_is_noted(knob: str, *, idle: bool) -> None:
    compiled = compile_schedule(CountedB(**{knob: 5}), sync="as_written")
    noted = [each for each in compiled.findings if each.code == "P109" and each.message.startswith(f"{knob}=5")]
    assert len(noted) == idle


def test_what_a_schedule_sets_itself_is_noted_whatever_it_is_given() -> None:
    given = ScheduleConfig(scheduling="CSP", wrap_waits_with_sched_barrier=True, lgkm_per_load_a=3)
    schedule = Pipeline4Wave(KernelGeometry(), given)
    by_label = {end.label.split(".")[1] for note in reported("P109", schedule) for end in note.concerns}
    assert by_label == {
        "scheduling",
        "minimal_barriers",
        "omit_mma_set_prio",
        "inter_block_lgkm_drain",
        "partial_prologue_drain",
        "lgkm_per_load_a",
    }


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
