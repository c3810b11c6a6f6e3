"""Shares of the campaigns: a writer that is killed, a cluster on paper, and what a choice costs."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from rota.tune.space import sift
from tests.campaigns.measured.measured_rows import read_rows
from tests.campaigns.tuning.tune_cluster import Rates, simulate
from tests.campaigns.tuning.tune_kills import killed_while_writing
from tests.campaigns.tuning.tune_library import SPACE, real_shapes
from tests.campaigns.tuning.tune_regret import LARGE, by_any, by_ranking, by_tile, regret_of, several
from tests.shared import shared


def test_a_writer_that_is_killed_loses_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    assert killed_while_writing(tmp_path, 2, random.Random(1)) >= 2


def test_a_cluster_is_limited_by_its_workers_first_and_by_its_driver_last() -> None:
    rates = Rates(read=1e-4, write=1e-4, task=1e-3, point=2.0)
    few, many = (simulate(nodes, 64, rates, 20_000) for nodes in (1, 1000))
    assert few.hours == pytest.approx(20_000 * 2 / 64 / 3600, rel=0.2)
    assert few.limit == "limited by the workers"
    slow = simulate(100, 64, rates._replace(write=0.1), 20_000)
    assert slow.limit == "limited by the driver"
    assert slow.hours == pytest.approx(20_000 * 0.1 / 3600, rel=0.2)  # whatever the cluster
    assert many.hours < few.hours


def test_regret_is_what_the_pick_loses() -> None:
    shared("measured/measured.csv.gz")
    rows = read_rows("MI300X", None)
    problems = several(rows)
    assert len(problems) > 100
    best = regret_of(rows, problems, by_ranking(rows, rows.us))
    assert (best.mean, best.best_chosen) == (0, 1)  # who knows the times loses nothing
    worst = regret_of(rows, problems, by_ranking(rows, -rows.us))
    assert 0 < regret_of(rows, problems, by_any(rows)).mean < worst.mean
    always = by_tile(rows, LARGE)
    assert all(np.isnan(always(each)) for each in problems.values() if not (rows.tile_m[list(each)] == 256).any())


def test_the_campaign_has_10_000_real_shapes_and_100_configurations_a_device() -> None:
    shared("measured/measured.csv.gz")
    assert len(real_shapes(10_000)) == 10_000
    found = sift(SPACE)
    for device in ("MI355X", "MI300X"):
        assert sum(point.device == device for point in found.points) * SPACE.variants >= 100
