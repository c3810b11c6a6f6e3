from __future__ import annotations

from rota import DepEdge, LoopBody, OpDesc, OpRole, ResourceKind, optimal_schedule_with_halves
from tests.findings.smallest import raised


def load(vgpr_def: int, vgpr_kill: int) -> OpDesc:
    return OpDesc(
        tag=1,
        resource=ResourceKind.GLOBAL_MEM,
        latency=8,
        role=OpRole.GLOBAL_LOAD,
        vgpr_def=vgpr_def,
        vgpr_kill=vgpr_kill,
    )


MMA = OpDesc(tag=2, resource=ResourceKind.MMA_UNIT, latency=4, role=OpRole.COMPUTE, vgpr_def=4)


def test_two_limits_that_each_alone_could_be_kept_are_refused_together() -> None:
    # Both loads must stand before the MMA to keep the peak at 4 (the second frees what the first defined),
    # but only one may.
    body = LoopBody([load(4, 0), MMA, load(0, 4)], [DepEdge(0, 1), DepEdge(0, 2)])
    limits = {"partitions": 1, "max_globals": 1, "max_vgpr": 4}
    finding = raised("O203", lambda: optimal_schedule_with_halves(body, **limits))
    assert "max_vgpr 4" in finding.message
    assert "max_globals 1" in finding.message
    for name in ("max_globals", "max_vgpr"):
        relaxed = {key: value for key, value in limits.items() if key != name}
        assert optimal_schedule_with_halves(body, **relaxed).order
