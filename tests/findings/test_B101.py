from __future__ import annotations

from dataclasses import replace

import pytest

from rota import DeclarativeSchedule, FrameworkTag, Phase, ScheduleConfig, compile_schedule
from tests.findings.proofs import found
from tests.programs.edits import changed

PING_PONG = compile_schedule(DeclarativeSchedule(ScheduleConfig(scheduling="GREEDY")))


def test_a_barrier_that_one_group_skips_is_reported() -> None:
    slot = next(i for i, entry in enumerate(PING_PONG.kernel) if entry.op.tag == FrameworkTag.BARRIER)
    (finding,) = found("B101", changed(PING_PONG, Phase.KERNEL, slot, roles=(0,)))
    assert finding.evidence == (
        ("arrivals of group 0", 16),
        ("arrivals of group 1", 15),
        ("waits of group 0", 16),
        ("waits of group 1", 15),
    )


@pytest.mark.parametrize("index", [99, 11])
def test_a_stagger_index_behind_the_prologue_is_reported(index: int) -> None:
    found("B101", replace(PING_PONG, warp_stagger_index=index))
