from __future__ import annotations

from rota import ScheduleConfig, compile_schedule
from tests.findings.smallest import Small, raised, two_tiles


def test_more_bootstrap_fragments_than_prefetches_are_refused() -> None:
    schedule = Small(bootstrap=two_tiles()[:1] * 5, knobs=ScheduleConfig(partial_prologue_drain=True))
    finding = raised("P110", lambda: compile_schedule(schedule))
    assert ("prologue prefetches", 4) in finding.evidence
