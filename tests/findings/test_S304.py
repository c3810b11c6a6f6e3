from __future__ import annotations

from rota.tune.nursery import nurse
from rota.tune.point import Job, JobKind, LoopPoint, PointLimits, PointStatus

POINT = LoopPoint(device="MI355X", tile=(64, 64, 64), waves=4, instructions=False, effort=0.0)


def test_a_worker_that_would_compute_something_else() -> None:
    row = nurse(Job("0123456789abcdef", JobKind.SOLVE, POINT), PointLimits())
    assert (row.status, row.code) == (PointStatus.FAILED, "S304")
    assert POINT.key()[:12] in row.message
