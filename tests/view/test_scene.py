from __future__ import annotations

import itertools

import pytest

from rota.cycles.timeline import Lane
from rota.view.scene import Bar, Scene, clip, ticks
from tests.view.scenes import BAND, SCENE


@pytest.mark.parametrize("span", [1, 5, 63, 64, 500, 2048, 4288, 99_999, 10**9])
@pytest.mark.parametrize("most", [5, 10, 12])
def test_ticks_are_even_few_and_reach_as_far_as_they_can(span: int, most: int) -> None:
    found = ticks(span, most)
    assert found[0] == 0
    assert 1 <= len(found) <= most
    steps = {later - earlier for earlier, later in itertools.pairwise(found)}
    assert len(steps) <= 1
    assert found[-1] <= span
    assert not steps or found[-1] + steps.pop() > span


def test_a_stretch_is_cut_at_the_scenes_ends() -> None:
    assert clip(-50, 20, SCENE) == (0, 20)
    assert clip(480, 900, SCENE) == (480, 500)
    assert clip(500, 900, SCENE) is None
    assert clip(-10, 0, SCENE) is None


def test_the_headline_ends_in_what_kind_of_numbers_these_are() -> None:
    assert SCENE.headline == "small · MI355X · II 500 clk (proven least) · predicted, not measured"
    assert Scene(title="x", facts=(), start=0, end=1, bands=()).headline == "x · predicted, not measured"


def test_a_bar_in_pieces_worked_only_in_them() -> None:
    assert list(BAND.bars(Lane.MMA)[0].worked) == [(100, 300)]
    assert list(Bar(0, 9, "a", 0, (), pieces=((0, 2), (7, 9))).worked) == [(0, 2), (7, 9)]
    assert BAND.bars(Lane.VALU) == ()
