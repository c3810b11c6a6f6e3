from __future__ import annotations

from dataclasses import replace

from rota import DeclarativeSchedule, ScheduleConfig, compile_schedule
from tests.findings.proofs import found


def test_more_registers_than_a_lane_has_are_reported() -> None:
    compiled = compile_schedule(DeclarativeSchedule(ScheduleConfig(scheduling="GREEDY")))
    assert compiled.ordering is not None
    assert compiled.registers is None, "the target's costs never free a register"
    freeing = (replace(compiled.body[0], vgpr_kill=1), *compiled.body[1:])
    (finding,) = found("L104", replace(compiled, body=freeing, ordering=replace(compiled.ordering, vgpr_peak=513)))
    assert finding.evidence == (("registers", 513), ("limit", 512))
