from __future__ import annotations

from rota import LoopBody, OpDesc, OpRole, ResourceKind, optimal_schedule_with_halves
from tests.findings.smallest import raised

LOAD = OpDesc(tag=1, resource=ResourceKind.GLOBAL_MEM, latency=8, role=OpRole.GLOBAL_LOAD, vgpr_def=1, vgpr_kill=1)
MMA = OpDesc(tag=2, resource=ResourceKind.MMA_UNIT, latency=4, role=OpRole.COMPUTE, vgpr_def=2)


def test_more_loads_than_gaps_allow_are_refused() -> None:
    # Listed first, the MMA raises the peak of the greedy order, so that a search is due.
    body = LoopBody([MMA, LOAD, LOAD, LOAD], [])
    finding = raised(
        "O202", lambda: optimal_schedule_with_halves(body, partitions=1, max_globals=1, lds_contention_penalty=5)
    )
    assert finding.fixes[0] == "max_globals=2"
