from __future__ import annotations

from rota.tune.point import JobKind, LoopPoint, PointJob, PointStatus
from rota.workers.job import JobLimits
from rota.workers.nursery import nurse

POINT = LoopPoint(device="MI355X", tile=(64, 64, 64), waves=4, instructions=False, make="tests.tune.misbehaving:greedy")


def test_too_little_memory() -> None:
    row = nurse(PointJob(POINT.key(), JobKind.SOLVE, POINT), JobLimits(600, 2048))
    assert (row.status, row.code) == (PointStatus.FAILED, "S302")
    assert row.facts["megabytes"] == 2048
