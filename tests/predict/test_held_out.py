"""What is judged has no part in the fit: neither its rows, nor its times, nor a fit that saw them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tests.campaigns.measured import problem_fit, problem_regimes
from tests.campaigns.measured.measured_rows import Rows, read_rows
from tests.campaigns.measured.problem_fit import begin, fit_rows, folds, held_out, predict_held_out, splits
from tests.campaigns.measured.problem_regimes import (
    EDGES,
    WAYS,
    Mask,
    figures,
    groups_of,
    judge,
    quantile,
    regime_name,
    regime_of,
    regimes,
    table,
    weigh,
)
from tests.shared import shared

pytestmark = pytest.mark.thorough  # runs for seconds


@cache
def rows() -> Rows:
    """A thirtieth of those that name their tile."""
    shared("measured/measured.csv.gz")
    every = read_rows("MI355X", None)
    return every.at(np.arange(0, len(every), 30))


def slower(some: Rows, where: Mask) -> Rows:
    return replace(some, us=np.where(where, some.us * 7, some.us))


def test_a_fit_begins_at_the_same_numbers_whatever_was_measured() -> None:
    some = rows()
    first = begin(some)
    assert np.array_equal(first.x, begin(slower(some, np.ones(len(some), bool))).x)
    half = begin(some.at(np.arange(0, len(some), 2))).named
    assert {name: half[name] for name in half} == {name: first.named[name] for name in half}
    assert fit_rows(some).named != first.named  # it goes on from there


@pytest.mark.parametrize("way", WAYS)
def test_times_of_held_out_rows_change_no_bit_of_the_fit(way: str) -> None:
    some = rows()
    for seen, judged in splits(some, way)[:2]:
        before, after = (fit_rows(each.at(seen)) for each in (some, slower(some, judged)))
        assert before.x.tobytes() == after.x.tobytes()
    assert fit_rows(slower(some, judged)).x.tobytes() != fit_rows(some).x.tobytes()


@pytest.mark.parametrize("way", WAYS)
def test_no_fit_has_seen_what_it_is_judged_on(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither for predictions nor for bands; a fit of all rows, or of the fold before, would fail."""
    some = replace(rows(), kernel=np.arange(len(rows())).astype(str))  # every row has a name of its own
    saw: list[set[str]] = []

    def spy(seen: Rows) -> problem_fit.Fit:
        saw.append(set(seen.kernel.tolist()))
        return begin(seen)  # where a fit goes is not what this is about

    monkeypatch.setattr(problem_fit, "fit_rows", spy)
    groups = groups_of(some, way)
    judged_rows = 0
    for split in splits(some, way):
        judged = some.at(split.judged)
        judged_rows += len(judged)
        saw.clear()
        predict_held_out(some, [split])
        problem_regimes.band_from(some.at(split.seen), way)
        assert len(saw) > 2
        assert all(seen.isdisjoint(judged.kernel.tolist()) for seen in saw)
        left = set(groups[split.judged].tolist())
        members = [name.split("+") if way == "source" else [name] for name in groups[split.seen].tolist()]
        assert all(left.isdisjoint(each) for each in members)
    assert judged_rows == len(some)


def test_what_is_judged_has_no_part_in_what_is_said_of_it() -> None:
    """Prediction and band of a fold stay as they are when its times change; the old fit of shapes included."""
    some = rows()
    out = folds(some.shapes)[1]
    before, after = (judge(each, "shape") for each in (some, slower(some, out)))
    assert np.array_equal(before.low[out], after.low[out])
    assert np.array_equal(before.high[out], after.high[out])
    assert after.off[out] - before.off[out] == pytest.approx(np.log(7))
    plain = [held_out(each) for each in (some, slower(some, out))]
    assert np.array_equal(plain[0].plain[out], plain[1].plain[out])
    assert np.array_equal(plain[0].known[out], plain[1].known[out])


def test_a_row_of_two_sources_is_not_seen_while_one_of_them_is_out() -> None:
    some = rows()
    named = replace(some, source=np.array(["a+b", "b", "a", "c"] * (len(some) // 4 + 1))[: len(some)])
    found = {
        str(groups_of(named, "source")[judged][0]): set(named.source[seen].tolist())
        for seen, judged in splits(named, "source")
    }
    assert found == {"a": {"b", "c"}, "b": {"a", "c"}, "c": {"a", "b", "a+b"}}


def test_regimes_are_counted_by_m() -> None:
    assert regime_of(np.array([1, 2, 16, 17, 64, 65, 256, 257, 1024, 1025])).tolist() == [0, 1, 1, 2, 2, 3, 3, 4, 4, 5]
    assert [regime_name(number) for number in range(len(EDGES) + 1)] == [
        "M = 1", "M 2 to 16", "M 17 to 64", "M 65 to 256", "M 257 to 1,024", "M from 1,025",
    ]  # fmt: skip
    assert sum(int(where.sum()) for name, where in regimes(rows()) if name.startswith("M ")) == len(rows())


def test_a_large_family_weighs_little_more_than_a_small_one() -> None:
    some = rows()
    weight = weigh(some, "family")
    same = regime_of(some.m) == 5
    by_family = [float(weight[same & (some.family == name)].sum()) for name in set(some.family[same].tolist())]
    assert max(by_family) < 1
    assert set(weigh(some, "shape").tolist()) == {1.0}
    assert quantile(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 1.0]), 0.5) == 2.0
    assert quantile(np.array([3.0, 1.0, 2.0]), np.array([8.0, 1.0, 1.0]), 0.5) == pytest.approx(25 / 9)


def test_a_band_keeps_four_of_five_of_every_regime_type_and_split() -> None:
    """Planted errors, ten times as wide where M is small and twice where K is split."""
    some = rows()
    noise = np.sin(np.arange(len(some)) * 12.9898) * 43758.5453 % 1 - 0.5
    off = noise * np.where(some.m <= 16, 0.5, 0.05) * np.where(some.split_k > 1, 2, 1)
    found = problem_regimes.band(some, off, np.ones(len(some)))
    inside = (off >= found.low(some)) & (off <= found.high(some))
    for name, where in regimes(some):
        assert inside[where].mean() == pytest.approx(0.8, abs=0.1), name
    small = some.m <= 16
    assert (found.high(some) - found.low(some))[small].min() > 3 * (found.high(some) - found.low(some))[~small].min()


def test_a_line_says_what_its_rows_say() -> None:
    """Planted errors: every row 10 % slower than predicted, the band from -5 % to +20 %."""
    some = rows()
    ones = np.ones(len(some))
    found = problem_regimes.Judged(np.log(1.1) * ones, np.log(0.95) * ones, np.log(1.2) * ones, ones)
    (first, *_) = regimes(some)
    of_all = figures(some, "shape", found, first[1])
    assert (of_all.median, of_all.p90, of_all.bias, of_all.covered) == pytest.approx((1 / 11, 1 / 11, 1.1, 1.0))
    lines = list(table(some, {"shape": found}))
    assert len(lines) == 2 + len([name for name, where in regimes(some) if where.any()])
    assert "9.1%" in lines[2]
    assert "x1.10 100%" in lines[2]
