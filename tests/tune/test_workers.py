"""What workers do, in this process: a point computed, a batch handed out, lost and given up."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from rota.errors import TuneError
from rota.tune.point import JobKind, LoopPoint, PointJob, PointStatus, make_ready, row_of
from rota.workers.ray_pool import BatchLostError, RayPool, compute_batch

pytestmark = pytest.mark.thorough  # searches, in processes of its own

POINT = LoopPoint(device="MI355X", tile=(64, 64, 64), waves=4, instructions=False, effort=0.0)
JOB = PointJob(POINT.key(), JobKind.SOLVE, POINT)


def test_a_point_is_solved_proved_and_audited() -> None:
    make_ready()
    solved = JOB.compute()
    assert (solved.status, solved.code) == (PointStatus.PROVED, "")
    assert solved.facts["loop_clocks"] >= solved.facts["matrix_clocks"] > 0
    assert row_of(solved.line()).facts == solved.facts
    audited = PointJob(JOB.key, JobKind.AUDIT, POINT, solved.answer).compute()
    assert (audited.status, audited.code) == (PointStatus.PROVED, "")


def test_a_point_that_rota_refuses_is_a_row_with_its_code() -> None:
    wrong = replace(POINT, tile=(48, 64, 64))
    refused = PointJob("any key", JobKind.SOLVE, wrong).compute()
    assert (refused.status, refused.code) == (PointStatus.REFUSED, "D102")


def test_a_batch_is_computed_by_a_process_of_its_own() -> None:
    (line,) = compute_batch(JOB.trade, [JOB.line()], (600.0, 4096))
    assert row_of(line).status is PointStatus.PROVED


class _RayError(Exception):
    pass


def stand_in(task: Callable[[list[str], tuple[float, int]], list[str]], **more: Any) -> SimpleNamespace:
    """As much of Ray as the pool uses; tasks run when their result is asked for."""

    def remote(**_: Any) -> Callable[[Any], SimpleNamespace]:
        return lambda _: SimpleNamespace(remote=lambda _, *given: (tuple(given[0]), given[1], object()))

    return SimpleNamespace(
        is_initialized=lambda: False,
        init=lambda **_: None,
        shutdown=lambda: None,
        remote=remote,
        wait=lambda running, num_returns: (running[:num_returns], running[num_returns:]),
        get=lambda reference: task(list(reference[0]), reference[1]),
        exceptions=SimpleNamespace(RayError=_RayError),
        **more,
    )


def test_batches_come_back_as_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    solved = JOB.compute()
    monkeypatch.setitem(sys.modules, "ray", stand_in(lambda lines, _: [solved.line() for _ in lines]))
    rows = [row for rows in RayPool(None, 2).run([JOB] * 5) for row in rows]
    assert [(row.key, row.status) for row in rows] == [(JOB.key, PointStatus.PROVED)] * 5
    assert list(RayPool(None, 2).run([])) == []


@pytest.mark.parametrize("error", [_RayError("a node is gone"), BatchLostError("its worker died")])
def test_a_batch_that_is_lost_for_good_is_given_up(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: object) -> list[str]:
        raise error

    monkeypatch.setitem(sys.modules, "ray", stand_in(lost))
    (row,) = (row for rows in RayPool(None, 1).run([JOB]) for row in rows)
    assert (row.status, row.code) == (PointStatus.FAILED, "S305")


def test_a_cluster_says_how_many_it_computes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", stand_in(lambda *_: [], cluster_resources=lambda: {"CPU": 12.0}))
    assert RayPool("head:6379").workers == 12


def test_no_cluster_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = stand_in(lambda *_: [])

    def refuse(**_: Any) -> None:
        raise RuntimeError("no room")

    ray.init = refuse
    monkeypatch.setitem(sys.modules, "ray", ray)
    with pytest.raises(TuneError) as caught:
        list(RayPool(None, 1).run([JOB]))
    assert caught.value.findings[0].code == "S305"
