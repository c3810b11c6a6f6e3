from __future__ import annotations

from dataclasses import replace

import pytest

from rota import DeclarativeSchedule, FrameworkTag, ScheduleConfig, compile_schedule
from tests.findings.proofs import found

PING_PONG = compile_schedule(DeclarativeSchedule(ScheduleConfig(scheduling="GREEDY")))


def test_a_barrier_that_one_group_skips_is_reported() -> None:
    kernel = list(PING_PONG.kernel)
    slot = next(i for i, entry in enumerate(kernel) if entry.op.tag == FrameworkTag.BARRIER)
    kernel[slot] = replace(kernel[slot], group=0)
    (finding,) = found("B101", replace(PING_PONG, kernel=tuple(kernel)))
    assert finding.evidence == (("barriers of group 0", 16), ("barriers of group 1", 15))


@pytest.mark.parametrize("index", [99, 11])
def test_a_stagger_index_behind_the_prologue_is_reported(index: int) -> None:
    found("B101", replace(PING_PONG, warp_stagger_index=index))
