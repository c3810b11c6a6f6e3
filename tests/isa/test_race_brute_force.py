"""The check of accesses finds a race iff brute force over all pairs does, in every order in which waves run."""

from __future__ import annotations

import random

import pytest

from rota.isa.launch.interleaving import EARLIEST, LATEST, backwards, draw_order
from tests.isa.global_pairs import found as found_in_memory
from tests.isa.race_brute_force import draw, overtakes, races
from tests.isa.test_order import found, two_waves

ORDERS = (LATEST, EARLIEST, backwards(2), draw_order(0), draw_order(1))
DRAWN = 40  # of each kind; a campaign draws more


@pytest.mark.thorough  # runs for seconds
@pytest.mark.parametrize("seed", range(DRAWN))
def test_races_in_lds(seed: int) -> None:
    chooser = random.Random(seed)
    barriers = chooser.randrange(4)
    one, other = (draw(chooser, "lds", barriers) for _ in range(2))
    program = two_waves("\n".join(one.lines), "\n".join(other.lines))
    for order in ORDERS:
        codes = found(program, order)
        assert bool(codes & {"I109", "I304"}) == races(one, other), (one.lines, other.lines, order.label)
        alone = "I106" in codes
        due = overtakes(one) or overtakes(other)
        # Another wave's write may take the place of the load that was overtaken: then it is the race that is told.
        assert alone == due or (races(one, other) and not alone), (one.lines, other.lines, order.label)


@pytest.mark.thorough  # runs for seconds
@pytest.mark.parametrize("seed", range(DRAWN))
def test_races_in_memory(seed: int) -> None:
    chooser = random.Random(seed)
    barriers = chooser.randrange(4)
    one, other = (draw(chooser, "global", barriers) for _ in range(2))
    for order in ORDERS:
        codes = {finding.code for finding in found_in_memory(one.lines, other.lines, order=order)}
        assert bool(codes & {"I302", "I304"}) == races(one, other), (one.lines, other.lines, order.label)


def test_both_answers_are_drawn() -> None:
    answers = []
    for seed in range(DRAWN):
        chooser = random.Random(seed)
        barriers = chooser.randrange(4)
        answers.append(races(*(draw(chooser, "lds", barriers) for _ in range(2))))
    assert DRAWN / 5 < sum(answers) < DRAWN * 4 / 5
