"""A load that states its own tokens counts as many in every phase, in derived waits and in the proof."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from rota import OpDesc, OpRole, PipelineConfig, compile_schedule, derive_waits_from_blocks
from rota.execute.clock import Latest
from rota.execute.executor import execute
from rota.pipeline.op import FrameworkTag
from rota.program.kinds import OpKind
from tests.programs.ported import Plain, Rotating


def one_token_each(ops: Sequence[OpDesc]) -> Sequence[OpDesc]:
    return [op.but(vm_cost=1) if op.role is OpRole.GLOBAL_LOAD else op for op in ops]


class OneToken(Rotating):
    """Every load says 1 token; the config says 4 and 2."""

    def build_body(self) -> Sequence[OpDesc]:
        return one_token_each(super().build_body())


class OneTokenPlain(Plain):
    def build_body(self) -> Sequence[OpDesc]:
        return one_token_each(super().build_body())


def test_bootstrap_waits_count_what_the_loads_state() -> None:
    written = compile_schedule(OneToken(), sync="as_written")
    waits = [entry.op.wait_value for entry in written.prologue if entry.op.tag == FrameworkTag.WAIT_VM]
    assert waits == [7, 6]  # eight loads of one token, minus one and minus two; by the config it would be 20 and 18


@pytest.mark.parametrize("schedule", [OneToken, OneTokenPlain])
def test_a_load_has_as_many_tokens_in_the_prologue_as_in_the_loop(schedule: Callable[[], Plain]) -> None:
    program = compile_schedule(schedule()).lowered
    tokens = {entry.effect.tokens for entry in program.entries if entry.effect.kind is OpKind.DMA}
    assert tokens == {1}


@pytest.mark.parametrize("schedule", [OneToken, OneTokenPlain])
def test_what_is_proved_with_tokens_of_its_own_runs_right(schedule: Callable[[], Plain]) -> None:
    compiled = compile_schedule(schedule())
    assert compiled.certificate is not None
    assert all(execute(compiled, trips, policy=Latest()).right for trips in range(4))


def test_derived_waits_count_what_the_loads_state() -> None:
    schedule = OneTokenPlain()
    program = compile_schedule(schedule, sync="as_written").program
    assert program is not None
    assert derive_waits_from_blocks(program.blocks, schedule.config(), schedule.schedule_config()).vm == 4


def test_one_function_counts_tokens() -> None:
    config = PipelineConfig(vm_per_load_a=4, vm_per_load_b=2, lgkm_per_load_a=3)
    stated = OpDesc(tag=0, channel=0, vm_cost=7, lgkm_cost=5, role=OpRole.GLOBAL_LOAD)
    assert [config.vm_tokens(op) for op in (stated, stated.but(vm_cost=0), stated.but(vm_cost=0, channel=1))] == [
        7,
        4,
        2,
    ]
    lgkm = [
        config.lgkm_tokens(op, 8, 9) for op in (stated, stated.but(lgkm_cost=0), stated.but(lgkm_cost=0, channel=1))
    ]
    assert lgkm == [5, 3, 9]
