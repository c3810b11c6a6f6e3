from __future__ import annotations

from rota import CpSatScheduler, LoopBody, OpDesc, OpRole, OrderProblem, ResourceKind
from tests.findings.smallest import raised

LOAD = OpDesc(tag=1, resource=ResourceKind.GLOBAL_MEM, latency=8, role=OpRole.GLOBAL_LOAD, vgpr_def=1, vgpr_kill=1)
MMA = OpDesc(tag=2, resource=ResourceKind.MMA_UNIT, latency=4, role=OpRole.COMPUTE, vgpr_def=2)

# In body order both loads stand after the MMA; one must move in front of it.
PROBLEM = OrderProblem(body=LoopBody([MMA, LOAD, LOAD], []), max_globals=1)


def test_a_time_limit_without_an_answer_is_not_called_infeasible() -> None:
    finding = raised("O204", lambda: CpSatScheduler(time_limit=1e-6).order(PROBLEM))
    assert finding.fixes[0].startswith("CpSatScheduler(time_limit=")


def test_with_time_there_is_one() -> None:
    assert CpSatScheduler().order(PROBLEM).order == (1, 0, 2)
