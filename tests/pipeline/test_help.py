"""`help` of hooks, fields and what a person calls while porting: a paragraph and an example, which is run."""

from __future__ import annotations

import doctest
import inspect
from dataclasses import fields

import pytest

import rota
import rota.pipeline
from rota import (
    BarrierStrategy,
    KernelGeometry,
    LoopBody,
    Pipeline4Wave,
    PipelineBody,
    PipelineProgram,
    PipelineSchedule,
    ScheduleConfig,
    SchedulingStrategy,
    WaitStrategy,
    compile_schedule,
    count_sync,
    derive_safe_max_globals,
    listing,
)

HOOKS = [name for name, each in vars(PipelineSchedule).items() if inspect.isfunction(each) and not name.startswith("_")]
FIELDS = [each.name for each in fields(ScheduleConfig)]
OTHERS = [
    ("ScheduleConfig", ScheduleConfig),
    ("from_strategies", ScheduleConfig.from_strategies),
    ("PipelineSchedule", PipelineSchedule),
    ("PipelineBody", PipelineBody),
    ("PipelineProgram.listing", PipelineProgram.listing),
    ("LoopBody", LoopBody),
    ("listing", listing),
    ("count_sync", count_sync),
    ("derive_safe_max_globals", derive_safe_max_globals),
]
DOCUMENTED = {
    **{f"PipelineSchedule.{name}": getattr(PipelineSchedule, name) for name in HOOKS},
    **{f"ScheduleConfig.{name}": getattr(ScheduleConfig, name) for name in FIELDS},
    **dict(OTHERS),
}


def names() -> dict[str, object]:
    """What `from rota import *` gives, and the body and config that the examples of fields are about."""
    gemm = rota.DeclarativeSchedule()
    found: dict[str, object] = {name: getattr(rota, name) for name in rota.__all__}
    return found | {"gemm": gemm, "body": gemm.build_body(), "config": gemm.config()}


def failures(name: str, text: str) -> int:
    test = doctest.DocTestParser().get_doctest(text, names(), name, None, 0)
    assert test.examples, f"{name} has no example"
    return doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL).run(test).failed


@pytest.mark.parametrize("name", DOCUMENTED)
def test_the_example_of_a_name_runs(name: str) -> None:
    assert failures(name, inspect.getdoc(DOCUMENTED[name]) or "") == 0


def test_a_wrong_example_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert failures("wrong", ">>> 1 + 1\n3") == 1
    assert "Expected" in capsys.readouterr().out


@pytest.mark.parametrize(
    "name", [each for each in DOCUMENTED if each.startswith(("PipelineSchedule.", "ScheduleConfig."))]
)
def test_help_of_a_hook_or_a_field_is_a_paragraph(name: str) -> None:
    told = (inspect.getdoc(DOCUMENTED[name]) or "").split(">>>")[0]
    assert len(told.strip().split("\n\n")) >= 2
    assert len(told.split()) >= 15


def test_there_are_nine_hooks_and_nineteen_fields() -> None:
    assert (len(HOOKS), len(FIELDS)) == (9, 19)


def test_the_class_lists_every_field() -> None:
    listed = [line.split("`")[1] for line in (ScheduleConfig.__doc__ or "").splitlines() if line.startswith("    * ")]
    assert listed == FIELDS


def test_strategies_spread_into_the_very_keywords_of_the_fields() -> None:
    assert inspect.signature(ScheduleConfig.from_strategies) == inspect.signature(ScheduleConfig)
    assert list(inspect.signature(ScheduleConfig.from_strategies).parameters) == FIELDS
    spread = ScheduleConfig.from_strategies(
        scheduling="CSP", **BarrierStrategy.minimal_no_set_prio(), **WaitStrategy.default()
    )
    assert spread == ScheduleConfig(scheduling=SchedulingStrategy.CSP, minimal_barriers=True, omit_mma_set_prio=True)
    with pytest.raises(TypeError, match="minimal"):
        ScheduleConfig.from_strategies(minimal=True)  # type: ignore[call-arg]


def test_the_pages_names_are_found() -> None:
    assert {*rota.pipeline.__all__, "phase_derivation", "strategies"} <= set(dir(rota.pipeline))
    for module in (rota.pipeline.phase_derivation, rota.pipeline.strategies):  # as the reference's pages name them
        assert all(getattr(module, name) is getattr(rota, name) for name in module.__all__)
    module = rota.pipeline.phases
    assert module.filter_spurious_cross_stage_flow is rota.filter_spurious_cross_stage_flow
    assert module.derive_cross_stage_rotation_edges is rota.derive_cross_stage_rotation_edges
    assert rota.pipeline.schedule_config.BarrierStrategy is BarrierStrategy


@pytest.mark.parametrize(("count", "latency", "most"), [(1, 16, 0), (2, 16, 1), (4, 16, 1), (1, 20, 1), (1, 19, 0)])
def test_a_load_in_every_block_needs_mmas_as_long_as_an_lds_access(count: int, latency: int, most: int) -> None:
    tags = rota.DoubleBufferTag
    model = (
        rota.mi355x_target().cost_model.with_cost(tags.MMA, latency=latency).with_cost(tags.COMPUTE, latency=latency)
    )
    assert derive_safe_max_globals(count, model) == most


@pytest.mark.parametrize("most", [0, 1])
def test_either_is_proved(most: int) -> None:
    target = rota.mi355x_target(max_globals=most)
    assert compile_schedule(Pipeline4Wave(KernelGeometry(), target=target)).certificate is not None


@pytest.mark.parametrize("count", [0, -1, True, 1.5])
def test_a_block_multiplies_at_least_once(count: int) -> None:
    with pytest.raises(rota.DeclarationError, match="D102"):
        derive_safe_max_globals(count)
