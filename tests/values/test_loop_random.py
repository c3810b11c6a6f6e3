"""Random loops by values, from declaration to execution: every one is proved, and computes what it should."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from rota import GFX942, GFX950, Machine, verify
from rota.execute.clock import Earliest, Latest, Random
from rota.execute.executor import execute
from rota.program.kinds import OpKind
from rota.program.loop_spec import LoopSpec
from rota.values.compile_loop import compile_loop
from tests.execute.random_loops import specs

pytestmark = pytest.mark.no_cover  # drawn loops, whose compilation and execution other tests cover

MFMA = {GFX950.arch: "v_mfma_f32_16x16x32_bf16", GFX942.arch: "v_mfma_f32_16x16x16_bf16"}
POLICY = (Latest(), Earliest(), Random(seeds=4))


@given(specs(), st.sampled_from([GFX950, GFX942]), st.booleans(), st.integers(0, 2))
@settings(max_examples=10, deadline=None, derandomize=True)
def test_every_loop_is_proved_and_right(spec: LoopSpec, machine: Machine, fewest: bool, remainder: int) -> None:
    ops = (replace(op, instruction=MFMA[machine.arch]) if op.kind is OpKind.MMA else op for op in spec.ops)
    spec = replace(spec, ops=tuple(ops))
    compiled = compile_loop(spec, machine, fewest_barriers=fewest, remainder=remainder)
    assert verify(compiled).clean
    for trips in (0, 1, 3):
        ran = execute(compiled, trips, policy=POLICY)
        assert ran.right, (trips, ran.first_wrong)
