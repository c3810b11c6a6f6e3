from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rota import Loop, OpDesc, PipelineBody, compile_loop, compile_schedule
from rota.cycles.predict import predict
from rota.kernels.gemm import GEMM_SHAPES
from rota.program.loop_spec import MOST_ENTRIES, MOST_INSTRUCTIONS, MOST_OPS, MOST_VALUES
from tests.findings.smallest import Small, raised
from tests.wording.golden import mentions


def many_ops(count: int) -> Loop:
    loop = Loop("many", waves=4)
    a = loop.input("a", registers=1)
    for number in range(count):
        loop.valu(f"v{number}", [a], registers=1)
    return loop


def many_values() -> None:
    loop = Loop("many", waves=4)
    for number in range(MOST_VALUES + 1):
        loop.input(f"v{number}", registers=1)


@pytest.mark.parametrize(
    ("call", "most"),
    [
        (lambda: PipelineBody().fan(10**20, lambda body, _: body.barrier()), MOST_OPS),
        (lambda: many_ops(MOST_OPS + 1), MOST_OPS),
        (many_values, MOST_VALUES),
        (lambda: compile_schedule(Small(ops=(OpDesc.barrier(),) * 300_000)), MOST_OPS),
        (lambda: compile_loop(GEMM_SHAPES[2].loop(instructions=False), remainder=10**20), MOST_ENTRIES),
    ],
)
def test_what_would_take_without_end_is_refused_at_once(call: Callable[[], object], most: int) -> None:
    finding = raised("D113", call)
    assert ("at most", most) in finding.evidence


def test_the_line_that_goes_too_far_is_named() -> None:
    source = raised("D113", lambda: many_ops(MOST_OPS + 1)).concerns[0].source
    assert source is not None
    assert source.file == __file__


def test_as_many_ops_as_may_be_are_declared() -> None:
    assert len(many_ops(MOST_OPS).build().ops) == MOST_OPS


def test_a_loop_from_elsewhere_is_counted_too() -> None:
    spec = many_ops(MOST_OPS).build()
    raised("D113", lambda: replace(spec, ops=(*spec.ops, replace(spec.ops[0], name="more"))))


def test_the_cycle_model_takes_no_more_instructions_than_a_cache() -> None:
    loop = Loop("long", waves=4)
    loop.valu("v", [loop.input("a", registers=1)], registers=1, instructions=MOST_INSTRUCTIONS + 1)
    compiled = compile_loop(loop.build())
    finding = raised("D113", lambda: predict(compiled))
    assert mentions(finding.message, "8,193", "8,192")
