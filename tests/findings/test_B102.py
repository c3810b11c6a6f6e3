from __future__ import annotations

from dataclasses import replace

import pytest

from rota import DeclarativeSchedule, OpRole, Phase, ScheduleConfig, compile_schedule
from tests.findings.proofs import found
from tests.programs.edits import changed

PING_PONG = compile_schedule(DeclarativeSchedule(ScheduleConfig(scheduling="GREEDY")))


@pytest.mark.parametrize("role", [OpRole.GLOBAL_LOAD, OpRole.FRAGMENT_LOAD, OpRole.COMPUTE])
def test_data_that_one_group_alone_moves_is_reported(role: OpRole) -> None:
    slot = next(i for i, entry in enumerate(PING_PONG.kernel) if entry.op.role is role)
    (finding,) = found("B102", changed(PING_PONG, Phase.KERNEL, slot, roles=(1,)))
    assert finding.concerns[0].index == slot
    assert finding.evidence == (("executed by", "group 1"), ("for", "group 0 and group 1"))


def test_whoever_meets_at_a_barrier_takes_part_in_it() -> None:
    program = PING_PONG.lowered
    (barrier,) = program.barriers
    (finding, *_) = found("B102", replace(program, barriers=(barrier._replace(waiting=(0,)),)), times=None)
    assert "barrier" in finding.message
