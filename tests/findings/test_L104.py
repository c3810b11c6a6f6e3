from __future__ import annotations

from dataclasses import replace

from rota import GFX950, DeclarativeSchedule, Loop, ScheduleConfig, compile_loop, compile_schedule, verify
from rota.kernels.gemm import GEMM_SHAPES
from tests.findings.proofs import found
from tests.findings.smallest import raised


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
    fewer = replace(GFX950, vgprs_per_lane=GFX950.vgprs_per_lane._replace(value=2 * 200))
    (finding,) = found("L104", replace(compiled, machine=fewer))
    assert ("limit", 200) in finding.evidence


def test_a_loop_whose_values_live_together_is_refused_with_the_largest_of_them() -> None:
    loop = Loop("wide", waves=4)
    tile = loop.tile("A", size=4096)
    loop.load(tile, moved=4096)
    a = loop.fragment("a", tile, registers=300, instructions=75)
    loop.valu("b", [a], registers=213)
    finding = raised("L104", lambda: compile_loop(loop.build()))
    assert ("registers live at once", 513) in finding.evidence
    assert [concern.label for concern in finding.concerns] == ["a", "b"]
    assert all(concern.source is not None for concern in finding.concerns)
