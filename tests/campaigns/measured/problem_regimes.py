"""How far off whole kernels are predicted, by regime: errors, bias and coverage on measured rows.

    python -m benchmarks.fit_measured --regimes [MI355X]

Rows are held out by shape (N and K), by family of kernels and by source (the file of one network).  Every prediction is
by a fit that saw none of what it is judged on, and began where every fit begins.  So is every band: it is made of the
errors that the seen rows have when they are held out in the same way among themselves.

Rows of one family or source share an error.  So there a family or source of n rows weighs n / (n + 10), about the same
whether it has 50 rows or 12,000; where shapes are held out, rows weigh the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tests.campaigns.measured.measured_rows import Floats, Rows
from tests.campaigns.measured.problem_fit import predict_held_out, splits

Mask = NDArray[np.bool_]

EDGES = (1, 16, 64, 256, 1024)
"""The largest M of each regime but the last."""
WAYS = ("shape", "family", "source")
PLURAL = {"shape": "shapes", "family": "families", "source": "sources"}
ELEMENTS = ("bf16", "fp8", "fp4", "int8")
COVERED = 0.8
SHARED_ERROR = 10.0
"""Rows of a family that count half as much as many of them do."""
TURNS = 6
FEW = (1.0, 8.0, 8.0)
"""Families or sources of which half is believed, of a regime, a type and a split; others change coverage by a few %."""
INNER = 7
"""Folds among the rows that a fit sees, from which its band is made."""


class Judged(NamedTuple):
    """Each row's log(measured / predicted), its band, and what it weighs; NaN where a row was not judged."""

    off: Floats
    low: Floats
    high: Floats
    weight: Floats


class Figures(NamedTuple):
    """Of some rows: median and nine tenths of |predicted / measured - 1|, median of measured / predicted, coverage."""

    rows: int
    groups: int
    median: float
    p90: float
    bias: float
    covered: float

    def __str__(self) -> str:
        return f"{self.median:6.1%} {self.p90:6.1%} x{self.bias:4.2f} {self.covered:4.0%}"


def regime_of(m: Floats) -> NDArray[np.int64]:
    """The number of each row's regime."""
    return np.searchsorted(np.array(EDGES), m)


def regime_name(number: int) -> str:
    if number == 0:
        return "M = 1"
    least = f"{EDGES[number - 1] + 1:,}"
    return f"M {least} to {EDGES[number]:,}" if number < len(EDGES) else f"M from {least}"


def groups_of(rows: Rows, way: str) -> NDArray[np.str_]:
    """What rows have in common that are held out together."""
    if way == "shape":
        return rows.shapes
    return rows.family if way == "family" else np.array([name.partition("+")[0] for name in rows.source.tolist()])


def weigh(rows: Rows, way: str) -> Floats:
    """Of each row, by the number of rows in its group and regime."""
    if way == "shape":
        return np.ones(len(rows))
    cells = np.char.add(np.char.add(groups_of(rows, way), "|"), regime_of(rows.m).astype(str))
    _, back, counts = np.unique(cells, return_inverse=True, return_counts=True)
    weight: Floats = 1 / (counts[back] + SHARED_ERROR)
    return weight


def quantile(values: Floats, weights: Floats, at: float) -> float:
    """A weighted quantile, with half of a value's own weight on either side of it."""
    order = np.argsort(values, kind="stable")
    own = weights[order]
    middle = (np.cumsum(own) - own / 2) / own.sum()
    return float(np.interp(at, middle, values[order]))


def judge(rows: Rows, way: str) -> Judged:
    """All rows, held out one way."""
    off, lowest, highest = (np.full(len(rows), np.nan) for _ in range(3))
    found = Judged(off, lowest, highest, weigh(rows, way))
    for split in splits(rows, way):
        unseen = rows.at(split.judged)
        predicted = predict_held_out(rows, [split])[split.judged]
        own = band_from(rows.at(split.seen), way)
        found.off[split.judged] = np.log(unseen.us / predicted)
        found.low[split.judged], found.high[split.judged] = own.low(unseen), own.high(unseen)
    return found


class Bound(NamedTuple):
    """One end of a band: the sum of what is known of a row's regime, its type, and whether K is split."""

    known: tuple[dict[str, float], ...]

    def __call__(self, rows: Rows) -> Floats:
        total: Floats = np.zeros(len(rows))
        for known, values in zip(self.known, _traits(rows), strict=True):
            total = total + np.array([known.get(value, 0.0) for value in values.tolist()])
        return total


class Band(NamedTuple):
    """Between which log(measured / predicted) four of five rows lie."""

    low: Bound
    high: Bound


def _traits(rows: Rows) -> tuple[NDArray[np.str_], ...]:
    return regime_of(rows.m).astype(str), rows.element, (rows.split_k > 1).astype(str)


def band_from(seen: Rows, way: str) -> Band:
    """By the errors of the seen rows when they are held out among themselves."""
    off = np.log(seen.us / predict_held_out(seen, splits(seen, way, INNER)))
    return band(seen, off, weigh(seen, way))


def band(rows: Rows, off: Floats, weight: Floats) -> Band:
    """Quantiles of the errors by regime; what these leave of a type, and of a split, is added to them, in turns."""
    return Band(*(_bound(rows, off, weight, at) for at in ((1 - COVERED) / 2, (1 + COVERED) / 2)))


def _bound(rows: Rows, off: Floats, weight: Floats, at: float) -> Bound:
    traits = [np.unique(values, return_inverse=True) for values in _traits(rows)]
    known = [np.zeros(len(names)) for names, _ in traits]
    whole = quantile(off, weight, at)
    for _ in range(TURNS):
        for number, (names, back) in enumerate(traits):
            rest = off - sum(each[other] for each, (_, other) in zip(known, traits, strict=True)) + known[number][back]
            for level in range(len(names)):
                own = back == level
                many = float(weight[own].sum())
                believed = many / (many + FEW[number])
                middle = whole if number == 0 else 0.0  # where what few groups say leaves it
                known[number][level] = middle + (quantile(rest[own], weight[own], at) - middle) * believed
    pairs = zip(traits, known, strict=True)
    return Bound(tuple(dict(zip(names.tolist(), each.tolist(), strict=True)) for (names, _), each in pairs))


def figures(rows: Rows, way: str, judged: Judged, where: Mask) -> Figures:
    """Of the rows of a regime."""
    off, weight = judged.off[where], judged.weight[where]
    error = np.abs(np.expm1(-off))
    inside = (off >= judged.low[where]) & (off <= judged.high[where])
    return Figures(
        len(off),
        len(set(groups_of(rows, way)[where].tolist())),
        quantile(error, weight, 0.5),
        quantile(error, weight, 0.9),
        float(np.exp(quantile(off, weight, 0.5))),
        float(np.average(inside, weights=weight)),
    )


def regimes(rows: Rows) -> Iterator[tuple[str, Mask]]:
    """All rows, those of each regime, each type, and with K split."""
    yield "all", np.ones(len(rows), bool)
    for number in range(len(EDGES) + 1):
        yield regime_name(number), regime_of(rows.m) == number
    for element in ELEMENTS:
        yield element, rows.element == element
    yield "split K", rows.split_k > 1


def table(rows: Rows, judged: dict[str, Judged]) -> Iterator[str]:
    """A line for each regime: median, nine tenths, bias and coverage, held out each way."""
    head = " ".join(f"{f'{PLURAL[way]} held out':>25}" for way in judged)
    yield f"{'':16} {'rows':>6} {head}"
    yield f"{'':23} " + " ".join(f"{'median   p90  bias in band':>25}" for _ in judged)
    for name, where in regimes(rows):
        if where.any():
            each = " ".join(f"{figures(rows, way, found, where)!s:>25}" for way, found in judged.items())
            yield f"{name:16} {int(where.sum()):6,} {each}"


def by_source(rows: Rows, judged: Judged, least: int = 100) -> Iterator[str]:
    """A line for each source with many rows, left out by itself."""
    sources = groups_of(rows, "source")
    for name in sorted(set(sources.tolist())):
        where = sources == name
        if where.sum() >= least:
            yield f"  {name:44} {int(where.sum()):6,} {figures(rows, 'source', judged, where)}"


def print_regimes(rows: Rows) -> None:
    """Everything, for one device."""
    judged = {way: judge(rows, way) for way in WAYS}
    print(
        f"{rows.device.name}, {len(rows):,} rows that name their tile, {len(set(rows.family.tolist()))} families, ",
        end="",
    )
    print(f"{len(set(groups_of(rows, 'source').tolist()))} sources")
    print("\n".join(table(rows, judged)))
    print("each source left out by itself, of 100 rows or more")
    print("\n".join(by_source(rows, judged["source"])), flush=True)
