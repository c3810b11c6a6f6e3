"""Searches are limited by work, not by a clock."""

from __future__ import annotations

from contextvars import copy_context
from threading import Thread

import pytest

from rota.order.modulo.scheduler import ModuloScheduler
from rota.solver.limits import spend, spend_search, spent, units
from tests.order.modulo_problems import crossed


def test_work_is_counted_and_nothing_else() -> None:
    before = spent()
    assert spent() == before
    spend(1.5)
    assert spent() - before == pytest.approx(1.5)
    spend_search(0.5)
    assert spent() - before > 1.5 + 0.5
    assert units(0) == units(-1) == 0 < units(1)


def test_threads_of_one_search_share_the_count_and_others_dont() -> None:
    before = spent()
    Thread(target=copy_context().run, args=(spend, 2.0)).run()
    assert spent() - before == pytest.approx(2.0)
    other = Thread(target=spend, args=(5.0,))
    other.start()
    other.join()
    assert spent() - before == pytest.approx(2.0)


def test_a_slow_machine_gives_the_same_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = ModuloScheduler(time_limit=1).schedule(crossed())
    clock = iter(range(0, 10_000_000, 1_000))
    monkeypatch.setattr("rota.order.modulo.scheduler.perf_counter", lambda: float(next(clock)))
    slow = ModuloScheduler(time_limit=1).schedule(crossed())
    assert (slow.ii, slow.starts) == (quick.ii, quick.starts)
    assert slow.certificate.seconds > 100 > quick.certificate.seconds
