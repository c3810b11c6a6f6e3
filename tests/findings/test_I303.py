from __future__ import annotations

import pytest

from tests.isa.global_pairs import PLACE, found
from tests.wording.golden import worded

STORE, OTHER, LOAD, ATOMIC = (f"store {PLACE}", f"store {PLACE} other", f"load {PLACE}", f"atomic {PLACE}")
WAIT = "s_waitcnt vmcnt(0)"


def codes(*sides: tuple[str, ...]) -> set[str]:
    first, second = sides
    return {finding.code for finding in found(first, second, workgroups=True)}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((STORE, WAIT), (OTHER, WAIT)),
        ((STORE, WAIT), (LOAD, WAIT)),
        ((LOAD, WAIT), (STORE, WAIT)),
        ((ATOMIC, WAIT), (LOAD, WAIT)),
        ((STORE, WAIT, "s_barrier"), ("s_barrier", LOAD, WAIT)),  # a barrier holds one workgroup together
        # Flags that order nothing: the store isn't waited for, the flag isn't, it is read too late, is another one.
        ((STORE, "release 0", WAIT), ("acquire 0", WAIT, LOAD, WAIT)),
        ((STORE, WAIT, "release 0"), ("acquire 0", LOAD, WAIT)),
        ((STORE, WAIT, "release 0"), (LOAD, "acquire 0", WAIT)),
        ((STORE, WAIT, "release 0"), ("acquire 4", WAIT, LOAD, WAIT)),
        ((STORE, WAIT, "release 0"), ("release 0", WAIT, LOAD, WAIT)),  # nothing comes back
    ],
)
def test_two_workgroups_use_memory_and_nothing_orders_them(first: tuple[str, ...], second: tuple[str, ...]) -> None:
    assert codes(first, second) == {"I303"}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((STORE, WAIT), ("load 512", WAIT)),
        ((LOAD, WAIT), (LOAD, WAIT)),
        ((ATOMIC, WAIT), (ATOMIC, WAIT)),
        ((STORE, WAIT, "release 0"), ("acquire 0", WAIT, LOAD, WAIT)),
        ((STORE, WAIT, "flag 0"), ("look 0", WAIT, LOAD, WAIT)),
        ((STORE, WAIT, "flag 0"), ("acquire 0", WAIT, OTHER, WAIT)),
        ((LOAD, WAIT, "release 0"), ("look 0", WAIT, STORE, WAIT)),
    ],
)
def test_what_an_atomic_orders_is_no_finding(first: tuple[str, ...], second: tuple[str, ...]) -> None:
    assert codes(first, second) == set()


def test_a_plain_flag_orders_nothing() -> None:
    assert "I303" in codes((STORE, WAIT, "plain 0"), ("look 0", WAIT, LOAD, WAIT))


@pytest.mark.parametrize(("barrier", "orders"), [("s_barrier", True), ("s_nop 0", False)])
def test_one_wave_may_set_the_flag_for_all_of_them(barrier: str, orders: bool) -> None:
    """Wave 1 of workgroup 0 stores, and wave 0 sets the flag behind a barrier."""
    setter = ("s_cmp_lg_u32 s8, 0", "s_cbranch_scc1 .LBB0_8", barrier, "release 0", "s_endpgm", ".LBB0_8:")
    stored = (STORE, WAIT, barrier)
    assert (codes_of_two_waves((*setter, *stored), ("acquire 0", WAIT, barrier, LOAD, WAIT)) == set()) == orders


def codes_of_two_waves(first: tuple[str, ...], second: tuple[str, ...]) -> set[str]:
    return {finding.code for finding in found(first, second, workgroups=True, waves=2)}


def test_the_same_value_is_a_warning() -> None:
    assert codes((STORE, WAIT), (STORE, WAIT)) == {"I304"}


def test_it_names_both_workgroups() -> None:
    (finding,) = found((STORE, WAIT), (LOAD, WAIT), workgroups=True)
    worded(finding)
    assert "global_load_dword" in finding.message
    assert dict(finding.evidence) == {
        "workgroup": "1, 0, 0", "other workgroup": "0, 0, 0", "wave": 0, "other wave": 0,
        "bytes": f"{PLACE} to {PLACE + 255} of buffer 0",
    }  # fmt: skip
