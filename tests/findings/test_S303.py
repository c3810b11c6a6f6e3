from __future__ import annotations

from rota.tune.point import JobKind, LoopPoint, PointJob, PointStatus
from rota.workers.job import JobLimits
from rota.workers.nursery import nurse

POINT = LoopPoint(device="MI355X", tile=(64, 64, 64), waves=4, instructions=False, effort=0.0)


def test_too_little_time() -> None:
    row = nurse(PointJob(POINT.key(), JobKind.SOLVE, POINT), JobLimits(0.001, 4096))
    assert (row.status, row.code) == (PointStatus.FAILED, "S303")
    assert row.facts["seconds"] == 0.001
