"""Which candidates to measure: by shape the fewest that contain the best one with a stated probability, and a plan.

A predicted time is off by an error that kernels of one family share on a problem, and by one of the kernel's own. In
the logarithm of the time both are normal, but half of all problems are predicted well, the others three times worse.
From that follow, by integrals on a grid and without any draw, how likely each candidate is to be the fastest, and how
much longer the best of those that are measured takes than the best of all.

A plan spends a number of runs on many shapes. It goes where a run is expected to save most, and says what is expected
to be lost before and after it.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SURE = 0.95
"""The most that a shortlist can be asked for: the tails of the errors are not known better."""
MOST = 8
"""Candidates of a shape that a plan measures at most."""
_WIDE, _FINE = 5.0, 0.4
"""Standard deviations to either side on the grid, and from one point of it to the next."""
_SHARED_WIDE = 3.2
FAR = 6.0
"""Candidates that are further from the first than this many standard deviations are never the fastest."""
_SLOPE, _CUBIC = 1.5976, 0.07056
_PARTS = (0.4, 1.3)
"""The two parts of the mixture, of both standard deviations. An estimate: the middle of the errors of measured kernels
is about half as wide as a normal distribution with their tails would have it."""


class ErrorScale(NamedTuple):
    """Standard deviations of log(measured / predicted): what kernels of a family share on a problem, and the rest.

    `slope` is how much of a predicted difference, as a logarithm, shows in measured ones: less than all of it where the
    candidates are those that won something, for these are closer to each other than the model knows.
    """

    family: float
    own: float
    slope: float = 1.0

    @property
    def total(self) -> float:
        return float(np.hypot(self.family, self.own))

    @property
    def parts(self) -> tuple[ErrorScale, ...]:
        """Those of problems that are predicted well, and of the others."""
        return tuple(self._replace(family=part * self.family, own=part * self.own) for part in _PARTS)


class Candidates(NamedTuple):
    """Predicted times of the kernels that a problem can have, and the number of each one's family."""

    us: Floats
    family: Ints
    scale: ErrorScale

    @property
    def logs(self) -> Floats:
        """The expected log(time), up to a number that all share."""
        logs: Floats = self.scale.slope * np.log(self.us)
        return logs

    @property
    def near(self) -> Ints:
        """Those that may be the fastest."""
        return np.flatnonzero(self.logs - self.logs.min() <= FAR * self.scale.total)


def chances(of: Candidates) -> Floats:
    """How likely each candidate is to be the fastest of all; they add up to 1."""
    found = np.zeros(len(of.us))
    near = of.near
    for scale in of.scale.parts:
        at = _integrate(of.logs[near], of.family[near], scale)
        # Its own family at one node of the shared error, without itself; all other families whatever their error.
        rest = at.alive.sum(axis=1, keepdims=True) - at.alive
        own = np.exp(at.shared[:, :, at.family] - np.log1p(-at.below)) * at.density
        weighted = (own * at.weights[None, :, None]).sum(axis=1) * np.exp(rest[:, at.family])
        found[near] += weighted.sum(axis=0) / weighted.sum()
    found /= len(of.scale.parts)
    return found


class _Integral(NamedTuple):
    """What is needed of candidates on a grid of log(time): `alive` is how likely each family has none below a time."""

    step: float
    grid: Floats
    weights: Floats  # of the nodes of the shared error
    alive: Floats  # log, by time and family
    shared: Floats  # log of the same at each node, by time, node and family
    below: Floats  # by time, node and candidate
    density: Floats
    family: Ints


def _integrate(logs: Floats, family: Ints, scale: ErrorScale) -> _Integral:
    reach = _WIDE * scale.total
    grid = np.linspace(logs.min() - reach, logs.min() + reach, 2 * round(reach / (_FINE * scale.own)) + 1)
    many = round(_SHARED_WIDE * scale.family / scale.own)
    nodes = np.linspace(-_SHARED_WIDE, _SHARED_WIDE, 2 * many + 1) if many else np.zeros(1)
    weights = np.exp(-nodes * nodes / 2)
    weights /= weights.sum()
    _, numbers = np.unique(family, return_inverse=True)
    x = (grid[:, None, None] - logs - scale.family * nodes[None, :, None]) / scale.own
    # The normal distribution to four digits, by E. Page's formula of 1977, which needs no error function.
    below = 1 / (1 + np.exp(-np.clip(x * (_SLOPE + _CUBIC * x * x), -30, 30)))
    density = below * (1 - below) * (_SLOPE + 3 * _CUBIC * x * x)
    shared = np.zeros((len(grid), len(nodes), int(numbers.max()) + 1))
    for each in range(shared.shape[2]):
        shared[:, :, each] = np.log1p(-below[:, :, numbers == each]).sum(axis=2)
    alive = np.log((np.exp(shared) * weights[None, :, None]).sum(axis=1) + 1e-300)
    return _Integral(float(grid[1] - grid[0]), grid, weights, alive, shared, below, density, numbers)


class Shortlist(NamedTuple):
    """Candidates by number, the likeliest first, and how likely the fastest of all is among them."""

    numbers: tuple[int, ...]
    chance: float


def shortlist(of: Candidates, stated: float, each: Floats | None = None) -> Shortlist:
    """The fewest candidates among which the fastest is with the stated probability; `each` are their chances."""
    each = chances(of) if each is None else each
    order = np.lexsort((of.us, -each))
    summed = np.cumsum(each[order])
    count = int(np.searchsorted(summed, min(stated, SURE))) + 1
    return Shortlist(tuple(order[:count].tolist()), float(summed[count - 1]))


def measuring_order(of: Candidates) -> list[int]:
    """The candidate that is predicted to be the fastest, then the others, the likeliest first."""
    each = chances(of)
    each[int(np.argmin(of.us))] = 2.0
    order: list[int] = np.lexsort((of.us, -each)).tolist()
    return order


def expected_losses(of: Candidates, order: Sequence[int]) -> Floats:
    """How much longer than the fastest of all the choice takes, expected, if the first 0, 1, 2, ... are measured.

    With none or one measured the first is chosen as predicted; of more, the one that turns out to be fastest.
    """
    best = _expected_least(of, of.near)
    chosen = [float(of.logs[order[0]])] * 2
    for count in range(2, len(order) + 1):
        chosen.append(_expected_least(of, np.array(order[:count])))
    found: Floats = np.expm1(np.maximum.accumulate(np.maximum(np.array(chosen) - best, 0)[::-1])[::-1])
    return found


def _expected_least(of: Candidates, some: Ints) -> float:
    """The expected least log(time) of some candidates."""
    found = []
    for scale in of.scale.parts:
        at = _integrate(of.logs[some], of.family[some], scale)
        found.append(float(at.grid[0] + np.exp(at.alive.sum(axis=1)).sum() * at.step - at.step / 2))
    return float(np.mean(found))


class PlannedRuns(NamedTuple):
    """What a plan measures of a shape, and what is expected to be lost on it without and with that."""

    numbers: tuple[int, ...]
    before: float
    after: float


class RunPlan(NamedTuple):
    """Runs by shape, in the order of the shapes."""

    shapes: tuple[PlannedRuns, ...]

    @property
    def runs(self) -> int:
        return sum(len(each.numbers) for each in self.shapes)

    @property
    def before(self) -> float:
        """The expected loss, the mean over the shapes."""
        return float(np.mean([each.before for each in self.shapes]))

    @property
    def after(self) -> float:
        return float(np.mean([each.after for each in self.shapes]))


def plan_runs(problems: Sequence[Candidates], runs: int) -> RunPlan:
    """Spend a number of runs where each is expected to save most.

    A shape's first two runs go together: one alone decides nothing. Steps of several runs are taken where more of them
    save more per run.
    """
    orders = [measuring_order(of)[:MOST] for of in problems]
    losses = [expected_losses(of, order) for of, order in zip(problems, orders, strict=True)]
    taken = [0] * len(problems)
    heap: list[tuple[float, int, int]] = []
    for number, loss in enumerate(losses):
        _offer(heap, number, loss, 0)
    left = runs
    while heap and left:
        _, number, count = heapq.heappop(heap)
        if count - taken[number] <= left:
            left -= count - taken[number]
            taken[number] = count
            _offer(heap, number, losses[number], count)
    planned: list[Any] = []
    for order, loss, count in zip(orders, losses, taken, strict=True):
        planned.append(PlannedRuns(tuple(order[:count]), float(loss[0]), float(loss[count])))
    return RunPlan(tuple(planned))


def _offer(heap: list[tuple[float, int, int]], number: int, loss: Floats, taken: int) -> None:
    """The next step of a shape: up to which count a run saves most."""
    rates = [((loss[taken] - loss[count]) / (count - taken), count) for count in range(max(2, taken + 1), len(loss))]
    if rates:
        rate, count = max(rates, key=lambda each: (each[0], -each[1]))
        if rate > 0:
            heapq.heappush(heap, (-float(rate), number, count))
