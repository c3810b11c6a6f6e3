from __future__ import annotations

from rota.tune.nursery import nurse
from rota.tune.point import Job, JobKind, LoopPoint, PointLimits, PointStatus

POINT = LoopPoint(device="MI355X", tile=(64, 64, 64), waves=4, instructions=False, make="tests.tune.misbehaving:greedy")


def test_too_little_memory() -> None:
    row = nurse(Job(POINT.key(), JobKind.SOLVE, POINT), PointLimits(600, 2048))
    assert (row.status, row.code) == (PointStatus.FAILED, "S302")
    assert row.facts["megabytes"] == 2048
