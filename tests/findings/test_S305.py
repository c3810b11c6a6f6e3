from __future__ import annotations

from rota.tune.local_pool import give_up
from rota.tune.point import Job, JobKind, LoopPoint, PointStatus

POINT = LoopPoint(device="MI355X", tile=(64, 64, 64), waves=4, instructions=False, effort=0.0)


def test_workers_that_die() -> None:
    row = give_up(Job("key", JobKind.SOLVE, POINT), 3)
    assert (row.status, row.code, row.attempts) == (PointStatus.FAILED, "S305", 3)
