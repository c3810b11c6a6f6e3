from __future__ import annotations

import pytest

from rota import ScheduleConfig, compile_schedule, scheduler_named
from tests.findings.smallest import Small, raised


def test_a_misspelt_strategy_is_refused_with_the_nearest_name() -> None:
    finding = raised("D105", lambda: scheduler_named("GREDY"))
    assert "GREEDY" in finding.fixes[0]


@pytest.mark.parametrize("sync", ["fix", "", "AS_WRITTEN"])
def test_an_unknown_sync_mode_is_refused(sync: str) -> None:
    raised("D105", lambda: compile_schedule(Small(), sync=sync))


def test_a_strategy_is_looked_up_when_compiling() -> None:
    raised("D105", lambda: compile_schedule(Small(knobs=ScheduleConfig(scheduling="FASTEST"))))
