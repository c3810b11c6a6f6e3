"""Bodies whose fragments rotate have an order under GREEDY and CSP, whatever order they were declared in."""

from __future__ import annotations

from random import Random

import pytest

from rota import RotaError, compile_schedule
from tests.oracle.draw_stages import draw_rotating

pytestmark = pytest.mark.no_cover  # drawn bodies; a share of benchmarks/oracle.py


@pytest.mark.parametrize("strategy", ["GREEDY", "CSP"])
def test_every_drawn_rotating_body_is_ordered_and_proved(strategy: str) -> None:
    as_declared = 0
    for seed in range(40):
        drawn = draw_rotating(Random(seed)).but(global_before_frag=False)
        compiled = compile_schedule(drawn.but(scheduling=strategy))
        assert compiled.certificate is not None
        try:
            compile_schedule(drawn.but(scheduling="IDENTITY"))
        except RotaError:
            as_declared += 1
    assert as_declared > 10  # the draw holds bodies that only a scheduler puts right


def test_loads_in_front_of_fragments_break_some_of_them_and_the_note_says_why() -> None:
    refused: list[set[str]] = []
    for seed in range(40):
        drawn = draw_rotating(Random(seed)).but(global_before_frag=True, scheduling="GREEDY")
        try:
            compile_schedule(drawn)
        except RotaError as error:
            refused.append({finding.code for finding in error.findings})
    assert refused
    assert all("P113" in codes for codes in refused)
