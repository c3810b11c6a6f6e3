from __future__ import annotations

from rota import ScheduleConfig, compile_schedule
from tests.findings.smallest import Small, reported


def test_a_first_wait_above_the_loads_cost_is_reported() -> None:
    knobs = ScheduleConfig(auto_waits=False, wait_lgkm_first=8, lgkm_per_load_a=2, lgkm_per_load_b=2)
    found = reported("W101", Small(knobs=knobs))
    assert [dict(finding.evidence)["limit"] for finding in found] == [4, 4]


def test_the_offered_fix_works() -> None:
    knobs = ScheduleConfig(auto_waits=False, wait_lgkm_first=4, lgkm_per_load_a=2, lgkm_per_load_b=2)
    assert "W101" not in {finding.code for finding in compile_schedule(Small(knobs=knobs)).findings}
