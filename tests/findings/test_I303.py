from __future__ import annotations

import pytest

from rota.targets.memory_model import HandOverPiece as Piece
from tests.isa.global_pairs import PLACE, found
from tests.wording.golden import worded

STORE, OTHER, LOAD, ATOMIC = (f"store {PLACE}", f"store {PLACE} other", f"load {PLACE}", f"atomic {PLACE}")
WAIT = "s_waitcnt vmcnt(0)"
WRITE_BACK, INVALIDATE = "buffer_wbl2 sc1", "buffer_inv sc1"
STORE_THROUGH = f"global_store_dword v2, v3, s[4:5] offset:{PLACE} sc1"
LOAD_AROUND = f"global_load_dword v8, v2, s[4:5] offset:{PLACE} sc1"
PLAIN_LOOK = "global_load_dword v9, v4, s[4:5]"
SCALAR_LOAD = f"s_load_dword s12, s[4:5], {PLACE:#x}"
RELEASE, ACQUIRE = (STORE, WRITE_BACK, WAIT, "flag 0"), ("look 0", WAIT, INVALIDATE, LOAD, WAIT)


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
        ((STORE, WRITE_BACK, "release 0", WAIT), ("acquire 0", WAIT, INVALIDATE, LOAD, WAIT)),
        ((STORE, WRITE_BACK, WAIT, "release 0"), ("acquire 0", INVALIDATE, LOAD, WAIT)),
        ((STORE, WRITE_BACK, WAIT, "release 0"), (LOAD, "acquire 0", WAIT, INVALIDATE)),
        ((STORE, WRITE_BACK, WAIT, "release 0"), ("acquire 4", WAIT, INVALIDATE, LOAD, WAIT)),
        ((STORE, WRITE_BACK, WAIT, "release 0"), ("release 0", WAIT, INVALIDATE, LOAD, WAIT)),  # nothing comes back
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
        (RELEASE, ACQUIRE),
        ((STORE, WRITE_BACK, WAIT, "release 0"), ("acquire 0", WAIT, INVALIDATE, LOAD, WAIT)),
        ((STORE, WAIT, WRITE_BACK, WAIT, "flag 0"), ACQUIRE),
        # A store reads no cache, a load writes none, and what passes them needs neither.
        ((STORE, WRITE_BACK, WAIT, "flag 0"), ("acquire 0", WAIT, OTHER, WAIT)),
        ((LOAD, WAIT, "release 0"), ("look 0", WAIT, STORE, WAIT)),
        ((STORE_THROUGH, WAIT, "flag 0"), ACQUIRE),
        (RELEASE, ("look 0", WAIT, LOAD_AROUND, WAIT)),
        ((ATOMIC, WAIT, "flag 0"), ACQUIRE),
        # System scope is wider.
        ((STORE, "buffer_wbl2 sc0 sc1", WAIT, "flag 0"), ("look 0", WAIT, "buffer_inv sc0 sc1", LOAD, WAIT)),
        (RELEASE, ("look 0", WAIT, INVALIDATE, "s_dcache_inv", "s_waitcnt lgkmcnt(0)", SCALAR_LOAD)),
    ],
)
def test_what_an_atomic_orders_is_no_finding(first: tuple[str, ...], second: tuple[str, ...]) -> None:
    assert codes(first, second) == set()


def test_a_plain_flag_orders_nothing() -> None:
    assert "I303" in codes((STORE, WAIT, "plain 0"), ("look 0", WAIT, LOAD, WAIT))


def without(lines: tuple[str, ...], gone: str) -> tuple[str, ...]:
    place = lines.index(gone)
    return (*lines[:place], *lines[place + 1 :])


@pytest.mark.parametrize(
    ("first", "second", "missing"),
    [
        (without(RELEASE, WRITE_BACK), ACQUIRE, {Piece.WRITE_BACK}),
        ((WRITE_BACK, STORE, WAIT, "flag 0"), ACQUIRE, {Piece.WRITE_BACK}),
        ((STORE, "buffer_wbl2 sc0", WAIT, "flag 0"), ACQUIRE, {Piece.WRITE_BACK_SCOPE}),
        ((STORE, WAIT, WRITE_BACK, "flag 0"), ACQUIRE, {Piece.WRITE_BACK_WAIT}),
        ((STORE, WAIT, WRITE_BACK, "load 512", "s_waitcnt vmcnt(1)", "flag 0"), ACQUIRE, {Piece.WRITE_BACK_WAIT}),
        (without(RELEASE, WAIT), ACQUIRE, {Piece.DATA_WAIT, Piece.WRITE_BACK_WAIT}),
        ((STORE_THROUGH, "flag 0"), ACQUIRE, {Piece.DATA_WAIT}),
        ((*RELEASE[:-1], "plain 0"), ACQUIRE, {Piece.STORE_SCOPE}),
        (RELEASE, (PLAIN_LOOK, *ACQUIRE[1:]), {Piece.LOAD_SCOPE}),
        (RELEASE, without(ACQUIRE, INVALIDATE), {Piece.INVALIDATE}),
        (RELEASE, ("look 0", WAIT, "buffer_inv sc0", LOAD, WAIT), {Piece.INVALIDATE_SCOPE}),
        (RELEASE, ("look 0", INVALIDATE, WAIT, LOAD, WAIT), {Piece.WAIT_BEFORE_INVALIDATE}),
        (RELEASE, ("look 0", LOAD_AROUND, WAIT), {Piece.LOAD_WAIT}),
        (RELEASE, ("look 0", WAIT, INVALIDATE, SCALAR_LOAD), {Piece.INVALIDATE}),
        (without(RELEASE, WRITE_BACK), without(ACQUIRE, INVALIDATE), {Piece.WRITE_BACK, Piece.INVALIDATE}),
    ],
)
def test_it_says_what_a_flag_lacks(first: tuple[str, ...], second: tuple[str, ...], missing: set[Piece]) -> None:
    """And names the two accesses of the flag."""
    of_data = [each for each in found(first, second, workgroups=True) if "flag's store" in dict(each.evidence)]
    assert {each.code for each in of_data} == {"I303"}
    for finding in of_data:
        evidence = dict(finding.evidence)
        assert set(str(evidence["missing"]).split(", ")) == {each.value for each in missing}
        assert "global_store_dword v4" in str(evidence["flag's store"])
        assert "global_load_dword v9" in str(evidence["flag's load"])
        worded(finding)


@pytest.mark.parametrize(("barrier", "orders"), [("s_barrier", True), ("s_nop 0", False)])
def test_one_wave_may_set_the_flag_for_all_of_them(barrier: str, orders: bool) -> None:
    """Wave 1 of workgroup 0 stores, and wave 0 sets the flag behind a barrier."""
    setter = ("s_cmp_lg_u32 s8, 0", "s_cbranch_scc1 .LBB0_8", barrier, WRITE_BACK, WAIT, "release 0", "s_endpgm")
    stored = (".LBB0_8:", STORE, WAIT, barrier)
    reads = ("acquire 0", WAIT, INVALIDATE, barrier, LOAD, WAIT)
    assert (codes_of_two_waves((*setter, *stored), reads) == set()) == orders
    own = (".LBB0_8:", STORE, WRITE_BACK, WAIT, barrier)  # a wave may write back for itself
    assert (codes_of_two_waves((*without(without(setter, WRITE_BACK), WAIT), *own), reads) == set()) == orders


@pytest.mark.parametrize("stored", [(STORE, "s_barrier"), (STORE, "s_barrier", WAIT)])
def test_a_barrier_alone_does_not_wait_for_stores_of_other_waves(stored: tuple[str, ...]) -> None:
    setter = ("s_cmp_lg_u32 s8, 0", "s_cbranch_scc1 .LBB0_8", "s_barrier", WRITE_BACK, WAIT, "release 0", "s_endpgm")
    reads = ("acquire 0", WAIT, INVALIDATE, "s_barrier", LOAD, WAIT)
    assert codes_of_two_waves((*setter, ".LBB0_8:", *stored), reads) == {"I303"}


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
