"""The line of a loop: the interval, the predicted clocks, and what lies between."""

from __future__ import annotations

import re

from rota import GFX950
from rota.cycles.predict import clocks_per_tile
from rota.kernels.gemm import BF16, GEMM_SHAPES, GemmShape
from rota.values.compile_loop import compile_loop
from rota.values.compiled_loop import describe_gap

SHAPE = GemmShape(name="gap", instruction=BF16, mma=(16, 32), rows=64, columns=64, waves=4)


def test_it_says_the_clocks_and_what_they_consist_of() -> None:
    compiled = compile_loop(SHAPE.loop(), GFX950)
    clocks = clocks_per_tile(compiled)
    words = describe_gap(compiled, 100)
    assert words is not None
    assert words.startswith(f"predicted {clocks:,.0f} clk ({clocks - 100:,.0f} more: ")
    causes = [float(number) for number in re.findall(r"[a-z)] (\d+)", words.partition("more: ")[2])]
    assert causes == sorted(causes, reverse=True)
    assert sum(causes) > 0


def test_without_a_gap_there_is_nothing_to_explain() -> None:
    compiled = compile_loop(SHAPE.loop(), GFX950)
    clocks = round(clocks_per_tile(compiled))
    assert describe_gap(compiled, clocks) == f"predicted {clocks:,} clk"


def test_a_loop_says_it_of_itself() -> None:
    compiled = compile_loop(SHAPE.loop(), GFX950)
    assert compiled.speed is not None
    assert compiled.speed.startswith("predicted ")


def test_a_share_that_was_rounded_still_counts_as_what_binds() -> None:
    """Matrix units are at work for 2,048 clocks, or by the rounded share for a little less."""
    words = describe_gap(compile_loop(GEMM_SHAPES[1].loop(instructions=False)), 2048)
    assert words is not None
    assert "more: issue turn " in words
