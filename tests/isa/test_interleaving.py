"""Orders: how many, which ones first, and in which order workgroups run."""

from __future__ import annotations

from rota.isa.launch.interleaving import EARLIEST, LATEST, backwards, draw_order, some_interleavings


def test_any_number_of_orders_begins_with_the_adversarial_ones() -> None:
    """Then drawn ones and single waves by turns, as long as there are waves; each once."""
    labels = [order.label for order in some_interleavings(3, 12, seed=4)]
    assert labels[:5] == ["latest", "earliest", "backwards", "seed 4, any", "wave 2 ahead"]
    assert labels[5::2] == ["seed 5, latest", "seed 6, any", "seed 7, latest", "seed 8, any"]
    assert labels[6::2] == ["wave 1 behind", "wave 1 ahead", "wave 0 behind"]
    assert some_interleavings(3, 2) == (LATEST, EARLIEST)
    assert len({*some_interleavings(8, 40)}) == 40


def test_workgroups_run_in_the_order_that_is_asked_for() -> None:
    assert LATEST.order_workgroups(range(5)) == [0, 1, 2, 3, 4]
    assert backwards(2).order_workgroups(range(5)) == [4, 3, 2, 1, 0]
    assert (
        sorted(draw_order(3).order_workgroups(range(20))) == [*range(20)] != draw_order(3).order_workgroups(range(20))
    )
