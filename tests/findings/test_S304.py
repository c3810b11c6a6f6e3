from __future__ import annotations

from rota.tune.point import JobKind, LoopPoint, PointJob, PointStatus
from rota.workers.job import JobLimits
from rota.workers.nursery import nurse

POINT = LoopPoint(device="MI355X", tile=(64, 64, 64), waves=4, instructions=False, effort=0.0)


def test_a_worker_that_would_compute_something_else() -> None:
    row = nurse(PointJob("0123456789abcdef", JobKind.SOLVE, POINT), JobLimits())
    assert (row.status, row.code) == (PointStatus.FAILED, "S304")
    assert POINT.key()[:12] in row.message
