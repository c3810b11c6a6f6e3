"""The fit of whole-kernel times: takes measured rows, gives parameters of the device and of each family of kernels.

Least squares of log(predicted / measured) with a soft loss, by Gauss-Newton steps with damping, on the logarithms of
the parameters, inside bounds; nothing is drawn, so that a table always gives the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rota.predict.predict_problem import ModelParameters, TimeParts, times_of
from tests.campaigns.measured.measured_rows import Floats, Measured, Rows

SHARED = {"start": 3.5, "feed": 28.0, "store": 3.5, "split_start": 1.5, "split_traffic": 2.0}
"""Parameters that all rows of a device have in common, and where the fit begins."""
SOFT = 0.1
"""Errors beyond 10 % count less than their square."""
FIRST = {"f_busy": 0.8, "share": 0.85, "start": 1.0}
"""Where the fit begins for a type (as part of f_max) and for a family."""
PRIOR = {"f_busy": 0.33, "share": 0.33, "start": 0.15}
"""How much a departure from there counts, in rows that are off by as much.

Times show only the product of clock and share well: one that few rows speak of stays near where the fit begins.
"""
FEW = 5
"""Rows of a kernel with which half of how far off it was is believed."""
_STEP = 1e-5
_ENOUGH = 1e-5  # of the cost
_GIVEN_UP = 1e4  # damping at which no shorter step is tried


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Logarithms of the parameters: the shared ones, f_busy of each type, share and start factor of each family."""

    device: Measured
    elements: tuple[str, ...]
    families: tuple[str, ...]
    x: Floats

    @property
    def named(self) -> dict[str, float]:
        """Every parameter by name."""
        return dict(zip(names(self.elements, self.families), np.exp(self.x).tolist(), strict=True))

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


def names(elements: tuple[str, ...], families: tuple[str, ...]) -> list[str]:
    """What the parameters are called, in their order."""
    return [
        *SHARED,
        *(f"f_busy|{each}" for each in elements),
        *(f"share|{each}" for each in families),
        *(f"start|{each}" for each in families),
    ]


class _Where:
    """Which parameter each row has; -1 where the fit has none."""

    def __init__(self, fit: Fit, rows: Rows) -> None:
        self.device = fit.device
        self.elements, self.families = len(fit.elements), len(fit.families)
        self.element = _index(fit.elements, rows.element)
        self.family = _index(fit.families, rows.family)


def _index(known: tuple[str, ...], values: NDArray[np.str_]) -> NDArray[np.int64]:
    numbers = {name: number for number, name in enumerate(known)}
    return np.array([numbers.get(str(value), -1) for value in values])


def _parameters(x: Floats, where: _Where) -> ModelParameters:
    values = np.exp(x)
    start, feed, store, split_start, split_traffic = values[: len(SHARED)]
    own = values[len(SHARED) :]
    busy = own[: where.elements]
    share, factor = own[where.elements :].reshape(2, where.families)

    def each(of: Floats, at: NDArray[np.int64]) -> Any:  # arrays stand for numbers
        return np.where(at >= 0, of[at], np.median(of))

    return ModelParameters(
        start=start * each(factor, where.family),
        share=each(share, where.family),
        feed=feed,
        f_busy=each(busy, where.element),
        f_max=where.device.f_max,
        hbm=where.device.hbm,
        store=store,
        split_start=split_start,
        split_traffic=split_traffic,
    )


def fit_rows(rows: Rows, begin: Fit | None = None, *, steps: int = 40) -> Fit:
    """The parameters that fit best; kinds with many rows weigh less than in proportion."""
    elements = tuple(sorted(set(rows.element.tolist())))
    families = tuple(sorted(set(rows.family.tolist())))
    every = names(elements, families)
    first = np.log([SHARED.get(name) or _first(name, rows.device.f_max) for name in every])
    low = np.full(len(every), -4.0)
    high = np.array([_highest(name, rows.device.f_max) for name in every])
    x = first.copy()
    if begin is not None:
        known = dict(zip(names(begin.elements, begin.families), begin.x, strict=True))
        x = np.array([known.get(name, value) for name, value in zip(every, first, strict=True)])
    x = np.clip(x, low, high)
    fit = Fit(device=rows.device, elements=elements, families=families, x=x)
    problem = _Problem(fit, rows, first)
    return Fit(device=rows.device, elements=elements, families=families, x=_descend(problem, x, low, high, steps))


def _first(name: str, f_max: float) -> float:
    kind = name.partition("|")[0]
    return FIRST[kind] * (f_max if kind == "f_busy" else 1.0)


def _highest(name: str, f_max: float) -> float:
    kind, bar, _ = name.partition("|")
    if not bar:
        return 5.0
    return {"f_busy": float(np.log(f_max)), "share": 0.0}.get(kind, 5.0)


class _Problem:
    """Residuals of all rows, and how they change: a family's parameters touch its own rows only."""

    def __init__(self, fit: Fit, rows: Rows, first: Floats) -> None:
        self.where, self.rows, self.first = _Where(fit, rows), rows, first
        self.y = np.log(rows.us)
        _, back, counts = np.unique(rows.kind, return_inverse=True, return_counts=True)
        weight = counts[back] ** -0.25
        self.weight = weight / weight.mean()
        kinds = [name.partition("|") for name in names(fit.elements, fit.families)]
        self.prior = np.array([PRIOR.get(kind, 0.0) if bar else 0.0 for kind, bar, _ in kinds])

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
        for number, name in enumerate(SHARED):
            jacobian[:count, number] = self._slope(at, base, name)
        lane = np.arange(count)
        offset = len(SHARED)
        parts = (("f_busy", self.where.element, self.where.elements), ("share", self.where.family, self.where.families))
        for name, index, many in parts:
            jacobian[lane, offset + index] = self._slope(at, base, name)
            offset += many
        jacobian[lane, offset + self.where.family] = jacobian[:count, 0]  # as the shared start
        jacobian[:count] *= self.weight[:, None]
        jacobian[count:] = np.diag(self.prior)
        weighted = jacobian * soft[:, None]
        return weighted.T @ r, weighted.T @ jacobian

    def _slope(self, at: ModelParameters, base: Floats, name: str) -> Floats:
        moved = at._replace(**{name: getattr(at, name) * np.exp(_STEP)})
        slope: Floats = (self.log_time(moved) - base) / _STEP
        return slope


def _descend(problem: _Problem, x: Floats, low: Floats, high: Floats, steps: int) -> Floats:
    damping, cost = 1e-3, problem.cost(x)
    for _ in range(steps):
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
    return [fold[back] == number for number in range(count)]


class HeldOut(NamedTuple):
    """Each row's prediction by a fit that didn't see its group; `known` with what other rows say of its kernel."""

    plain: Floats
    known: Floats


def held_out(rows: Rows, groups: NDArray[np.str_], count: int = 5) -> HeldOut:
    """Fit without each fold, predict it.  Every fit begins anew: the fold before saw what this one judges."""
    plain, known = np.zeros(len(rows)), np.zeros(len(rows))
    for out in folds(groups, count):
        seen, unseen = rows.at(~out), rows.at(out)
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
