"""What choosing by rota's ranking costs: takes the measured table, prints regret beside other ways to choose.

    python -m benchmarks.tune_regret [--quick | --shortlists]

A problem that was measured with two kernels or more (tile and split known) is given to each way of choosing among just
these; the regret is how much longer its pick takes than the fastest of them.  Only winners of tuning runs were
recorded: the kernels of a problem are those that won it at different times or for different libraries, so all of them
are good, losers are missing, and the regret of choosing among everything is larger than any figure here.  An earlier
choice of AITER's is in the table beside a later one because a later run found another kernel: it is held against what
replaced it, which is hard on it.
"""

from __future__ import annotations

import argparse
import csv
import gzip
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from rota.predict.predict_problem import parameters_of, times_of
from rota.targets.device import problem_facts_of
from rota.targets.registry import device_named
from tests.campaigns.measured.measured_rows import DEVICES, Floats, Rows, measured_on, read_rows, table
from tests.campaigns.measured.problem_fit import held_out
from tests.campaigns.tuning.tune_shortlist import print_shortlists

LARGE = (256, 256)
SHIPPED, ALWAYS = "rota's ranking, as shipped", "always 256x256, where measured"
EARLIER = "AITER's earlier choice, where dates differ"


class Regret(NamedTuple):
    """Over the problems in which a way of choosing had something to choose."""

    problems: int
    mean: float
    p90: float
    worst: float
    best_chosen: float

    def __str__(self) -> str:
        return (
            f"{self.problems:6,} problems  mean {self.mean:6.1%}  p90 {self.p90:6.1%}  worst {self.worst:7.1%}  "
            f"picks the fastest in {self.best_chosen:.0%}"
        )


def several(rows: Rows) -> dict[str, list[int]]:
    """The rows of each problem that has two kernels or more."""
    problems: dict[str, list[int]] = {}
    for number, name in enumerate(rows.problem.tolist()):
        problems.setdefault(name, []).append(number)
    return {name: numbers for name, numbers in problems.items() if len(numbers) > 1}


def regret_of(rows: Rows, problems: Mapping[str, Sequence[int]], pick: Callable[[Sequence[int]], float]) -> Regret:
    """`pick` gives the time of what it chooses, or NaN where it has no choice."""
    lost = []
    for numbers in problems.values():
        chosen = pick(numbers)
        if not np.isnan(chosen):
            lost.append(chosen / rows.us[list(numbers)].min() - 1)
    found = np.array(lost or [np.nan])
    return Regret(
        len(lost), float(found.mean()), float(np.quantile(found, 0.9)), float(found.max()), float((found < 1e-9).mean())
    )


def by_ranking(rows: Rows, predicted: Floats) -> Callable[[Sequence[int]], float]:
    """The least predicted time."""
    return lambda numbers: float(rows.us[min(numbers, key=lambda number: predicted[number])])


def by_any(rows: Rows) -> Callable[[Sequence[int]], float]:
    """Any of them, with equal chances: the mean."""
    return lambda numbers: float(rows.us[list(numbers)].mean())


def by_tile(rows: Rows, tile: tuple[int, int]) -> Callable[[Sequence[int]], float]:
    """Always the same tile, unsplit first, where it was measured."""

    def pick(numbers: Sequence[int]) -> float:
        own = [n for n in numbers if (rows.tile_m[n], rows.tile_n[n]) == tile]
        return float(rows.us[min(own, key=lambda n: rows.split_k[n])]) if own else float("nan")

    return pick


def by_nearest_area(rows: Rows, tile: tuple[int, int]) -> Callable[[Sequence[int]], float]:
    """The tile nearest to a fixed one by area, so that every problem has a choice."""
    wanted = np.log(tile[0] * tile[1])
    return lambda numbers: float(
        rows.us[min(numbers, key=lambda n: (abs(np.log(rows.tile_m[n] * rows.tile_n[n]) - wanted), rows.split_k[n]))]
    )


def by_earlier(rows: Rows, first: Mapping[tuple[str, ...], str]) -> Callable[[Sequence[int]], float]:
    """What AITER's table held first: the kernel of the earliest row, where dates differ."""

    def pick(numbers: Sequence[int]) -> float:
        dates = [first.get(_identity(rows, number), "") for number in numbers]
        if not all(dates) or len(set(dates)) == 1:
            return float("nan")
        return float(rows.us[numbers[dates.index(min(dates))]])

    return pick


def _identity(rows: Rows, number: int) -> tuple[str, ...]:
    return rows.problem[number], rows.kernel[number], f"{rows.split_k[number]:.0f}"


def first_dates(device: str) -> dict[tuple[str, ...], str]:
    """When a problem's kernel was first recorded."""
    found: dict[tuple[str, ...], str] = {}
    for row in measured_on(DEVICES[device]):
        problem = " ".join(row[name] for name in ("M", "N", "K", "a", "out", "scale", "bias"))
        key = problem, row["kernel"], row["split_k"]
        found[key] = min(row["first"], found.get(key, "9"))
    return found


def shipped(rows: Rows) -> Floats:
    """Predicted with the device's facts as rota ships them, which were fitted to these rows among others.

    Of the loops of others the matrix units' clocks are all that is known.
    """
    device = device_named(rows.device.name)
    facts = problem_facts_of(device)
    found = np.full(len(rows), np.inf)
    for element in np.unique(rows.element).tolist():
        own = np.flatnonzero(rows.element == element)
        if element in facts.elements:
            at = parameters_of(device, facts.type_facts(element, device.name))
            found[own] = np.asarray(times_of(rows.at(own).work, at).total)
    return found


def main() -> None:
    """Both devices."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="without the fits that hold shapes out")
    parser.add_argument("--shortlists", action="store_true", help="what shortlists and an hour's plan are worth")
    asked = parser.parse_args()
    if asked.shortlists:
        print_shortlists(read_rows("MI355X", None))
        return
    with gzip.open(table(), "rt", newline="") as file:
        print(
            f"{sum(1 for _ in csv.reader(file)) - 1:,} measured runs; every row won its tuning run, losers are missing"
        )
    for device in ("MI355X", "MI300X"):
        rows = read_rows(device, None)
        problems = several(rows)
        print(f"\n{device}: {len(rows):,} rows name their tile, {len(problems):,} problems have two kernels or more")
        ways: dict[str, Callable[[Sequence[int]], float]] = {
            SHIPPED: by_ranking(rows, shipped(rows)),
            "any of them": by_any(rows),
            ALWAYS: by_tile(rows, LARGE),
            "tile nearest to 256x256": by_nearest_area(rows, LARGE),
            EARLIER: by_earlier(rows, first_dates(device)),
        }
        for words, pick in ways.items():
            print(f"  {words:44} {regret_of(rows, problems, pick)}", flush=True)
        for words in (EARLIER, ALWAYS):
            same = {name: each for name, each in problems.items() if not np.isnan(ways[words](each))}
            if same:
                print(f"  rota on the problems of {words!r}: {regret_of(rows, same, ways[SHIPPED])}", flush=True)
        if not asked.quick:
            plain, known = held_out(rows)
            print(f"  {'rota, shapes held out':44} {regret_of(rows, problems, by_ranking(rows, plain))}", flush=True)
            print(
                f"  {'the same, kernels calibrated':44} {regret_of(rows, problems, by_ranking(rows, known))}",
                flush=True,
            )
