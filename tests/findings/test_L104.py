from __future__ import annotations

from dataclasses import replace

from rota import DeclarativeSchedule, ScheduleConfig, compile_loop, compile_schedule, verify
from rota.kernels.gemm import GEMM_SHAPES
from tests.findings.proofs import found


def test_more_registers_than_a_lane_has_are_reported() -> None:
    compiled = compile_schedule(DeclarativeSchedule(ScheduleConfig(scheduling="GREEDY")))
    assert compiled.ordering is not None
    assert compiled.registers is None, "the target's costs never free a register"
    freeing = (replace(compiled.body[0], vgpr_kill=1), *compiled.body[1:])
    (finding,) = found("L104", replace(compiled, body=freeing, ordering=replace(compiled.ordering, vgpr_peak=513)))
    assert finding.evidence == (("registers", 513), ("limit", 512))


def test_two_waves_of_a_simd_share_its_registers() -> None:
    compiled = compile_loop(GEMM_SHAPES[0].loop(instructions=False))  # eight waves
    assert compiled.placement is not None
    assert verify(compiled).clean
    more = tuple((name, 2 * count) for name, count in compiled.placement.copies)
    (finding,) = found("L104", replace(compiled, placement=replace(compiled.placement, copies=more)))
    assert ("limit", 256) in finding.evidence
