"""A matrix op that adds to another's result in place follows at once; any other use of that result waits for it."""

from __future__ import annotations

import pytest

from rota import GFX950
from rota.cycles.predict import predict
from rota.kernels.gemm import BF16
from rota.targets.device import timing_of
from rota.values.compile_loop import unroll_bare
from rota.values.loop import Loop
from rota.values.unroll import Placement

LENGTH = 16


@pytest.mark.parametrize("in_place", [True, False])
def test_a_chain_of_matrix_ops(in_place: bool) -> None:
    loop = Loop("chain", waves=4)
    query = loop.input("query", registers=4)
    value = ""
    for number in range(LENGTH):
        operands = [query, *([value] if value else [])]
        into = value if in_place else ""
        value = loop.product(f"s{number}", operands, registers=4, instruction=BF16, into=into)
    spec = loop.build()
    copies = tuple((each.name, 1) for each in spec.values if not each.into)
    passes = 4
    placed = Placement(interval=passes * LENGTH, starts=tuple(range(0, passes * LENGTH, passes)), copies=copies)
    cycles = predict(unroll_bare(spec, placed), band=False).cycles
    apart = 0 if in_place else timing_of(GFX950).result_turns.value + 1
    edge = timing_of(GFX950).loop_edge.fact.value
    assert cycles == pytest.approx(4 * ((passes + apart) * LENGTH), abs=4 * (edge + apart))
