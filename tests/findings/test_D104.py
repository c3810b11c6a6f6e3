from __future__ import annotations

from typing import Any, cast

import pytest

from rota import (
    DeclarativeSchedule,
    LoopBody,
    Pipeline4Wave,
    TargetCostModel,
    annotate_ops,
    compile_loop,
    compile_schedule,
    derive_edges_from_ops,
    mi355x_target,
)
from rota.kernels.gemm import GEMM_SHAPES
from tests.findings.smallest import Small, raised

WRONG: Any = cast("Any", ["an op"])
NUMBER: Any = cast("Any", 7)


class BadConfig(Small):
    def config(self) -> Any:
        return None


class BadKnobs(Small):
    def schedule_config(self) -> Any:
        return {}


@pytest.mark.parametrize(
    "call",
    [
        lambda: annotate_ops(WRONG, mi355x_target().cost_model),
        lambda: annotate_ops(NUMBER, mi355x_target().cost_model),
        lambda: derive_edges_from_ops(WRONG, mi355x_target().pipeline),
        lambda: LoopBody(WRONG, ()),
        lambda: LoopBody((), WRONG),
        lambda: TargetCostModel(NUMBER),
        lambda: compile_schedule(NUMBER),
        lambda: compile_schedule(Small(ops=WRONG)),
        lambda: compile_schedule(Small(explicit=lambda program: WRONG)),
        lambda: compile_schedule(BadConfig()),
        lambda: compile_schedule(BadKnobs()),
        lambda: compile_loop(GEMM_SHAPES[2].loop(instructions=False), scheduler=WRONG),
        lambda: compile_loop(GEMM_SHAPES[2].loop(instructions=False), scheduler=0),  # type: ignore[arg-type]
    ],
)
def test_a_list_of_something_else_is_refused(call: Any) -> None:
    raised("D104", call)


def test_the_text_names_the_place_in_the_list() -> None:
    finding = raised("D104", lambda: compile_schedule(Small(ops=WRONG)))
    assert "build_body()" in finding.message


@pytest.mark.parametrize(
    ("schedule", "made"), [(Pipeline4Wave, "Pipeline4Wave(geometry)"), (DeclarativeSchedule, "DeclarativeSchedule()")]
)
def test_a_class_in_place_of_an_instance_is_told_how_to_make_one(schedule: Any, made: str) -> None:
    finding = raised("D104", lambda: compile_schedule(schedule))
    assert [fix.endswith(made) for fix in finding.fixes] == [True]
    assert ("got", f"class {schedule.__name__}") in finding.evidence
