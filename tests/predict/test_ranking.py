"""Candidates that the model can't tell apart share a place."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from rota.predict.predict_problem import GemmProblem
from rota.predict.sweep import (
    NOT_DISTINGUISHABLE,
    SIDES,
    rank_problem,
    ranking_text,
    sweep_m,
    sweep_mn,
    sweep_svg,
    sweep_text,
)
from tests.predict.kernels import kernel

SQUARE = GemmProblem(m=8192, n=8192, k=8192)


def loops(*clocks: float) -> list[tuple[str, int, str]]:
    kernels = [replace(kernel(loop=each), name=f"k{each:.0f}") for each in clocks]
    return [(each.prediction.kernel, each.place, each.words) for each in rank_problem(kernels, SQUARE)]


def test_two_that_are_close_have_no_places_of_their_own() -> None:
    assert loops(2100, 2078) == [("k2078", 1, NOT_DISTINGUISHABLE), ("k2100", 1, NOT_DISTINGUISHABLE)]


def test_two_that_are_far_apart_are_first_and_second() -> None:
    assert loops(8000, 2078) == [("k2078", 1, "1."), ("k8000", 2, "2.")]


@pytest.mark.parametrize("step", [1.01, 1.05, 1.1])
def test_neighbours_closer_than_the_model_can_tell_never_differ_in_place(step: float) -> None:
    kernels = [replace(kernel(loop=2048 * step**number), name=f"k{number}") for number in range(12)]
    placed = rank_problem(kernels, SQUARE)
    for one, other in pairwise(placed):
        close = other.prediction.us <= one.prediction.us * 1.1
        assert close == (one.place == other.place)
    assert [each.prediction.us for each in placed] == sorted(each.prediction.us for each in placed)


def test_the_text_says_so() -> None:
    kernels = [replace(kernel(loop=each), name=f"k{each}") for each in (2078, 2100, 9000)]
    text = ranking_text(rank_problem(kernels, SQUARE))
    assert text.startswith("not distinguishable, 2 kernels:\n  k2078")
    assert "\n3. k9000" in text


def test_a_sweep_over_m_shows_the_steps_of_full_rounds() -> None:
    found = sweep_m(kernel(), SQUARE)
    row = found.rows[0]
    assert set(SIDES) < {each.problem.m for each in row}
    assert all(each.problem.n == 8192 for each in row)
    for one, other in pairwise(row):
        assert (other.problem.m == one.problem.m + 1) == (other.rounds > one.rounds)
    text = sweep_text(found)
    assert "predicted, not measured" in text
    assert text.count("\n") == len(row) + 2
    svg = sweep_svg(found)
    assert svg.startswith("<svg")
    assert "TFLOP/s" in svg


def test_a_heat_map_has_a_cell_for_each_m_and_n() -> None:
    found = sweep_mn(kernel(), SQUARE)
    assert [row[0].problem.n for row in found.rows] == list(reversed(SIDES))
    assert sweep_svg(found).count("<rect") == len(SIDES) ** 2 + 1
    assert f"{found.most:,.0f}" in sweep_text(found)
