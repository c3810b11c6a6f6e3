from __future__ import annotations

from dataclasses import replace

from rota.tune.nursery import nurse
from rota.tune.point import Job, JobKind, LoopPoint, PointLimits, PointStatus

POINT = LoopPoint(device="MI355X", tile=(64, 64, 64), waves=4, instructions=False, effort=0.0)


def test_an_error_that_is_none_of_rotas() -> None:
    row = nurse(Job("key", JobKind.AUDIT, replace(POINT, make="math:sqrt")), PointLimits())
    assert (row.status, row.code) == (PointStatus.FAILED, "S301")
    assert "TypeError" in row.message
