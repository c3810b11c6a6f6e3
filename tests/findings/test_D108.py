from __future__ import annotations

from rota.values.loop import Loop
from tests.findings.smallest import raised


def test_a_value_that_nothing_makes_is_refused() -> None:
    loop = Loop("gemm", waves=4)
    loop.tile("A", size=1024)
    finding = raised("D108", loop.build)
    assert finding.message == "LDS value A has 0 writers; it needs at least one"


def test_two_values_of_one_name_are_refused() -> None:
    loop = Loop("gemm", waves=4)
    loop.load(loop.tile("A", size=1024), moved=1024)
    loop.tile("A", size=512)
    assert raised("D108", loop.build).message == "2 values are named 'A'"


def test_registers_with_two_writers_are_refused() -> None:
    loop = Loop("gemm", waves=4)
    tile = loop.tile("A", size=1024)
    loop.load(tile, moved=1024)
    loop.fragment("a", tile, registers=4)
    loop.mma("a", "a", instruction="v_mfma_f32_16x16x32_bf16")
    assert "needs exactly one" in raised("D108", loop.build).message
