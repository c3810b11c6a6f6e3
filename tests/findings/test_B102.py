from __future__ import annotations

from dataclasses import replace

import pytest

from rota import DeclarativeSchedule, OpRole, ScheduleConfig, compile_schedule
from tests.findings.proofs import found

PING_PONG = compile_schedule(DeclarativeSchedule(ScheduleConfig(scheduling="GREEDY")))


@pytest.mark.parametrize("role", [OpRole.GLOBAL_LOAD, OpRole.FRAGMENT_LOAD, OpRole.COMPUTE])
def test_data_that_one_group_alone_moves_is_reported(role: OpRole) -> None:
    kernel = list(PING_PONG.kernel)
    slot = next(i for i, entry in enumerate(kernel) if entry.op.role is role)
    kernel[slot] = replace(kernel[slot], group=1)
    (finding,) = found("B102", replace(PING_PONG, kernel=tuple(kernel)))
    assert finding.concerns[0].index == slot
