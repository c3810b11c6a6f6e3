from __future__ import annotations

import pytest

from tests.isa.global_pairs import PLACE, found

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


def test_the_same_value_is_a_warning() -> None:
    assert codes((STORE, WAIT), (STORE, WAIT)) == {"I304"}


def test_it_names_both_workgroups() -> None:
    (finding,) = found((STORE, WAIT), (LOAD, WAIT), workgroups=True)
    assert finding.message == "global_load_dword reads memory; nothing orders it with another workgroup's write"
    assert dict(finding.evidence) == {
        "workgroup": "1, 0, 0", "other workgroup": "0, 0, 0", "wave": 0, "other wave": 0,
        "bytes": f"{PLACE} to {PLACE + 255} of buffer 0",
    }  # fmt: skip
