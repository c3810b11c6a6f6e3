"""Facts about whole kernels from measured runs: takes the table, prints the parameters of each device with bands.

    python -m benchmarks.fit_measured [--write | --regimes] [MI355X] [MI300X]

With `--write` they replace those between the two marks in the devices' files.  With `--regimes` it prints how far off
the model is by regime, with shapes, families and sources held out (minutes).  The table is
`measured/measured.csv.gz` in the folder that `ROTA_SHARED` names.  Nothing depends on the machine it runs on: the same
table gives the same facts.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

import rota.targets
from rota.tune.shortlist import ErrorScale
from tests.campaigns.measured.measured_rows import DEVICES, Floats, Rows, best_rates, read_rows
from tests.campaigns.measured.problem_fit import Fit, fit_rows
from tests.campaigns.measured.problem_judging import (
    COVERED,
    TUNED,
    Interval,
    apart,
    as_product,
    interval,
    large,
    middle_of,
)
from tests.campaigns.measured.problem_regimes import EDGES, Mask, print_regimes, quantile, regime_of, weigh
from tests.campaigns.tuning.tune_shortlist import problems_of, scales_of

BEGIN, END = "# fitted by `python -m benchmarks.fit_measured --write`", "# end of what was fitted"
RESAMPLED = 12
BLOCKS = "1x128"
FEWEST_FAMILIES = 3
FEWEST = 100
"""Runs of a type, with fewer of which it isn't called calibrated."""
SOURCE = "AITER's tuned GEMMs up to 2026-08"
UNITS = {
    "start": "us",
    "share": "of the loop's clocks",
    "feed": "bytes per clock and unit",
    "trip": "clocks",
    "hbm": "TB per second",
    "store": "TB per second",
    "split_start": "us",
    "split_traffic": "times",
    "f_busy": "GHz",
    "best": "TFLOP/s",
}


class Number(NamedTuple):
    """A parameter and its 90 % band."""

    value: float
    low: float
    high: float


class Regime(NamedTuple):
    """Of families left out: the median error where M is `least` to `most`, and the band.

    `family` and `own` are of shapes left out: the errors between kernels of one problem.
    """

    least: int
    most: int | None
    error: float
    band: Interval
    family: float
    own: float


class Facts(NamedTuple):
    """What is written into a device's file."""

    shared: dict[str, Number]
    clocks: dict[str, Number]
    best: dict[str, float]
    counts: dict[str, int]
    regimes: tuple[Regime, ...]
    wide: Interval
    apart: float
    compared: int
    rows: int


def facts_of(device: str) -> Facts:
    """Fit, refit on resampled shapes, and leave out families and types."""
    rows = read_rows(device)
    fit = fit_rows(rows)
    tuned = tuple(name for name in TUNED if name in fit.families) or fit.families
    values = _as_facts(fit, tuned)
    drawn = [_as_facts(each, tuned) for each in _resampled(rows, fit)]
    numbers = {}
    for name, value in values.items():
        low, high = np.quantile([each[name] for each in drawn], (0.05, 0.95))
        numbers[name] = Number(value, min(float(low), value), max(float(high), value))
    counts = {name: int((rows.element == name).sum()) for name in fit.elements}
    off = families_left_out(rows, fit)
    wide = interval(_types_left_out(rows)) if len(fit.elements) > 2 else _wider(_band(rows, off, ~np.isnan(off)))
    clocks = {name.partition("|")[2]: each for name, each in numbers.items() if "|" in name}
    shared = {name: each for name, each in numbers.items() if "|" not in name}
    every = read_rows(device, None)
    regimes = regimes_of(rows, off, scales_of(every))
    compared = len(problems_of(every))
    return Facts(shared, clocks, best_rates(device), counts, regimes, wide, apart(rows), compared, len(rows))


def _as_facts(fit: Fit, tuned: tuple[str, ...]) -> dict[str, float]:
    """What a new kernel gets."""
    own = fit.named
    found = middle_of(fit, tuned) | {name: own[name] for name in ("feed", "hbm", "store", "split_traffic")}
    found = {name: found[name] for name in UNITS if name in found}
    return found | {f"f_busy|{name}": own[f"f_busy|{name}"] for name in fit.elements}


def _resampled(rows: Rows, fit: Fit) -> Iterator[Fit]:
    """Fits to shapes that were drawn with repetition, from a fixed seed."""
    drawn = np.random.default_rng(2)
    shapes = rows.shapes
    found, back = np.unique(shapes, return_inverse=True)
    members = [np.flatnonzero(back == number) for number in range(len(found))]
    for _ in range(RESAMPLED):
        chosen = np.concatenate([members[number] for number in drawn.integers(0, len(found), len(found))])
        some = rows.at(chosen)
        if set(some.family.tolist()) == set(fit.families):
            yield fit_rows(some)


def _types_left_out(rows: Rows) -> dict[str, Floats]:
    """Each tuned family predicted without any row of its type: what "not calibrated" means."""
    found = {}
    for element, members in groupby(sorted(TUNED), key=lambda name: name.partition("|")[0]):
        without = fit_rows(rows.at(rows.element != element))
        others = tuple(name for name in TUNED if name.partition("|")[0] != element)
        for name in members:
            found[name] = as_product(without, rows.at((rows.family == name) & large(rows)), others).residuals
    return found


def families_left_out(rows: Rows, fit: Fit) -> Floats:
    """log(measured / predicted) of each family, predicted as rota's own kernels are by a fit that didn't see it.

    Kernels that scale blocks of 1x128 spend their time on what rota's don't do: they are NaN where there are others.
    So is a family without which the fit has no row of its type.
    """
    chosen = [name for name in fit.families if BLOCKS not in name]
    others: tuple[str, ...] = TUNED
    if not set(TUNED) <= set(chosen):
        elements = [name.partition("|")[0] for name in fit.families]
        chosen = [name for name, element in zip(fit.families, elements, strict=True) if elements.count(element) > 1]
        others = fit.families
    off = np.full(len(rows), np.nan)
    for name in chosen:
        own = rows.family == name
        without = fit_rows(rows.at(~own))
        off[own] = as_product(without, rows.at(own), tuple(each for each in others if each != name)).residuals
    return off


def regimes_of(rows: Rows, off: Floats, scales: Mapping[int, ErrorScale]) -> tuple[Regime, ...]:
    """Where few families have rows, those of all regimes speak."""
    found = []
    for number, (least, most) in enumerate(pairwise((0, *EDGES, None))):
        where = ~np.isnan(off)
        own = where & (regime_of(rows.m) == number)
        if len(set(rows.family[own].tolist())) >= FEWEST_FAMILIES:
            where = own
        error = quantile(np.abs(np.expm1(-off[where])), weigh(rows, "family")[where], 0.5)
        scale = scales[number]
        found.append(Regime((least or 0) + 1, most, error, _band(rows, off, where), scale.family, scale.own))
    return tuple(found)


def _band(rows: Rows, off: Floats, where: Mask) -> Interval:
    weight = weigh(rows, "family")[where]
    return Interval(*(float(np.exp(quantile(off[where], weight, at))) for at in ((1 - COVERED) / 2, (1 + COVERED) / 2)))


def _wider(band: Interval) -> Interval:
    """To both sides twice as far as the band reaches further: there are too few types to leave one out."""
    furthest = max(band.high, 1 / band.low)
    return Interval(furthest**-2, furthest**2)


def text_of(device: str, facts: Facts) -> str:
    """The facts as Python source, as ruff formats it."""
    source = f'f"{{_TABLE}}, {facts.rows:,} rows"'

    def fitted(name: str, each: Number) -> str:
        value, low, high = (f"{float(f'{part:.4g}'):g}" for part in each)
        return f'Fitted({value}, {low}, {high}, "{UNITS[name]}", _TABLE)'

    lines = [
        BEGIN,
        f'_TABLE = "{SOURCE}, {DEVICES[device].arch} with {DEVICES[device].units} units"',
        "PROBLEMS = ProblemFacts(",
        *(f"    {name}={fitted(name, each)}," for name, each in facts.shared.items()),
        "    types=(",
    ]
    for name, each in facts.clocks.items():
        best = f"{float(f'{facts.best[name]:.4g}'):g}"
        lines += [
            "        TypeFacts(",
            f'            element="{name}",',
            f"            f_busy={fitted('f_busy', each)},",
            f'            best=Fitted({best}, {best}, {best}, "TFLOP/s", _TABLE),',
            *([] if facts.counts[name] >= FEWEST else [f'            uncalibrated="only {facts.counts[name]} runs",']),
            "        ),",
        ]
    lines += [
        "    ),",
        "    regimes=(",
        *(
            f"        RegimeFacts({least}, {most}, {error:.3f}, Spread({band.low:.3f}, {band.high:.3f}), "
            f"{family:.3f}, {own:.3f}),"
            for least, most, error, band, family, own in facts.regimes
        ),
        "    ),",
        f"    wide_band=Spread({facts.wide.low:.3f}, {facts.wide.high:.3f}),",
        f"    apart={facts.apart:g},",
        f"    measured={source},",
        f'    compared="{facts.compared:,} problems with two kernels or more, shapes held out",',
        ")",
        END,
    ]
    return "\n".join(lines)


def write(text: str) -> None:
    """Replace what stands between the marks in the device's file: the one that has its table."""
    table_line = next(line for line in text.splitlines() if line.startswith("_TABLE"))
    for path in sorted(Path(rota.targets.__path__[0]).glob("*.py")):
        old = path.read_text("utf-8")
        if table_line in old.splitlines():
            before, _, rest = old.partition(BEGIN)
            path.write_text(before + text + rest.partition(END)[2], "utf-8")
            return
    raise SystemExit(f"no device's file has {table_line!r}")


def main(arguments: Sequence[str]) -> None:
    """Print, and write if asked to."""
    chosen = [name for name in arguments if name in DEVICES] or ["MI355X", "MI300X"]
    for device in chosen:
        if "--regimes" in arguments:
            print_regimes(read_rows(device, None))
            continue
        text = text_of(device, facts_of(device))
        print(f"{device}\n{text}\n", flush=True)
        if "--write" in arguments:
            write(text)


if __name__ == "__main__":
    main(sys.argv[1:])
