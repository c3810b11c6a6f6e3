from __future__ import annotations

from dataclasses import replace

from rota.tune.point import JobKind, LoopPoint, PointJob, PointStatus
from rota.workers.job import JobLimits
from rota.workers.nursery import nurse

POINT = LoopPoint(device="MI355X", tile=(64, 64, 64), waves=4, instructions=False, effort=0.0)


def test_an_error_that_is_none_of_rotas() -> None:
    row = nurse(PointJob("key", JobKind.AUDIT, replace(POINT, make="math:sqrt")), JobLimits())
    assert (row.status, row.code) == (PointStatus.FAILED, "S301")
    assert "TypeError" in row.message
