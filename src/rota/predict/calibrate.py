"""Calibration: takes measured runs of a kernel, gives a `Correction` of the model, and how far off it was.

Three factors are estimated: on the time as a whole, on the start, and on what memory adds.  Each departs from 1 only
as far as the runs demand (a least-squares fit with priors), so that three runs suffice and one outlier does little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import median

from rota.errors import Finding, MeasureError
from rota.predict.measured_runs import MeasuredGemm
from rota.predict.predict_problem import Correction, parameters_of, type_facts_of, work_of
from rota.predict.tiled_gemm import TiledGemm
from rota.predict.time_model import times_of

FEWEST = 3
NOISE = 0.05
"""Of a measured run, as a share of its time; repeated rows of the public table differ by 3.3 %."""
PRIORS = (0.5, 0.2, 0.12)
"""How far whole, start and memory may be off, as logarithms: tenths, except the whole."""
_STEPS, _STEP = 25, 1e-4
_UNIT = 30.0
"""A model that was fitted to thousands of runs isn't off by so much: then it is the unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The factors, and the median error of the runs before and after; `bias` is measured / predicted before."""

    correction: Correction
    bias: float
    error_before: float
    error_after: float

    def __str__(self) -> str:
        fix = self.correction
        return (
            f"{fix.runs} runs: measured times were x{self.bias:.2f} of the predicted ones, {self.error_before:.1%} off "
            f"in the median; {self.error_after:.1%} with profile {fix.name!r}\n"
            f"  factors: loop x{fix.loop:.3f}, start x{fix.start:.3f}, memory x{fix.memory:.3f}"
        )


def calibrate(kernel: TiledGemm, runs: Sequence[MeasuredGemm], name: str) -> Calibration:
    """The correction that the runs of one kernel suggest."""
    _check(kernel, runs)
    ratios = _logs(kernel, runs, (0.0, 0.0, 0.0))
    _check_unit(runs, ratios)
    x = [0.0, 0.0, 0.0]
    for _ in range(_STEPS):
        step = _gauss_newton(kernel, runs, x)
        x = [a + b for a, b in zip(x, step, strict=True)]
        if max(map(abs, step)) < _STEP:
            break
    whole, start, memory = x
    correction = Correction(name, len(runs), exp(whole + start), exp(whole), exp(whole + memory))
    after = _logs(kernel, runs, (whole, start, memory))
    return Calibration(
        correction=correction,
        bias=exp(median(ratios)),
        error_before=_error(ratios),
        error_after=_error(after),
    )


def _error(logs: Sequence[float]) -> float:
    return median(abs(exp(-each) - 1) for each in logs)


def _logs(kernel: TiledGemm, runs: Sequence[MeasuredGemm], x: Sequence[float]) -> list[float]:
    """log(measured / predicted) of each run."""
    whole, start, memory = x
    fix = Correction("", 0, exp(whole + start), exp(whole), exp(whole + memory))
    at = parameters_of(kernel.device, type_facts_of(kernel), fix)
    return [log(run.us / times_of(work_of(kernel, run.problem), at).total) for run in runs]


def _gauss_newton(kernel: TiledGemm, runs: Sequence[MeasuredGemm], x: Sequence[float]) -> list[float]:
    base = _logs(kernel, runs, x)
    slopes = []
    for number in range(3):
        moved = [value + _STEP * (number == place) for place, value in enumerate(x)]
        slopes.append([(a - b) / _STEP for a, b in zip(_logs(kernel, runs, moved), base, strict=True)])
    weights = [1 / (1 + (each / (3 * NOISE)) ** 2) ** 0.5 for each in base]
    matrix = [
        [
            sum(w * a * b for w, a, b in zip(weights, one, other, strict=True)) / NOISE**2
            + (row == column) / PRIORS[row] ** 2
            for column, other in enumerate(slopes)
        ]
        for row, one in enumerate(slopes)
    ]
    right = [
        -sum(w * a * r for w, a, r in zip(weights, one, base, strict=True)) / NOISE**2 - x[row] / PRIORS[row] ** 2
        for row, one in enumerate(slopes)
    ]
    return _solved(matrix, right)


def _solved(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Three equations; the priors keep them regular."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    size = len(rows)
    for pivot in range(size):
        for other in range(size):
            if other != pivot:
                factor = rows[other][pivot] / rows[pivot][pivot]
                rows[other] = [a - factor * b for a, b in zip(rows[other], rows[pivot], strict=True)]
    return [rows[number][size] / rows[number][number] for number in range(size)]


def _check(kernel: TiledGemm, runs: Sequence[MeasuredGemm]) -> None:
    if len(runs) < FEWEST:
        raise MeasureError(
            Finding(
                code="M204",
                message=f"{len(runs)} runs of {kernel.name} are too few for a calibration; it takes {FEWEST}",
                evidence=(("runs", len(runs)), ("needed", FEWEST)),
                fixes=("measure more shapes: a small one, a large one, and a long thin one tell most",),
            )
        )
    for run in runs:
        other_tile = run.tile not in ((), kernel.tile)
        if other_tile or run.element not in ("", kernel.element):
            tile = "x".join(map(str, run.tile)) or "no tile stated"
            raise MeasureError(
                Finding(
                    code="M204",
                    message=f"line {run.line} is about another kernel than {kernel.name}",
                    evidence=(
                        ("line", f"{tile}, {run.element or 'no type stated'}"),
                        ("kernel", f"{'x'.join(map(str, kernel.tile))}, {kernel.element}"),
                    ),
                    fixes=("keep the runs of one kernel in one file",),
                )
            )


def _check_unit(runs: Sequence[MeasuredGemm], logs: Sequence[float]) -> None:
    ratio = exp(median(logs))
    if 1 / _UNIT < ratio < _UNIT:
        return
    unit = "nanoseconds" if ratio > 1 else "milliseconds or seconds"
    raise MeasureError(
        Finding(
            code="M202",
            message=f"measured times are x{ratio:.3g} of what is possible: they look like {unit}, not microseconds",
            evidence=(("first run", f"{runs[0].problem}: {runs[0].us:g}"), ("measured / predicted", f"x{ratio:.3g}")),
            fixes=("state times in microseconds, in a column named us",),
        )
    )
