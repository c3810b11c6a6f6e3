"""The shipped facts are those that the table gives, and predict it as well as is said."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from rota.predict.predict_problem import GemmProblem, TiledGemm, predict_problem, times_of
from rota.targets.device import problem_facts_of
from rota.targets.registry import device_named, known_devices
from tests.campaigns.measured.measured_rows import Rows, best_rates, read_rows, table
from tests.campaigns.measured.problem_fit import Fit, fit_rows, folds
from tests.campaigns.measured.problem_judging import TUNED, coverage, errors, interval, large, middle_of
from tests.campaigns.tuning.tune_shortlist import problems_of, scales_of
from tests.shared import shared

pytestmark = pytest.mark.thorough  # runs for seconds

FACTS = problem_facts_of(device_named("mi355x"))


@cache
def rows() -> Rows:
    assert shared("measured/measured.csv.gz") == table()
    return read_rows("MI355X")


@cache
def fit() -> Fit:
    return fit_rows(rows())


def test_the_rows_are_those_of_the_first_fit() -> None:
    assert len(rows()) == 10_763
    assert len(set(rows().family.tolist())) == 22


def test_the_table_gives_the_facts_of_the_device() -> None:
    found = fit().named
    found |= middle_of(fit(), TUNED)
    for name in ("start", "share", "feed", "trip", "hbm", "store", "split_start", "split_traffic"):
        assert found[name] == pytest.approx(getattr(FACTS, name).value, rel=1e-3), name
    best = best_rates("MI355X")
    for element in fit().elements:
        own = FACTS.type_facts(element, "MI355X")
        assert found[f"f_busy|{element}"] == pytest.approx(own.f_busy.value, rel=1e-3), element
        assert own.best is not None
        assert best[element] == pytest.approx(own.best.value, rel=1e-3)


def test_every_fact_lies_in_its_band() -> None:
    for device in known_devices().devices:
        facts = problem_facts_of(device)
        numbers = [facts.start, facts.share, facts.feed, facts.trip, facts.hbm, facts.store, facts.split_start]
        for each in (*numbers, facts.split_traffic, *(one.f_busy for one in facts.types)):
            assert 0 < each.low <= each.value <= each.high, (device.name, each)
        assert [each.least for each in facts.regimes] == [1, *(each.most + 1 for each in facts.regimes if each.most)]
        assert facts.regimes[-1].most is None
        for regime in facts.regimes:
            assert regime.band.low < 1 < regime.band.high
            assert 0 < regime.error < 0.5
            assert 0 <= regime.family < 0.3
            assert 0.02 < regime.own < 0.3


def test_the_errors_between_kernels_are_those_that_the_table_gives() -> None:
    """Of the smaller device, where all regimes share them; the other one takes a minute."""
    facts = problem_facts_of(device_named("mi300x"))
    every = read_rows("MI300X", None)
    scales = scales_of(every)
    for scale, regime in zip(scales.values(), facts.regimes, strict=True):
        assert (scale.family, scale.own) == pytest.approx((regime.family, regime.own), abs=6e-4)
    assert facts.compared.startswith(f"{len(problems_of(every))} problems ")


def test_scalars_and_arrays_are_one_model() -> None:
    """A measured kernel as the product predicts it, and as the evaluation does."""
    some = rows().at(np.flatnonzero((rows().family == "bf16|-|asm|plain") & large(rows()))[::20])
    for number in range(len(some)):
        one = some.at(np.array([number]))
        mine = TiledGemm(
            name="row",
            device=device_named("mi355x"),
            tile=(int(one.tile_m[0]), int(one.tile_n[0]), int(one.tile_k[0])),
            element="bf16",
            loop_clocks=float(one.work.loop[0]),  # type: ignore[index]  # arrays stand for numbers
            matrix_clocks=float(one.work.mma[0]),  # type: ignore[index]
        )
        m, n, k = int(one.m[0]), int(one.n[0]), int(one.k[0])
        result = {2: "bf16", 4: "fp32"}[round(float(one.work.result_bytes[0]) / m / n)]  # type: ignore[index]
        found = predict_problem(mine, GemmProblem(m=m, n=n, k=k, result=result))
        assert found.us == pytest.approx(_as_product(one), rel=2e-3)


def _as_product(one: Rows) -> float:
    at = fit().parameters(one)._replace(**middle_of(fit(), TUNED))
    return float(np.asarray(times_of(one.work, at).total)[0])


def test_shapes_held_out_are_predicted_as_well_as_promised() -> None:
    """A third of the folds: `python -m benchmarks.predict_problems` has all of them."""
    out = folds(rows().shapes)[0]
    seen, unseen = rows().at(~out), rows().at(out)
    found = errors(unseen.us, fit_rows(seen).predict(unseen))
    assert found.median <= 0.075
    assert found.mean <= 0.115
    assert found.p90 <= 0.25


def test_a_fit_is_deterministic_and_finds_planted_parameters() -> None:
    some = rows().at(np.arange(0, len(rows()), 10))
    planted = fit_rows(some)
    made = Rows(**{**{each: getattr(some, each) for each in Rows.__slots__}, "us": planted.predict(some)})
    again = fit_rows(made)
    assert errors(made.us, again.predict(made)).p90 < 0.02
    assert np.array_equal(again.x, fit_rows(made).x)


def test_coverage_counts_rows_that_lie_in_the_band_of_others() -> None:
    wide = {"a": np.linspace(-1, 1, 101), "b": np.linspace(-1, 1, 101), "c": np.full(10, 5.0)}
    found = coverage(wide)
    assert found["c"] == 0.0
    assert found["a"] > 0.5
    low, high = interval({"a": wide["a"]})
    assert (np.log(low), np.log(high)) == pytest.approx((-0.8, 0.8), abs=0.03)
