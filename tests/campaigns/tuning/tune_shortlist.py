"""What shortlists and plans of measurements are worth: takes the measured table, prints calibration and regret.

    python -m benchmarks.tune_regret --shortlists

A problem that was measured with two kernels or more is given to the ranking, which holds its shape (N and K) out:
neither a fit nor a scale of errors has seen it.  A simulated measurement looks a recorded time up.  Only winners of
tuning runs were recorded, so candidates that lost are missing, and lists are shorter than among all kernels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import comb
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from rota.tune.shortlist import Candidates, ErrorScale, RunPlan, measuring_order, plan_runs, shortlist
from tests.campaigns.measured.measured_rows import Floats, Rows
from tests.campaigns.measured.problem_fit import predict_held_out, splits
from tests.campaigns.measured.problem_regimes import EDGES, INNER, regime_name, regime_of

FEWEST_PAIRS = 20
STATED = (0.5, 0.8, 0.9)
SHAPES, SECONDS = 200, 10
"""Of a plan; and how long a run takes with its compilation, which is an assumption."""


class Known(NamedTuple):
    """A problem's rows, and what a fit without its shape says of them."""

    of: Candidates
    us: Floats
    numbers: tuple[int, ...]
    rows: Rows

    @property
    def regime(self) -> int:
        return int(regime_of(self.rows.m[list(self.numbers[:1])])[0])

    @property
    def best(self) -> int:
        return int(np.argmin(self.us))

    def loss(self, numbers: Sequence[int]) -> float:
        """How much longer than the fastest the best of some candidates takes."""
        return float(self.us[list(numbers)].min() / self.us.min() - 1)


def problems_of(rows: Rows) -> list[list[int]]:
    """The rows of each problem that has two kernels or more."""
    found: dict[str, list[int]] = {}
    for number, name in enumerate(rows.problem.tolist()):
        found.setdefault(name, []).append(number)
    return [numbers for numbers in found.values() if len(numbers) > 1]


def known_problems(rows: Rows) -> list[Known]:
    """Every problem with its predictions and its scales of errors, by folds that have not seen its shape."""
    found: list[Known] = []
    for split in splits(rows, "shape"):
        scales = scales_of(rows.at(split.seen))
        predicted = predict_held_out(rows, [split])[split.judged]
        found += know(rows.at(split.judged), predicted, scales)
    return found


def know(rows: Rows, predicted: Floats, scales: Mapping[int, ErrorScale]) -> Iterator[Known]:
    """Problems as the ranking sees them."""
    _, family = np.unique(rows.family, return_inverse=True)
    regime = regime_of(rows.m)
    for numbers in problems_of(rows):
        of = Candidates(predicted[numbers], family[numbers], scales[int(regime[numbers[0]])])
        yield Known(of, rows.us[numbers], tuple(numbers), rows)


def scales_of(seen: Rows) -> dict[int, ErrorScale]:
    """By regime, from pairs of kernels on a problem, shapes held out among the seen rows.

    Where a regime has few pairs, within families or across them, those of all regimes speak.
    """
    predicted = np.log(predict_held_out(seen, splits(seen, "shape", INNER)))
    pairs = np.array([pair for numbers in problems_of(seen) for pair in combinations(numbers, 2)])
    regime = regime_of(seen.m[pairs[:, 0]])
    related = seen.family[pairs[:, 0]] == seen.family[pairs[:, 1]]
    said, real = (values[pairs[:, 0]] - values[pairs[:, 1]] for values in (predicted, np.log(seen.us)))
    found = {}
    for number in range(len(EDGES) + 1):
        own = regime == number
        if min((own & related).sum(), (own & ~related).sum()) < FEWEST_PAIRS:
            own = np.ones_like(own)
        slope = float(said[own] @ real[own] / (said[own] @ said[own]))
        rest = np.abs(real - slope * said) / np.sqrt(2)
        near, far = (_deviation(rest[own & some]) for some in (related, ~related))
        found[number] = ErrorScale(max(far**2 - near**2, 0.0) ** 0.5, near, slope)
    return found


def _deviation(rest: Floats) -> float:
    """The standard deviation of a normal distribution that keeps nine of ten of these."""
    return float(np.quantile(rest, 0.9) / NormalDist().inv_cdf(0.95))


class Calibrated(NamedTuple):
    """Shortlists with a stated probability: how many hold the fastest kernel, what they claim, how long they are."""

    stated: float
    inside: float
    claimed: float
    length: float
    nine_tenths: float

    def __str__(self) -> str:
        return (
            f"stated {self.stated:4.0%}: lists claim {self.claimed:6.1%} and hold the fastest in {self.inside:6.1%}; "
            f"{self.length:.0f} kernels in the median, nine of ten at most {self.nine_tenths:.0f}"
        )


def calibrate(problems: Sequence[Known], stated: float) -> Calibrated:
    lists = [shortlist(each.of, stated) for each in problems]
    inside = [each.best in found.numbers for each, found in zip(problems, lists, strict=True)]
    lengths = [len(found.numbers) for found in lists]
    return Calibrated(
        stated,
        float(np.mean(inside)),
        float(np.mean([found.chance for found in lists])),
        float(np.median(lengths)),
        float(np.quantile(lengths, 0.9)),
    )


Way = Sequence[int]


def orders(each: Known) -> dict[str, Way]:
    """In which order the ways of choosing measure a problem's kernels."""
    tiles = each.rows.work
    numbers = np.array(each.numbers)
    counted = (np.asarray(tiles.rounds) * np.asarray(tiles.k_tiles) * np.asarray(tiles.mma))[numbers]
    near = np.abs(np.log(each.rows.tile_m * each.rows.tile_n / 256**2))[numbers]
    split = each.rows.split_k[numbers]
    return {
        "rota's shortlist": measuring_order(each.of),
        "fewest matrix clocks, counting tiles": np.lexsort((split, counted)).tolist(),
        "tile nearest to 256x256": np.lexsort((split, near)).tolist(),
    }


def loss_at_random(each: Known, count: int) -> float:
    """Expected of the best of so many kernels, drawn without repetition: by counting, without a draw."""
    many = len(each.us)
    count = min(count, many)
    chosen = [comb(many - 1 - place, count - 1) / comb(many, count) for place in range(many)]
    return float(np.sort(each.us) @ np.array(chosen) / each.us.min() - 1)


def losses_after(problems: Sequence[Known], counts: Sequence[int]) -> dict[str, list[float]]:
    """The mean regret after so many simulated measurements of each problem; after one, of the first choice itself."""
    ordered = [orders(each) for each in problems]
    found = {
        words: [
            float(np.mean([p.loss(way[words][:count]) for p, way in zip(problems, ordered, strict=True)]))
            for count in counts
        ]
        for words in ordered[0]
    }
    found["at random"] = [float(np.mean([loss_at_random(each, count) for each in problems])) for count in counts]
    return found


class Simulated(NamedTuple):
    """A plan carried out on recorded times: regret before and after, as expected and as it turned out."""

    plan: RunPlan
    before: float
    after: float
    evenly: float
    at_random: float


def simulate(problems: Sequence[Known], runs: int) -> Simulated:
    """Also with the same number of runs, spent on every shape alike: along the ranking, and at random."""
    plan = plan_runs([each.of for each in problems], runs)
    first = [int(np.argmin(each.of.us)) for each in problems]
    before = [each.loss([number]) for each, number in zip(problems, first, strict=True)]
    after = [
        each.loss(planned.numbers or (number,))
        for each, planned, number in zip(problems, plan.shapes, first, strict=True)
    ]
    share = [runs // len(problems) + (number < runs % len(problems)) for number in range(len(problems))]
    evenly = [
        each.loss(orders(each)["rota's shortlist"][: max(1, count)])
        for each, count in zip(problems, share, strict=True)
    ]
    random = [loss_at_random(each, max(1, count)) for each, count in zip(problems, share, strict=True)]
    return Simulated(plan, *(float(np.mean(each)) for each in (before, after, evenly, random)))


def print_shortlists(rows: Rows) -> None:
    """Calibration, regret after measurements, and an hour's plan."""
    problems = known_problems(rows)
    many = [each for each in problems if len(each.us) > 4]
    counted = f"{len(problems):,} problems have two kernels or more, {len(many):,} of them five or more"
    print(f"{rows.device.name}: {len(rows):,} rows name their tile, {counted}; shapes held out")
    for words, some in (("two or more", problems), ("five or more", many)):
        for stated in STATED:
            print(f"  {words}, {calibrate(some, stated)}", flush=True)
    for number in range(6):
        some = [each for each in problems if each.regime == number]
        if some:
            scale = some[0].of.scale
            print(f"  {regime_name(number):16} {len(some):5,} problems, {calibrate(some, 0.8)}")
            first = ", ".join(f"{way} {each[0]:.1%}" for way, each in losses_after(some, (1,)).items())
            print(f"    regret of the first choice: {first}")
            print(f"    errors in one fold: family {scale.family:.3f}, own {scale.own:.3f}, slope {scale.slope:.2f}")
    for words, some in (("two or more", problems), ("five or more", many)):
        print(f"  regret after 1, 2, 3, 4 and 5 measurements, {words} kernels")
        for way, lost in losses_after(some, range(1, 6)).items():
            print(f"    {way:38} " + " ".join(f"{each:6.1%}" for each in lost))
    runs = 3600 // SECONDS
    for words, some in (("two or more", problems), ("five or more", many)):
        chosen = some[:: max(1, len(some) // SHAPES)][:SHAPES]
        found = simulate(chosen, runs)
        print(
            f"  an hour, {runs} runs of {SECONDS} s, for {len(chosen)} shapes with {words} kernels: "
            f"{found.plan.runs} planned; regret expected {found.plan.before:.1%} before, {found.plan.after:.1%} after, "
            f"simulated {found.before:.1%} and {found.after:.1%}; "
            f"the same runs for all shapes alike {found.evenly:.1%}, at random {found.at_random:.1%}"
        )
