"""Which is faster: takes predicted kernels of one problem, gives places that two share whom the model can't tell apart.

Candidates are sorted by time; one that is no further from the one before it than `apart` has the same place.  So two
that are that close never have different places, though of a long chain the ends may differ by more.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rota.predict.gemm_problem import GemmProblem
from rota.predict.predict_problem import Correction, ProblemPrediction, predict_problem
from rota.predict.tiled_gemm import TiledGemm
from rota.targets.device import problem_facts_of

NOT_DISTINGUISHABLE = "not distinguishable"


class PlacedGemm(NamedTuple):
    """A place, from 1 on, and how many share it."""

    place: int
    shared_by: int
    prediction: ProblemPrediction

    @property
    def words(self) -> str:
        """The place, or that there is none of its own."""
        return f"{self.place}." if self.shared_by == 1 else NOT_DISTINGUISHABLE


def rank_problem(
    kernels: Iterable[TiledGemm], problem: GemmProblem, correction: Correction | None = None
) -> tuple[PlacedGemm, ...]:
    """The kernels by predicted time, in groups that can be told apart."""
    every = list(kernels)
    apart = max((problem_facts_of(each.device).apart for each in every), default=0.0)
    found = sorted((predict_problem(each, problem, correction) for each in every), key=lambda each: each.us)
    groups: list[list[ProblemPrediction]] = []
    for each in found:
        if groups and each.us <= groups[-1][-1].us * (1 + apart):
            groups[-1].append(each)
        else:
            groups.append([each])
    placed: list[PlacedGemm] = []
    for group in groups:
        place = len(placed) + 1
        placed += [PlacedGemm(place, len(group), each) for each in group]
    return tuple(placed)


def ranking_text(placed: Iterable[PlacedGemm]) -> str:
    """A line for each kernel, groups that share a place under a heading."""
    lines: list[str] = []
    last = 0
    for each in placed:
        if each.place != last and each.shared_by > 1:
            lines.append(f"{NOT_DISTINGUISHABLE}, {each.shared_by} kernels:")
        last = each.place
        low, high = each.prediction.us_range
        name = f"  {each.prediction.kernel}" if each.shared_by > 1 else f"{each.words} {each.prediction.kernel}"
        lines.append(f"{name:28} {each.prediction.us:10,.1f} us ({low:,.1f} to {high:,.1f})")
    return "\n".join(lines)
