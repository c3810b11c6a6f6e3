from __future__ import annotations

from rota.order.modulo.handover import Delivery, Handover, derive_deliveries, derive_handovers
from rota.program.loop_spec import LoopSpec, Read
from rota.values.loop import Loop


def stencil() -> LoopSpec:
    """A tile in two parts, read this iteration and the next."""
    loop = Loop("stencil", waves=4)
    tile = loop.tile("A", size=8192)
    loop.load(tile, name="left", moved=4096)
    loop.load(tile, name="right", moved=4096)
    a = loop.fragment("a", tile, registers=4)
    loop.valu("total", [a, Read(value="a", distance=1), Read(value="total", distance=1)], registers=1)
    return loop.build()


def test_every_tile_is_handed_over_twice() -> None:
    assert list(derive_handovers(stencil(), {"A": 3})) == [
        Handover("A", (0, 1), (2,), 0, lands=True),
        Handover("A", (2,), (0, 1), 3, lands=False),
    ]


def test_registers_that_lds_filled_are_delivered_to_each_user() -> None:
    assert list(derive_deliveries(stencil())) == [Delivery(2, 3, 0), Delivery(2, 3, 1)]


def test_a_tile_without_a_count_has_one_copy() -> None:
    assert [handover.distance for handover in derive_handovers(stencil(), {})] == [0, 1]
