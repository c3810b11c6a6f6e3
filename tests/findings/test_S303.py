from __future__ import annotations

from rota.tune.nursery import nurse
from rota.tune.point import Job, JobKind, LoopPoint, PointLimits, PointStatus

POINT = LoopPoint(device="MI355X", tile=(64, 64, 64), waves=4, instructions=False, effort=0.0)


def test_too_little_time() -> None:
    row = nurse(Job(POINT.key(), JobKind.SOLVE, POINT), PointLimits(0.001, 4096))
    assert (row.status, row.code) == (PointStatus.FAILED, "S303")
    assert row.facts["seconds"] == 0.001
