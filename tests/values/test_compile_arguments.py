"""What `compile_loop` is asked for besides a loop, and what it gives says of itself."""

from __future__ import annotations

from typing import Any

import pytest

from rota import GFX950
from rota.cycles.predict import predict
from rota.kernels.gemm import GEMM_SHAPES
from rota.values.compile_loop import compile_loop
from tests.findings.smallest import raised
from tests.wording.golden import mentions, worded

LOOP = GEMM_SHAPES[2].loop(instructions=False)


@pytest.mark.parametrize("given", [{"most_copies": 0}, {"most_copies": True}, {"slack": -1}, {"slack": 0.5}])
def test_what_is_no_count_is_refused(given: dict[str, Any]) -> None:
    (name,) = given
    assert name in raised("D102", lambda: compile_loop(LOOP, GFX950, **given)).message


@pytest.mark.thorough  # runs for seconds
def test_no_more_copies_than_were_allowed_and_the_placement_says_what_it_has() -> None:
    compiled = compile_loop(LOOP, GFX950, most_copies=2, slack=0)
    tiles = {value.name for value in LOOP.values if value.home.value == "LDS"}
    assert all(count <= 2 for name, count in compiled.placement.copies if name in tiles)
    placement = compiled.placement
    assert mentions(worded(str(placement)), placement.stages, placement.unroll)
    found = predict(compiled, band=False)
    assert f"{found.cycles:,.0f} cycles a K-tile" in found._repr_html_()
