"""How good a model of whole kernels is: takes measured and predicted times, gives errors, bands and regret."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rota.predict.predict_problem import KernelWork, times_of
from tests.campaigns.measured.measured_rows import Floats, Rows
from tests.campaigns.measured.problem_fit import Fit, fit_rows, held_out

TUNED = (
    "bf16|-|asm|plain",
    "bf16|-|opus|plain",
    "fp4|1x32|asm",
    "fp8|row|cktile",
    "fp8|row|flydsl",
    "fp8|row|ck|intra3b",
    "int8|row|ck|intra3",
)
"""Families of MI355X that were tuned for large tiles; what a new code generator's kernels are compared with."""
LARGE = 128 * 128
COVERED = 0.8
FEWEST_PAIRS, WINDOW = 200, 0.05


class Errors(NamedTuple):
    """Of |predicted / measured - 1|."""

    rows: int
    median: float
    mean: float
    p90: float

    def __str__(self) -> str:
        return f"{self.rows:6d} rows  median {self.median:6.1%}  mean {self.mean:6.1%}  p90 {self.p90:6.1%}"


class Left(NamedTuple):
    """A left-out family: log(measured / predicted) of its rows."""

    residuals: Floats

    @property
    def bias(self) -> float:
        """The median of measured / predicted."""
        return float(np.exp(np.median(self.residuals)))


class Interval(NamedTuple):
    """Of measured / predicted."""

    low: float
    high: float


def errors(measured: Floats, predicted: Floats) -> Errors:
    """Of many rows."""
    off = np.abs(predicted / measured - 1)
    return Errors(len(off), float(np.median(off)), float(off.mean()), float(np.quantile(off, 0.9)))


def interval(residuals: Mapping[str, Floats], covered: float = COVERED) -> Interval:
    """The middle part of all residuals; every group weighs the same."""
    values = np.concatenate(list(residuals.values()))
    weights = np.concatenate([np.full(len(each), 1 / len(each)) for each in residuals.values()])
    low, high = _quantiles(values, weights, ((1 - covered) / 2, (1 + covered) / 2))
    return Interval(float(np.exp(low)), float(np.exp(high)))


def middle_error(residuals: Mapping[str, Floats]) -> float:
    """The median error, every group weighing the same."""
    values = np.abs(np.expm1(-np.concatenate(list(residuals.values()))))
    weights = np.concatenate([np.full(len(each), 1 / len(each)) for each in residuals.values()])
    return float(_quantiles(values, weights, (0.5,))[0])


def coverage(residuals: Mapping[str, Floats]) -> dict[str, float]:
    """Of each group, how many rows lie inside the interval of all others."""
    found = {}
    for name, own in residuals.items():
        low, high = interval({other: each for other, each in residuals.items() if other != name})
        found[name] = float(np.mean((own >= np.log(low)) & (own <= np.log(high))))
    return found


def _quantiles(values: Floats, weights: Floats, at: tuple[float, ...]) -> list[float]:
    order = np.argsort(values, kind="stable")
    summed = np.cumsum(weights[order]) / weights.sum()
    last = len(values) - 1
    return [float(values[order][min(int(np.searchsorted(summed, each)), last)]) for each in at]


def regret(rows: Rows, predicted: Floats) -> tuple[int, float]:
    """Problems with several measured kernels, and how much longer the model's pick takes than the best, in the mean."""
    problems: dict[str, list[int]] = {}
    for number, name in enumerate(rows.problem.tolist()):
        problems.setdefault(name, []).append(number)
    lost = []
    for numbers in problems.values():
        if len(numbers) > 1:
            pick = numbers[int(np.argmin(predicted[numbers]))]
            lost.append(rows.us[pick] / rows.us[numbers].min() - 1)
    return len(lost), float(np.mean(lost))


def apart(rows: Rows) -> float:
    """From which difference of predicted times on two kernels of a problem are in the right order, four times of five.

    Shapes are held out.  Where too few pairs were measured it is a tenth.
    """
    predicted = held_out(rows).plain
    problems: dict[str, list[int]] = {}
    for number, name in enumerate(rows.problem.tolist()):
        problems.setdefault(name, []).append(number)
    pairs = [pair for numbers in problems.values() for pair in combinations(numbers, 2)]
    pairs = [(one, other) for one, other in pairs if rows.kernel[one] != rows.kernel[other]]
    if len(pairs) < FEWEST_PAIRS:
        return 0.1
    one, other = np.array(pairs).T
    said, real = np.log(predicted[one] / predicted[other]), np.log(rows.us[one] / rows.us[other])
    right = (said > 0) == (real > 0)
    for gap in (0.02, 0.04, 0.06, 0.08, 0.1, 0.12, 0.15, 0.2, 0.3):
        near = (np.abs(said) >= gap) & (np.abs(said) < gap + WINDOW)
        if near.sum() >= FEWEST_PAIRS // 4 and right[near].mean() >= COVERED:
            return gap
    return 0.3


def large(rows: Rows) -> NDArray[np.bool_]:
    """Tiles of at least 128 x 128, K not split: what rota's own kernels are."""
    chosen: NDArray[np.bool_] = (rows.tile_m * rows.tile_n >= LARGE) & (rows.split_k == 1)
    return chosen


def left_out(rows: Rows, clocks: float | None = None) -> dict[str, Left]:
    """Each tuned family predicted as the product would: by a fit without it, with the others' middle share and start.

    `clocks` are rota's own of a bf16 loop of 256 x 256 x 64; the other rows have the matrix units' clocks.
    """
    found = {}
    for name in TUNED:
        fit = fit_rows(rows.at(rows.family != name))
        others = tuple(each for each in TUNED if each != name)
        own = rows.at((rows.family == name) & large(rows))
        found[name] = as_product(fit, own, others, clocks)
    return found


def as_product(fit: Fit, own: Rows, others: tuple[str, ...], clocks: float | None = None) -> Left:
    """Rows predicted with what is in the middle of other families."""
    at = fit.parameters(own)._replace(**middle_of(fit, others))
    return Left(np.log(own.us / np.asarray(times_of(with_clocks(own, clocks), at).total)))


def middle_of(fit: Fit, families: tuple[str, ...]) -> dict[str, float]:
    """What a new kernel gets: the middle of tuned families, and of a split the middle of all."""
    named = fit.named
    return {
        "share": fit.middle("share", families),
        "start": named["start"] * fit.middle("start", families),
        "trip": named["trip"] * fit.middle("trip", families),
        "split_start": named["split_start"] * fit.middle("split_start", fit.families),
    }


def with_clocks(rows: Rows, clocks: float | None) -> KernelWork:
    """What the rows do, with rota's own clocks where it has a loop of that tile."""
    if clocks is None:
        return rows.work
    mine = (rows.element == "bf16") & (rows.tile_m == 256) & (rows.tile_n == 256)
    loop: Any = np.where(mine, clocks * rows.tile_k / 64, rows.work.loop)  # arrays stand for numbers
    return rows.work._replace(loop=loop)
