from __future__ import annotations

from rota import LoopBody, OpDesc, OpRole, ResourceKind, optimal_schedule
from tests.findings.smallest import raised


def op(vgpr_def: int, vgpr_kill: int = 0) -> OpDesc:
    return OpDesc(
        tag=1, resource=ResourceKind.LDS, latency=1, role=OpRole.FRAGMENT_LOAD, vgpr_def=vgpr_def, vgpr_kill=vgpr_kill
    )


def test_a_budget_that_no_order_can_meet_is_refused_without_a_search() -> None:
    finding = raised("O201", lambda: optimal_schedule(LoopBody([op(8), op(8)], []), max_vgpr=15))
    assert ("max_vgpr", 15) in finding.evidence
    assert finding.fixes[0] == "max_vgpr=16"


def test_a_budget_below_the_least_peak_is_refused_with_that_peak() -> None:
    body = LoopBody([op(8, 8), op(4, 4), op(2)], [])
    finding = raised("O201", lambda: optimal_schedule(body, max_vgpr=7))
    assert finding.fixes[0] == "max_vgpr=8"
    assert optimal_schedule(body, max_vgpr=8).vgpr_peak == 8
