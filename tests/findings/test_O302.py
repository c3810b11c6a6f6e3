from __future__ import annotations

from rota import GFX942, ModuloScheduler
from rota.kernels.gemm import BF16, GEMM_SHAPES, MI300X_GEMM_SHAPES
from rota.values.compile_loop import compile_loop
from rota.values.loop import Loop
from tests.findings.smallest import raised


def test_one_matrix_op_cannot_be_shared_out_to_two_turns() -> None:
    loop = Loop("gemm", waves=8)
    tile = loop.tile("A", size=8192)
    loop.load(tile, moved=8192)
    loop.mma(loop.accumulator("c", registers=4), loop.fragment("a", tile, registers=4), instruction=BF16)
    raised("O302", lambda: compile_loop(loop.build(), stagger=True))


def test_waves_that_share_no_matrix_unit_have_no_turns_to_take() -> None:
    raised("O302", lambda: compile_loop(GEMM_SHAPES[2].loop(instructions=False), stagger=True))


def test_a_single_buffer_leaves_no_time_between_the_turns() -> None:
    finding = raised("O302", lambda: compile_loop(MI300X_GEMM_SHAPES[0].loop(instructions=False), GFX942, stagger=True))
    assert "256 slots" in finding.message


def test_a_search_that_ended_early_does_not_say_that_there_is_none() -> None:
    at_once = ModuloScheduler(time_limit=0)
    finding = raised(
        "O302", lambda: compile_loop(GEMM_SHAPES[0].loop(instructions=False), stagger=True, scheduler=at_once)
    )
    assert "time_limit" in finding.fixes[0]
