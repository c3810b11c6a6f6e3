"""Facts about whole kernels from measured runs: takes the table, prints the parameters of each device with bands.

    python -m benchmarks.fit_measured [--write] [MI355X] [MI300X]

With `--write` they replace those between the two marks in the devices' files.  The table is
`measured/measured.csv.gz` in the folder that `ROTA_SHARED` names.  Nothing depends on the machine it runs on: the same
table gives the same facts.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np

import rota.targets
from tests.campaigns.measured.measured_rows import DEVICES, Floats, Rows, best_rates, read_rows
from tests.campaigns.measured.problem_fit import Fit, fit_rows
from tests.campaigns.measured.problem_judging import TUNED, Interval, apart, as_product, interval, large, left_out

BEGIN, END = "# fitted by `python -m benchmarks.fit_measured --write`", "# end of what was fitted"
RESAMPLED, STEPS = 12, 12
FEWEST = 100
"""Runs of a type, with fewer of which it isn't called calibrated."""
SOURCE = "AITER's tuned GEMMs up to 2026-08"
UNITS = {
    "start": "us",
    "share": "of the loop's clocks",
    "feed": "bytes per clock and unit",
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


class Facts(NamedTuple):
    """What is written into a device's file."""

    shared: dict[str, Number]
    clocks: dict[str, Number]
    best: dict[str, float]
    counts: dict[str, int]
    band: Interval
    wide: Interval
    apart: float
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
    if set(TUNED) <= set(fit.families):
        band = interval({name: each.residuals for name, each in left_out(rows).items()})
    else:
        band = interval(_families_left_out(rows, fit))
    wide = _widest(band, interval(_types_left_out(rows))) if len(fit.elements) > 2 else _wider(band)
    clocks = {name.partition("|")[2]: each for name, each in numbers.items() if "|" in name}
    shared = {name: each for name, each in numbers.items() if "|" not in name}
    return Facts(shared, clocks, best_rates(device), counts, band, wide, apart(rows), len(rows))


def _as_facts(fit: Fit, tuned: tuple[str, ...]) -> dict[str, float]:
    """What a new kernel gets: the middle share and start of tuned families."""
    own = fit.named
    found = {
        "start": own["start"] * fit.middle("start", tuned),
        "share": fit.middle("share", tuned),
        "feed": own["feed"],
        "hbm": fit.device.hbm,
        "store": own["store"],
        "split_start": own["split_start"],
        "split_traffic": own["split_traffic"],
    }
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
            yield fit_rows(some, fit, steps=STEPS)


def _types_left_out(rows: Rows) -> dict[str, Floats]:
    """Each tuned family predicted without any row of its type: what "not calibrated" means."""
    found = {}
    for element, members in groupby(sorted(TUNED), key=lambda name: name.partition("|")[0]):
        without = fit_rows(rows.at(rows.element != element))
        others = tuple(name for name in TUNED if name.partition("|")[0] != element)
        for name in members:
            found[name] = as_product(without, rows.at((rows.family == name) & large(rows)), others).residuals
    return found


def _families_left_out(rows: Rows, fit: Fit) -> dict[str, Floats]:
    """Where there are few families, each with more than one of its type is left out in turn."""
    found = {}
    for name in fit.families:
        others = tuple(each for each in fit.families if each != name)
        if any(each.partition("|")[0] == name.partition("|")[0] for each in others):
            own = rows.at(rows.family == name)
            found[name] = as_product(fit_rows(rows.at(rows.family != name)), own, others).residuals
    return found


def _widest(one: Interval, other: Interval) -> Interval:
    return Interval(min(one.low, other.low), max(one.high, other.high))


def _wider(band: Interval) -> Interval:
    """Twice as wide: there are too few types to leave one out."""
    return Interval(band.low**2, band.high**2)


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
        f"    band=Spread({facts.band.low:.3f}, {facts.band.high:.3f}),",
        f"    wide_band=Spread({facts.wide.low:.3f}, {facts.wide.high:.3f}),",
        f"    apart={facts.apart:g},",
        f"    measured={source},",
        ")",
        END,
    ]
    return "\n".join(lines)


def write(device: str, text: str) -> None:
    """Replace what stands between the marks in the device's file."""
    path = Path(rota.targets.__path__[0]) / f"{device.lower()}.py"
    old = path.read_text()
    before, _, rest = old.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise SystemExit(f"{path.name} has no marks {BEGIN!r} and {END!r}")
    path.write_text(before + text + after)


def main(arguments: Sequence[str]) -> None:
    """Print, and write if asked to."""
    chosen = [name for name in arguments if name in DEVICES] or ["MI355X", "MI300X"]
    for device in chosen:
        text = text_of(device, facts_of(device))
        print(f"{device}\n{text}\n", flush=True)
        if "--write" in arguments:
            write(device, text)


if __name__ == "__main__":
    main(sys.argv[1:])
