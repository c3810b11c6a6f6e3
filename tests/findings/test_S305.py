from __future__ import annotations

from rota.tune.point import JobKind, LoopPoint, PointJob, PointStatus
from rota.workers.local_pool import give_up

POINT = LoopPoint(device="MI355X", tile=(64, 64, 64), waves=4, instructions=False, effort=0.0)


def test_workers_that_die() -> None:
    row = give_up(PointJob("key", JobKind.SOLVE, POINT), 3)
    assert (row.status, row.code, row.attempts) == (PointStatus.FAILED, "S305", 3)
