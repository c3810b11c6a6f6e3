from __future__ import annotations

import pytest

from rota.isa.launch.interleaving import LATEST, Interleaving, backwards, draw_order
from tests.isa.global_pairs import PLACE, found
from tests.wording.golden import worded

STORE, LOAD, ATOMIC = (f"{name} {PLACE}" for name in ("store", "load", "atomic"))
WAIT, BARRIER = "s_waitcnt vmcnt(0)", "s_barrier"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((STORE, WAIT), (LOAD, WAIT)),
        ((STORE, WAIT), (STORE + " other", WAIT)),
        ((LOAD, WAIT), (STORE, WAIT)),
        ((STORE, BARRIER, WAIT), (BARRIER, LOAD, WAIT)),  # the wait stands after the barrier
        ((LOAD, BARRIER, WAIT), (BARRIER, STORE, WAIT)),
        ((STORE, "s_waitcnt lgkmcnt(0)", BARRIER, WAIT), (BARRIER, LOAD, WAIT)),  # a wait for another counter
        ((STORE, "store 1024", "s_waitcnt vmcnt(2)", BARRIER, WAIT), (BARRIER, LOAD, WAIT)),
        ((ATOMIC, WAIT), (LOAD, WAIT)),
        ((ATOMIC, WAIT), (STORE, WAIT)),
    ],
)
@pytest.mark.parametrize("order", [LATEST, backwards(2), draw_order(0), draw_order(1)], ids=lambda order: order.label)
def test_two_waves_use_memory_and_nothing_orders_them(
    first: tuple[str, ...], second: tuple[str, ...], order: Interleaving
) -> None:
    for one, two in ((first, second), (second, first)):
        assert {finding.code for finding in found(one, two, order=order)} == {"I302"}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((STORE, WAIT, BARRIER), (BARRIER, LOAD, WAIT)),
        ((LOAD, WAIT, BARRIER), (BARRIER, STORE, WAIT)),
        ((STORE, WAIT, BARRIER), (BARRIER, STORE + " other", WAIT)),
        ((STORE, "store 1024", "s_waitcnt vmcnt(1)", BARRIER, WAIT), (BARRIER, LOAD, WAIT)),
        ((LOAD, WAIT), (LOAD, WAIT)),
        ((ATOMIC, WAIT), (ATOMIC, WAIT)),
        ((STORE, WAIT), ("load 512", WAIT)),  # other bytes
        ((STORE, LOAD, STORE, WAIT), ("s_nop 0",)),  # a wave's own accesses
        (("flag 0", WAIT), ("look 0", WAIT)),
        (("flag 0", WAIT), ("release 0", WAIT)),
    ],
)
@pytest.mark.parametrize("order", [LATEST, backwards(2), draw_order(0), draw_order(1)], ids=lambda order: order.label)
def test_what_is_ordered_is_no_finding(first: tuple[str, ...], second: tuple[str, ...], order: Interleaving) -> None:
    assert found(first, second, order=order) == ()


def test_a_flag_orders_two_waves_if_it_was_set_before_it_was_read() -> None:
    sides = (STORE, WAIT, "flag 0", WAIT), ("look 0", WAIT, LOAD, WAIT)
    assert found(*sides) == ()
    assert {finding.code for finding in found(*sides, order=backwards(2))} == {"I302"}  # looked, and didn't see it
    assert {finding.code for finding in found((STORE, "flag 0", WAIT), sides[1])} == {"I302"}


def test_a_plain_access_races_with_an_atomic_one() -> None:
    assert {finding.code for finding in found(("plain 0", WAIT), ("look 0", WAIT))} == {"I302"}


def test_it_names_both_ends_and_the_bytes() -> None:
    (finding,) = found((STORE, WAIT), (LOAD, WAIT))
    worded(finding)
    assert "global_load_dword" in finding.message
    assert [concern.label.split()[0] for concern in finding.concerns] == ["global_load_dword", "global_store_dword"]
    assert dict(finding.evidence) == {
        "workgroup": "0, 0, 0", "wave": 1, "other wave": 0, "bytes": f"{PLACE} to {PLACE + 255} of buffer 0",
    }  # fmt: skip
