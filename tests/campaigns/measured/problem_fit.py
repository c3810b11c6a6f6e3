"""The fit of whole-kernel times: parameters of the device and of each family of kernels, from measured rows.

Least squares of log(predicted / measured) with a soft loss, by Gauss-Newton steps with damping, on the logarithms of
the parameters, inside bounds.  A fit gets the rows that it may see, and nothing else: it begins at the numbers of
`PARAMETERS`, whatever was fitted before, and nothing is drawn, so that a table always gives the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rota.predict.predict_problem import ModelParameters, TimeParts, times_of
from tests.campaigns.measured.measured_rows import Floats, Measured, Rows


class Parameter(NamedTuple):
    """A field of the model that is fitted for the device, for each type or for each family.

    What a family has is a factor where the device has the field, too.  `prior` is how much a departure from `first`
    counts, in rows that are off by as much: what few rows speak of stays near `first`.
    """

    field: str
    of: str
    first: float
    prior: float = 0.0
    highest: float = 150.0


DEVICE, TYPE, FAMILY = "device", "type", "family"
PARAMETERS = (
    Parameter("start", DEVICE, 3.5),
    Parameter("feed", DEVICE, 28.0),
    Parameter("trip", DEVICE, 700.0, 2.0, 5000.0),
    Parameter("hbm", DEVICE, 0.8, 2.0, 1.0),  # as part of the peak
    Parameter("store", DEVICE, 3.5),
    Parameter("split_start", DEVICE, 1.5),
    Parameter("split_traffic", DEVICE, 2.0),
    Parameter("f_busy", TYPE, 0.8, 0.33, 1.0),  # as part of f_max
    Parameter("share", FAMILY, 0.85, 0.33, 1.0),
    Parameter("start", FAMILY, 1.0, 0.15),
    Parameter("trip", FAMILY, 1.0, 0.3),
    Parameter("split_start", FAMILY, 1.0, 0.3),
)
"""Times show only the product of clock and share well, so both are held near where the fit begins."""
LEAST = 0.018
SOFT = 0.1
"""Errors beyond 10 % count less than their square."""
FEW = 5
"""Rows of a kernel with which half of how far off it was is believed."""
STEPS = 40
_STEP = 1e-5
_ENOUGH = 1e-5  # of the cost
_GIVEN_UP = 1e4  # damping at which no shorter step is tried


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Logarithms of the parameters, in the order of `PARAMETERS`, each for every type or family that was seen."""

    device: Measured
    elements: tuple[str, ...]
    families: tuple[str, ...]
    x: Floats

    @property
    def named(self) -> dict[str, float]:
        """Every parameter by name."""
        names = [f"{each.field}|{whose}" if whose else each.field for each, whose in self.each()]
        return dict(zip(names, np.exp(self.x).tolist(), strict=True))

    def each(self) -> Iterator[tuple[Parameter, str]]:
        """The parameters, and whose they are."""
        whose = {DEVICE: ("",), TYPE: self.elements, FAMILY: self.families}
        return ((parameter, name) for parameter in PARAMETERS for name in whose[parameter.of])

    def middle(self, what: str, of: tuple[str, ...]) -> float:
        """The median of a family's parameter."""
        found = self.named
        return float(np.median([found[f"{what}|{family}"] for family in of]))

    def parameters(self, rows: Rows) -> ModelParameters:
        """For each row; a family that the fit didn't see has the middle of all others."""
        return _parameters(self.x, _Where(self, rows))

    def parts(self, rows: Rows) -> TimeParts:
        """The model's times, part by part."""
        return times_of(rows.work, self.parameters(rows))

    def predict(self, rows: Rows) -> Floats:
        """Microseconds."""
        return np.asarray(self.parts(rows).total)


class _Where:
    """Which value of each parameter a row has: `lanes`, where -1 is the middle of all, and `blocks` of x."""

    def __init__(self, fit: Fit, rows: Rows) -> None:
        self.f_max = fit.device.f_max
        element, family = _index(fit.elements, rows.element), _index(fit.families, rows.family)
        lanes = {DEVICE: np.zeros(len(rows), int), TYPE: element, FAMILY: family}
        sizes = {DEVICE: 1, TYPE: len(fit.elements), FAMILY: len(fit.families)}
        ends = np.cumsum([sizes[each.of] for each in PARAMETERS]).tolist()
        self.blocks = [slice(end - sizes[each.of], end) for each, end in zip(PARAMETERS, ends, strict=True)]
        self.lanes = [lanes[each.of] for each in PARAMETERS]


def _index(known: tuple[str, ...], values: NDArray[np.str_]) -> NDArray[np.int64]:
    numbers = {name: number for number, name in enumerate(known)}
    return np.array([numbers.get(str(value), -1) for value in values])


def _parameters(x: Floats, where: _Where) -> ModelParameters:
    values = np.exp(x)
    found: dict[str, Any] = {"f_max": where.f_max}  # arrays stand for numbers
    for parameter, block, lane in zip(PARAMETERS, where.blocks, where.lanes, strict=True):
        own = values[block]
        found[parameter.field] = np.where(lane >= 0, own[lane], np.median(own)) * found.get(parameter.field, 1.0)
    return ModelParameters(**found)


def begin(rows: Rows) -> Fit:
    """Where a fit of these rows starts: the same numbers for all rows of a device, whatever their times."""
    elements = tuple(sorted(set(rows.element.tolist())))
    families = tuple(sorted(set(rows.family.tolist())))
    fit = Fit(device=rows.device, elements=elements, families=families, x=np.zeros(0))
    first = [each.first * _scale(each, rows.device) for each, _ in fit.each()]
    return Fit(device=rows.device, elements=elements, families=families, x=np.log(first))


def _scale(parameter: Parameter, device: Measured) -> float:
    return {"f_busy": device.f_max, "hbm": device.peak}.get(parameter.field, 1.0)


def fit_rows(rows: Rows) -> Fit:
    """The parameters that fit best; kinds with many rows weigh less than in proportion."""
    first = begin(rows)
    low = np.full(len(first.x), np.log(LEAST))
    high = np.log([each.highest * _scale(each, rows.device) for each, _ in first.each()])
    problem = _Problem(first, rows)
    x = _descend(problem, first.x, low, high)
    return Fit(device=rows.device, elements=first.elements, families=first.families, x=x)


class _Problem:
    """Residuals of all rows, and how they change: a family's parameters touch its own rows only."""

    def __init__(self, first: Fit, rows: Rows) -> None:
        self.where, self.rows, self.first = _Where(first, rows), rows, first.x
        self.y = np.log(rows.us)
        _, back, counts = np.unique(rows.kind, return_inverse=True, return_counts=True)
        weight = counts[back] ** -0.25
        self.weight = weight / weight.mean()
        self.prior = np.array([each.prior for each, _ in first.each()])

    def log_time(self, parameters: ModelParameters) -> Floats:
        logs: Floats = np.log(np.asarray(times_of(self.rows.work, parameters).total))
        return logs

    def residuals(self, x: Floats) -> Floats:
        rows = (self.log_time(_parameters(x, self.where)) - self.y) * self.weight
        return np.concatenate([rows, self.prior * (x - self.first)])

    def cost(self, x: Floats) -> float:
        r = self.residuals(x) / SOFT
        return float(np.sum(np.sqrt(1 + r * r) - 1))

    def normal(self, x: Floats) -> tuple[Floats, Floats]:
        """Gradient and curvature (J^T w J) of the cost at x."""
        at = _parameters(x, self.where)
        base = self.log_time(at)
        r = self.residuals(x)
        scaled = r / SOFT
        soft = 1 / np.sqrt(1 + scaled * scaled)
        count, size = len(base), len(x)
        jacobian = np.zeros((count + size, size))
        lane = np.arange(count)
        slopes = {name: self._slope(at, base, name) for name in {each.field for each in PARAMETERS}}
        for parameter, block, of in zip(PARAMETERS, self.where.blocks, self.where.lanes, strict=True):
            jacobian[lane, block.start + of] = slopes[parameter.field]
        jacobian[:count] *= self.weight[:, None]
        jacobian[count:] = np.diag(self.prior)
        weighted = jacobian * soft[:, None]
        return weighted.T @ r, weighted.T @ jacobian

    def _slope(self, at: ModelParameters, base: Floats, name: str) -> Floats:
        moved = at._replace(**{name: getattr(at, name) * np.exp(_STEP)})
        slope: Floats = (self.log_time(moved) - base) / _STEP
        return slope


def _descend(problem: _Problem, x: Floats, low: Floats, high: Floats) -> Floats:
    damping, cost = 1e-3, problem.cost(x)
    for _ in range(STEPS):
        gradient, curvature = problem.normal(x)
        free = ~(((x <= low) & (gradient > 0)) | ((x >= high) & (gradient < 0)))
        better = False
        while not better and damping < _GIVEN_UP:
            inner = curvature[np.ix_(free, free)]
            step = np.zeros_like(x)
            scale = np.diag(np.diag(inner) + 1e-9)
            step[free] = np.linalg.solve(inner + damping * scale, -gradient[free])
            moved = np.clip(x + np.clip(step, -1, 1), low, high)
            new = problem.cost(moved)
            better = new < cost
            damping = max(damping / 5, 1e-9) if better else damping * 4
        if not better:
            break
        done = cost - new < _ENOUGH * cost
        x, cost = moved, new
        if done:
            break
    return x


def folds(groups: NDArray[np.str_], count: int = 5) -> list[NDArray[np.bool_]]:
    """Which rows each fold leaves out: whole groups, the largest first, each to the fold that has the fewest rows."""
    found, back, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    held = np.zeros(count)
    fold = np.zeros(len(found), int)
    for number in np.argsort(-sizes, kind="stable"):
        fold[number] = int(np.argmin(held))
        held[fold[number]] += sizes[number]
    return [fold[back] == number for number in range(count) if (fold[back] == number).any()]


class Split(NamedTuple):
    """Rows that a fit sees, and rows that it is judged on; some may be neither."""

    seen: NDArray[np.bool_]
    judged: NDArray[np.bool_]


def splits(rows: Rows, way: str, count: int | None = None) -> list[Split]:
    """Ways to hold rows out: by "shape" (N and K), "family" or "source".

    In as many folds as said; without a number five folds of shapes, and every family or source by itself.
    """
    if way == "shape":
        return [Split(~out, out) for out in folds(rows.shapes, count or 5)]
    if way == "family":
        families = rows.family
        return [Split(~out, out) for out in folds(families, count or len(set(families.tolist())))]
    # A row that several files recorded is judged with the first of them, and seen only where none of them is out.
    first = np.array([name.partition("+")[0] for name in rows.source.tolist()])
    found = []
    for out in folds(first, count or len(set(first.tolist()))):
        names = set(first[out].tolist())
        found.append(Split(np.array([names.isdisjoint(name.split("+")) for name in rows.source.tolist()]), out))
    return found


def predict_held_out(rows: Rows, held: Sequence[Split]) -> Floats:
    """Each judged row's prediction by a fit that didn't see it, NaN for all others."""
    predicted = np.full(len(rows), np.nan)
    for seen, judged in held:
        predicted[judged] = fit_rows(rows.at(seen)).predict(rows.at(judged))
    return predicted


class HeldOut(NamedTuple):
    """Each row's prediction by a fit that didn't see its shape; `known` with what other rows say of its kernel."""

    plain: Floats
    known: Floats


def held_out(rows: Rows, count: int = 5) -> HeldOut:
    """Shapes held out."""
    plain, known = np.zeros(len(rows)), np.zeros(len(rows))
    for is_seen, out in splits(rows, "shape", count):
        seen, unseen = rows.at(is_seen), rows.at(out)
        fit = fit_rows(seen)
        plain[out] = fit.predict(unseen)
        known[out] = plain[out] * _factors(seen, fit, unseen)
    return HeldOut(plain, known)


def _factors(seen: Rows, fit: Fit, unseen: Rows) -> Floats:
    """How far off a kernel was on other shapes; with few rows, less than that."""
    off: dict[str, list[float]] = {}
    for name, each in zip(seen.kernel.tolist(), np.log(seen.us / fit.predict(seen)).tolist(), strict=True):
        off.setdefault(name, []).append(each)
    factor = {name: float(np.median(each)) * len(each) / (len(each) + FEW) for name, each in off.items()}
    return np.exp([factor.get(name, 0.0) for name in unseen.kernel.tolist()])
