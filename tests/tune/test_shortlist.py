"""Shortlists and plans: chances against draws, and against what must be so."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from rota.tune.shortlist import (
    MOST,
    Candidates,
    ErrorScale,
    chances,
    expected_losses,
    measuring_order,
    plan_runs,
    shortlist,
)
from tests.campaigns.measured.measured_rows import read_rows
from tests.campaigns.tuning.tune_shortlist import (
    Known,
    calibrate,
    know,
    known_problems,
    loss_at_random,
    losses_after,
    problems_of,
    simulate,
)
from tests.shared import shared

SCALE = ErrorScale(0.08, 0.06)


def candidates(us: Sequence[float], family: Sequence[int], scale: ErrorScale = SCALE) -> Candidates:
    return Candidates(np.array(us, float), np.array(family), scale)


def draw(of: Candidates, count: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Times as the module's model has them, by NumPy's generator."""
    drawn = np.random.default_rng(4)
    parts = np.where(drawn.random((count, 1)) < 0.5, 0.4, 1.3)
    shared_error = drawn.normal(0, of.scale.family, (count, int(of.family.max()) + 1))[:, of.family] * parts
    own = drawn.normal(0, of.scale.own, (count, len(of.us))) * parts
    times: np.ndarray[tuple[int, int], np.dtype[np.float64]] = np.exp(
        of.scale.slope * np.log(of.us) + shared_error + own
    )
    return times


@pytest.mark.parametrize(
    "of",
    [
        candidates([10, 10.5, 11, 12], [0, 0, 1, 2]),
        candidates([10, 10.1, 10.2, 10.3, 10.4, 14], [0, 0, 0, 1, 1, 1], ErrorScale(0.15, 0.03)),
        candidates([10, 11, 12], [0, 0, 0], ErrorScale(0.0, 0.1)),
        candidates([10, 12, 13, 20], [0, 1, 1, 2], ErrorScale(0.1, 0.1, 0.5)),
    ],
)
def test_chances_and_losses_are_those_of_many_draws(of: Candidates) -> None:
    times = draw(of, 200_000)
    best = np.bincount(times.argmin(axis=1), minlength=len(of.us)) / len(times)
    assert chances(of) == pytest.approx(best, abs=0.006)
    order = measuring_order(of)
    losses = expected_losses(of, order)
    least = np.log(times).min(axis=1).mean()
    for count in range(1, len(order) + 1):
        chosen = np.log(times[:, order[:count]]).min(axis=1).mean()
        assert np.log1p(losses[count]) == pytest.approx(chosen - least, abs=0.003)
    assert losses[0] == losses[1]
    assert losses[-1] == pytest.approx(0, abs=1e-9)
    assert list(losses) == sorted(losses, reverse=True)


def test_a_family_s_error_makes_its_kernels_rise_and_fall_together() -> None:
    """Others of the favourite's family are of little use if all that is unknown is the family's error."""
    us, apart = [10, 10.2, 10.4], ErrorScale(0.2, 0.01)
    together, foreign = chances(candidates(us, [0, 0, 0], apart)), chances(candidates(us, [0, 0, 1], apart))
    assert together[0] > 0.9
    assert foreign[2] > 0.4
    assert foreign.sum() == pytest.approx(1)


def test_a_shortlist_is_the_fewest_that_hold_the_stated_probability() -> None:
    of = candidates([10, 10.3, 10.6, 11, 20], [0, 1, 2, 3, 4])
    each = chances(of)
    for stated in (0.3, 0.5, 0.8, 0.9):
        found = shortlist(of, stated)
        assert found.chance >= stated
        assert found.chance == pytest.approx(each[list(found.numbers)].sum())
        assert np.sort(each)[::-1][: len(found.numbers) - 1].sum() < stated
    assert shortlist(candidates([10], [0]), 0.9) == ((0,), 1.0)
    assert each[4] == 0  # too far off to be the fastest
    assert shortlist(of, 1.0).chance < 1.0  # nothing is said of the last few hundredths


def test_a_plan_goes_where_runs_save_most() -> None:
    sure, open_ = candidates([10, 20], [0, 1]), candidates([10, 10.1, 10.2], [0, 1, 2])
    plan = plan_runs([sure, open_], 3)
    assert plan.shapes[0].numbers == ()
    assert plan.shapes[1].numbers == (0, 1, 2)
    assert plan.runs == 3
    assert plan.after < plan.before
    assert plan.shapes[0].before == plan.shapes[0].after
    assert plan_runs([open_], 1).runs == 0  # one run alone decides nothing
    many = candidates(np.linspace(10, 10.5, 30).tolist(), range(30))
    assert plan_runs([many], 1000).runs == MOST


def test_more_runs_are_expected_to_lose_less() -> None:
    problems = [candidates([10, 10 + gap, 10 + 2 * gap], [0, 1, 1]) for gap in np.linspace(0.05, 2, 20)]
    after = [plan_runs(problems, runs).after for runs in (0, 10, 20, 40, 60)]
    assert after == sorted(after, reverse=True)
    assert after[0] == plan_runs(problems, 0).before
    assert after[-1] < 0.2 * after[0]


@pytest.mark.thorough
def test_the_campaign_on_a_share_of_the_rows() -> None:
    """All of them: `python -m benchmarks.tune_regret --shortlists`."""
    shared("measured/measured.csv.gz")
    every = read_rows("MI355X", 400)
    problems = known_problems(every)
    assert len(problems) > 200
    found = calibrate(problems, 0.8)
    assert found.inside > 0.8
    assert found.length <= 5
    lost = losses_after(problems, (1, 2))
    assert all(lost["rota's shortlist"][1] <= each[1] for each in lost.values())
    some = problems[::2]
    planned = simulate(some, len(some))
    assert planned.after < planned.before
    assert planned.plan.runs <= len(some)


def test_choosing_at_random_is_counted_without_a_draw() -> None:
    shared("measured/measured.csv.gz")
    rows = read_rows("MI300X", None)
    first = max(problems_of(rows), key=len)
    times = rows.us[first]
    each = Known(candidates(times.tolist(), [0] * len(first)), times, tuple(first), rows)
    assert loss_at_random(each, 1) == pytest.approx(times.mean() / times.min() - 1)
    assert loss_at_random(each, len(first)) == pytest.approx(0)
    assert loss_at_random(each, 99) == pytest.approx(0)
    known = list(know(rows, rows.us, dict.fromkeys(range(6), SCALE)))
    assert calibrate(known, 0.5).inside > 0.99  # who knows the times has the fastest in every list
