"""Tuning end to end: what is computed, what is not computed again, and what one bad point costs."""

from __future__ import annotations

import csv
import io
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rota.predict.predict_problem import GemmProblem, predict_problem
from rota.targets import registry
from rota.tune import point as points, tune_library as libraries
from rota.tune.dispatch_table import list_rows, table_files
from rota.tune.point import PointStatus
from rota.tune.space import ProblemShape, Swizzle
from rota.tune.tune_library import (
    STATED,
    KernelRun,
    Store,
    TunedLibrary,
    candidates_of,
    gemm_of,
    library_in,
    rank,
    tune_library,
)
from rota.workers.job import JobLimits
from rota.workers.local_pool import LocalPool
from tests.tune.spaces import SHAPES, makers, space
from tests.wording.golden import worded

pytestmark = pytest.mark.thorough  # searches, in processes of its own


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> TunedLibrary:
    return tune_library(SHAPES, space(), tmp_path_factory.mktemp("tune") / "lib")


def test_every_shape_gets_a_proved_kernel(library: TunedLibrary) -> None:
    (table,) = library.tables
    assert set(table.choices) == set(SHAPES)
    proved = {
        row.key for row in library.rows if row.status is PointStatus.PROVED and "proved" in row.facts["certificate"]
    }
    assert {choice["key"] for choice in table.choices.values()} <= proved
    assert library.findings == ()
    assert library.tally.done == 2
    assert library.tally.evaluated == len(SHAPES) * 4


def test_a_second_run_computes_nothing_and_gives_the_same_table(library: TunedLibrary) -> None:
    again = tune_library(SHAPES, space(), library.folder)
    assert (again.tally.done, again.tally.evaluated, again.tally.hits) == (0, 0, 2)
    assert table_files(again) == table_files(library)
    assert table_files(library_in(library.folder)) == table_files(library)


def test_one_more_shape_evaluates_that_shape_alone(library: TunedLibrary, tmp_path: Path) -> None:
    folder = _copy(library, tmp_path)
    again = tune_library((*SHAPES, ProblemShape(17, 17, 170)), space(), folder)
    assert (again.tally.done, again.tally.evaluated) == (0, 4)


def test_a_changed_fact_about_whole_problems_solves_nothing_again(
    library: TunedLibrary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = registry.device_named("mi355x")
    assert device.problems is not None
    slower = replace(device.problems, hbm=device.problems.hbm._replace(value=1.0))
    changed = replace(device, problems=slower)
    for module in (points, libraries, registry):
        monkeypatch.setattr(module, "device_named", lambda name: changed)
    again = tune_library(SHAPES, space(), _copy(library, tmp_path))
    assert (again.tally.done, again.tally.evaluated) == (0, 4 * len(SHAPES))


def test_a_key_depends_on_what_decides_and_on_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    (one, *_) = space().points()
    other = replace(one, device="MI300X")
    before, elsewhere = one.key(), other.key()
    assert before == one.key() != elsewhere
    changes: list[dict[str, Any]] = [
        {"seed": 1},
        {"stagger": True},
        {"effort": 1.0},
        {"depth": 2},
        {"slack": 0},
        {"mma": 32},
    ]
    for change in changes:
        assert replace(one, **change).key() != before
    device = registry.device_named("mi355x")
    less = replace(device, lds_bytes=device.lds_bytes._replace(value=device.lds_bytes.value // 2))
    known = {"mi355x": less, "mi300x": registry.device_named("mi300x")}
    monkeypatch.setattr(points, "device_named", lambda name: known[name.lower()])
    points._facts.cache_clear()
    assert one.key() != before
    assert other.key() == elsewhere  # another device's facts are none of its business
    points._facts.cache_clear()
    monkeypatch.undo()
    monkeypatch.setattr(points, "solver_version", lambda: "0.0")
    assert one.key() != before


def test_the_table_says_what_predict_problem_says(library: TunedLibrary) -> None:
    (table,) = library.tables
    rows = {row.key: row for row in library.rows}
    for shape, choice in table.choices.items():
        kernel = gemm_of(rows[choice["key"]])
        problem = GemmProblem(m=shape.m, n=shape.n, k=shape.k, split_k=choice["split_k"])
        assert choice["us"] == pytest.approx(predict_problem(kernel, problem).us, rel=1e-12)


def test_bad_points_cost_one_row_each(tmp_path: Path) -> None:
    bad = space(tile="64x64x64", make=makers("well", "crashing", "greedy", "unproved"), split_k=1)
    library = tune_library(SHAPES, bad, tmp_path, pool=LocalPool(2, JobLimits(600.0, 2048)))
    found = {row.point.make.rpartition(":")[2]: row for row in library.rows}
    assert {name: (row.status.value, row.code) for name, row in found.items()} == {
        "well": ("proved", ""),
        "crashing": ("failed", "S301"),
        "greedy": ("failed", "S302"),
        "unproved": ("failed", "S301"),
    }
    assert "SIGSEGV" in found["crashing"].message
    worded(found["unproved"].message)
    worse = space(tile="64x64x64", make=makers("well", "crashing", "greedy", "unproved", "hanging"), split_k=1)
    again = tune_library(SHAPES, worse, tmp_path, pool=LocalPool(1, JobLimits(1.0, 2048)))
    assert again.tally.done == 1  # the others, failures among them, are rows already
    assert [(row.status.value, row.code) for row in again.rows[-1:]] == [("failed", "S303")]
    (table,) = again.tables
    assert len(table.choices) == len(SHAPES)  # the rest is unaffected


def test_a_killed_worker_is_replaced_and_its_point_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_TEST_FLAG", str(tmp_path / "flag"))
    one = space(tile="64x64x64", make=makers("fatal_to_workers"), split_k=1)
    library = tune_library(SHAPES, one, tmp_path / "lib", pool=LocalPool(1))
    assert (tmp_path / "flag").exists()
    assert [row.status for row in library.rows] == [PointStatus.PROVED]


def test_a_point_over_which_all_workers_die_is_given_up(tmp_path: Path) -> None:
    one = space(tile="64x64x64", make=makers("never_ending_workers"), split_k=1)
    library = tune_library(SHAPES, one, tmp_path / "lib", pool=LocalPool(1))
    assert [(row.status, row.code) for row in library.rows] == [(PointStatus.FAILED, "S305")]
    assert [finding.code for finding in library.findings] == ["S401"]
    listed = list(csv.DictReader(io.StringIO(table_files(library)["untuned.csv"])))
    assert len(listed) == len(SHAPES)


def test_what_was_measured_decides(library: TunedLibrary, tmp_path: Path) -> None:
    (table,) = library.tables
    shape = SHAPES[-1]
    loser = next(each for each in table.ranking.configurations if each.kernel != table.choices[shape]["kernel"])
    run = KernelRun(loser.kernel, "MI355X", shape.m, shape.n, shape.k, loser.split_k, 1.5, "lab.csv")
    after = tune_library(SHAPES, space(), _copy(library, tmp_path), measured=[run])
    assert after.tally.done == 0
    choice = after.tables[0].choices[shape]
    assert (choice["kernel"], choice["us"], choice["basis"]) == (loser.kernel, 1.5, "measured")
    rows = list(csv.DictReader(io.StringIO(table_files(after)["aiter_tuned_gemm.csv"])))
    measured = [row for row in rows if row["us"]]
    assert [(row["us"], row["predicted_us"]) for row in measured] == [("1.500", "")]
    assert all(row["predicted_us"] for row in rows if not row["us"])


def test_a_row_says_the_risk_what_bounds_it_and_the_rate_that_counts(library: TunedLibrary) -> None:
    (table,) = library.tables
    for row, (shape, choice) in zip(list_rows(table), table.choices.items(), strict=True):
        assert row.low < row.us < row.high
        assert row.shortlist[0].startswith(("64x64x64_w4", "128x128x64_w4"))
        assert row.shortlist_chance >= STATED
        assert 0 < row.chance <= row.shortlist_chance + 1e-9
        assert row.decided == (len(choice["shortlist"]) == 1)
        assert row.streams == (shape.m < 4096)  # few rows: the weights are read, and little is computed
        assert ("GB/s" in row.rate) == row.streams
        once = 2 * (shape.m * shape.k + shape.n * shape.k + shape.m * shape.n)
        assert row.gb_per_s == pytest.approx(once / row.us / 1e3)
        assert row.memory_gb_per_s == 8000
        assert 0.05 < row.efficiency < 1


def test_a_kernel_that_was_measured_slower_is_no_candidate(library: TunedLibrary, tmp_path: Path) -> None:
    (table,) = library.tables
    shape = SHAPES[0]
    own = table.ranking.configurations
    every = [KernelRun(each.kernel, "MI355X", *shape[:3], each.split_k, 9.0 - n, "lab") for n, each in enumerate(own)]
    found = tune_library(SHAPES, space(), _copy(library, tmp_path), measured=every[1:]).tables[0].choices[shape]
    assert found["basis"] == "measured"
    assert {tuple(each) for each in found["shortlist"]} <= {(own[n].kernel, own[n].split_k) for n in (0, -1)}
    (row, *_) = list_rows(tune_library(SHAPES, space(), tmp_path / "lib", measured=every).tables[0])
    assert (row.decided, row.band, row.chance) == (True, "measured", 1.0)


def test_configurations_that_are_one_kernel_are_one_candidate(library: TunedLibrary) -> None:
    """The order of workgroups counts where there are several rows of tiles, and an equal schedule is one kernel."""
    row = next(row for row in library.rows if row.point.tile == (64, 64, 64))
    twin = replace(row, key="twin", point=replace(row.point, seed=1))
    other = replace(twin, facts={**row.facts, "schedule": "another"})
    orders = (Swizzle(8, 4), Swizzle(8, 8))
    few, many = ProblemShape(64, 8192, 4096), ProblemShape(4096, 8192, 4096)
    for rows, shape, count in (((row, twin), few, 1), ((row, twin), many, 2), ((row, other), few, 2)):
        ranking = rank("MI355X", rows, (1,), orders, ())
        (found,) = candidates_of(ranking, [shape])
        assert len(found.columns) == count
    assert found.columns[found.first] == 0


def test_a_shape_whose_k_no_split_suits_is_listed(tmp_path: Path) -> None:
    short = ProblemShape(64, 64, 64)
    found = tune_library([*SHAPES[:1], short], space(split_k=4), tmp_path)
    assert [shape for shape, why in found.tables[0].untuned if "split" in why] == [short]
    assert library_in(tmp_path).tables == found.tables
    assert tune_library([*SHAPES[:1], short], space(split_k=4), tmp_path).tally.evaluated == 0


def test_three_runs_of_a_loop_correct_its_other_shapes(library: TunedLibrary, tmp_path: Path) -> None:
    (table,) = library.tables
    kernel = table.choices[SHAPES[-1]]["kernel"]
    row = next(each.row for each in table.ranking.configurations if each.kernel == kernel)
    problems = [GemmProblem(m=shape.m, n=shape.n, k=shape.k) for shape in SHAPES[:3]]
    runs = [
        KernelRun(kernel, "MI355X", each.m, each.n, each.k, 1, 2 * predict_problem(gemm_of(row), each).us, "lab.csv")
        for each in problems
    ]
    after = tune_library(SHAPES, space(), _copy(library, tmp_path), measured=runs)
    (corrected,) = {each.correction for each in after.tables[0].ranking.candidates if each.correction is not None}
    assert corrected.runs == 3
    assert min(corrected.loop, corrected.start, corrected.memory) > 1.5  # slower, as measured


def test_shapes_of_another_type_are_listed_not_dropped(library: TunedLibrary, tmp_path: Path) -> None:
    other = ProblemShape(64, 64, 64, "fp8")
    after = tune_library((*SHAPES, other), space(), _copy(library, tmp_path))
    assert [shape for shape, _ in after.tables[0].untuned] == [other]
    assert [finding.code for finding in after.findings] == ["S401"]


def test_the_store_keeps_what_it_was_given(library: TunedLibrary) -> None:
    with Store(library.folder) as store:
        rows = store.rows()
        assert {row.key for row in library.rows} == set(rows)
        assert all(json.loads(row.answer) for row in rows.values())


def _copy(library: TunedLibrary, folder: Path) -> Path:
    return Path(shutil.copytree(library.folder, folder / "lib"))
