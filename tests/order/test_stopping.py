from __future__ import annotations

from threading import Timer
from time import perf_counter

import pytest
from ortools.sat.python import cp_model

from rota.solver.limits import Stop, most_workers, solve, stopped


def hard() -> cp_model.CpModel:
    """A Golomb ruler of 14 marks: the first rulers come at once, the proof of the best takes hours."""
    model = cp_model.CpModel()
    marks = [model.new_int_var(0, 500, f"mark {number}") for number in range(14)]
    gaps = []
    for later, mark in enumerate(marks):
        for earlier in marks[:later]:
            gap = model.new_int_var(1, 500, "gap")
            model.add(gap == mark - earlier)
            gaps.append(gap)
    model.add_all_different(gaps)
    model.minimize(marks[-1])
    return model


def solver(seconds: float) -> cp_model.CpSolver:
    made = cp_model.CpSolver()
    made.parameters.num_workers = 1
    made.parameters.max_time_in_seconds = seconds
    return made


def test_a_search_under_way_ends_with_the_best_found() -> None:
    stop, searching = Stop(), solver(60)
    Timer(1, stop.ask).start()
    start = perf_counter()
    with stop.governing():
        status = solve(searching, hard())
        assert stopped()
    assert status == cp_model.FEASIBLE
    assert perf_counter() - start < 30
    assert not stopped()


def test_a_later_search_gets_next_to_no_time() -> None:
    stop = Stop()
    stop.ask()
    start = perf_counter()
    with stop.governing():
        solve(solver(60), hard())
    assert perf_counter() - start < 30


@pytest.mark.parametrize("stop", [None, Stop()])
def test_nobody_asked(stop: Stop | None) -> None:
    model = cp_model.CpModel()
    model.maximize(model.new_int_var(0, 3, "x"))
    searching = solver(60)
    if stop is None:
        assert solve(searching, model) == cp_model.OPTIMAL
    else:
        with stop.governing():
            assert solve(searching, model) == cp_model.OPTIMAL
    assert searching.objective_value == 3
    assert not stopped()


def test_a_search_has_no_more_workers_than_there_are_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1}, raising=False)
    assert [most_workers(asked) for asked in (1, 2, 16)] == [1, 2, 2]
    many = solver(5)
    many.parameters.num_workers = 16
    solve(many, cp_model.CpModel())
    assert many.parameters.num_workers == 2
    monkeypatch.delattr("os.sched_getaffinity")
    monkeypatch.setattr("os.cpu_count", lambda: None)
    assert most_workers(16) == 1
