from __future__ import annotations

from rota.values.loop import Loop
from tests.findings.smallest import raised


def test_a_value_that_nothing_makes_is_refused() -> None:
    loop = Loop("gemm", waves=4)
    loop.tile("A", size=1024)
    raised("D108", loop.build)


def test_two_values_of_one_name_are_refused() -> None:
    loop = Loop("gemm", waves=4)
    loop.load(loop.tile("A", size=1024), moved=1024)
    loop.tile("A", size=512)
    raised("D108", loop.build)


def test_registers_with_two_writers_are_refused() -> None:
    loop = Loop("gemm", waves=4)
    tile = loop.tile("A", size=1024)
    loop.load(tile, moved=1024)
    loop.fragment("a", tile, registers=4)
    loop.mma("a", "a", instruction="v_mfma_f32_16x16x32_bf16")
    raised("D108", loop.build)
