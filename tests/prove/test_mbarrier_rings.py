"""Producers and consumers that hand buffers over by barriers in LDS, for every number of rounds."""

from __future__ import annotations

import pytest

from rota.prove.kernel_proof import ARRIVALS_ASSUMED
from rota.prove.verdict import Status
from tests.prove.test_gfx1250 import FIRST, MEET, judged, said

FULL, EMPTY = 6, 16  # the registers that hold their places
STORE, LOAD = "ds_store_b32 v1, v0", "ds_load_b32 v2, v1"
COUNT = ("s_add_co_i32 s8, s8, 1", "s_cmp_lg_u32 s8, s7")


def arrive(at: int, count: int = 1) -> tuple[str, ...]:
    return (f"v_mov_b32_e32 v8, {count}", "s_mov_b32 exec_lo, 1",
            f"ds_atomic_barrier_arrive_rtn_b64 v[10:11], v{at}, v[8:9]", "s_mov_b32 exec_lo, -1",
            "s_wait_dscnt 0x0")  # fmt: skip


def wait(name: str, at: int, *, turned: int = 0, shift: int = 0) -> tuple[str, ...]:
    """Until the phase of this round has ended, or if it is turned the one before."""
    return (
        f"s_lshr_b32 s9, s8, {shift}", f"s_xor_b32 s9, s9, {turned}", f"{name}:", "s_sleep 1", f"ds_load_b32 v7, v{at}",
        "s_wait_dscnt 0x0", "v_readfirstlane_b32 s10, v7", "s_lshr_b32 s10, s10, 29", "s_xor_b32 s10, s10, s9",
        "s_bitcmp0_b32 s10, 0", f"s_cbranch_scc1 {name}",
    )  # fmt: skip


def loop(name: str, *body: str) -> tuple[str, ...]:
    return ("s_mov_b32 s8, 0", f"{name}:", *body, *COUNT, f"s_cbranch_scc1 {name}")


FILL = (*wait("free", EMPTY, turned=1), STORE, *arrive(FULL))
DRAIN = (*wait("there", FULL), LOAD, *arrive(EMPTY))


def ring(
    fill: tuple[str, ...] = FILL, drain: tuple[str, ...] = DRAIN, *, full: int = 0, empty: int = 0,
    third: tuple[str, ...] = (), place: str = "v_nop",
) -> tuple[str, ...]:  # fmt: skip
    """Wave 0 fills, wave 1 drains, as often as an argument says; the words hold so many arrivals, less one."""
    words = [
        line.format(number, at) for at, number in ((FULL, full), (EMPTY, empty))
        for line in ("v_mov_b32_e32 v4, {0}", "v_mov_b32_e32 v5, {0}", "ds_store_b64 v{1}, v[4:5]")
    ]  # fmt: skip
    return (
        *FIRST, "s_load_b32 s7, s[0:1], 0x0", "s_wait_kmcnt 0x0", "v_mov_b32_e32 v6, 0x200", "v_mov_b32_e32 v9, 0",
        "v_mov_b32_e32 v16, 0x208", "s_cmp_lg_u32 s6, 0", "s_cbranch_scc1 begun", "s_mov_b32 exec_lo, 1", *words,
        "s_mov_b32 exec_lo, -1", "s_wait_dscnt 0x0", "begun:", *MEET, place, "s_cmp_eq_u32 s6, 1",
        "s_cbranch_scc1 drain", "s_cmp_eq_u32 s6, 2", "s_cbranch_scc1 third", *loop("fills", *fill), "s_branch end",
        "drain:", *loop("drains", *drain), "s_branch end", "third:", *third, "end:", "s_wait_dscnt 0x0",
    )  # fmt: skip


def test_a_ring_of_one_buffer_is_proved() -> None:
    assert said(*ring()) == (Status.PROVED, [])


@pytest.mark.parametrize(
    "lines",
    [
        ring(fill=(STORE, *arrive(FULL))),  # it doesn't wait for the buffer to be empty
        ring(drain=(LOAD, *arrive(EMPTY))),  # nor to be full
        ring(fill=(*wait("free", EMPTY, turned=1), *arrive(FULL), STORE)),
        ring(drain=(*wait("there", FULL), *arrive(EMPTY), LOAD)),
        ring(drain=(*wait("there", FULL, turned=1), LOAD, *arrive(EMPTY))),  # for a phase that has ended
        ring(fill=(*wait("free", FULL, turned=1), STORE, *arrive(FULL))),  # for another word
        ring(fill=(*wait("free", EMPTY, turned=1), STORE, *arrive(FULL, 2))),
    ],
)
def test_a_ring_that_hands_over_too_early_is_found(lines: tuple[str, ...]) -> None:
    status, codes = said(*lines)
    assert (status, codes[0]) == (Status.ALARM, "I109")


@pytest.mark.parametrize(
    "lines",
    [
        ring(fill=(*wait("free", EMPTY), STORE, *arrive(FULL))),  # for a phase that ends only after it has been used
        ring(full=1),
        ring(empty=1),
    ],
)
def test_waves_that_wait_for_ever_are_taken_for_granted(lines: tuple[str, ...]) -> None:
    verdict = judged(*lines)
    assert verdict.status is Status.PROVED
    assert ARRIVALS_ASSUMED in verdict.assumptions


def test_two_that_drain_are_both_counted() -> None:
    """The third wave drains, too, at places and labels of its own."""
    drain = [line.replace("there", "other") for line in DRAIN]
    third = loop("thirds", *drain)
    assert said(*ring(empty=1, third=third), block=96) == (Status.PROVED, [])
    assert said(*ring(empty=0, third=third), block=96)[0] is not Status.PROVED


def test_what_is_handed_on_is_known_to_all_who_get_it() -> None:
    """The third wave reads what wave 0 has written, though it waits for wave 1 alone."""
    third, once = ("s_mov_b32 s8, 0", *wait("other", EMPTY), LOAD), "s_mov_b32 s7, 1"
    fill, there = (STORE, *arrive(FULL)), wait("there", FULL)
    assert said(*ring(fill, (*there, *arrive(EMPTY)), third=third, place=once), block=96) == (Status.PROVED, [])
    status, codes = said(*ring(fill, (*arrive(EMPTY), *there), third=third, place=once), block=96)
    assert (status, codes) == (Status.ALARM, ["I109"])


def test_a_ring_of_two_buffers_is_proved() -> None:
    """The words of buffer i are 16 * i bytes on, and its phase turns every other round."""
    step = (
        "s_and_b32 s11, s8, 1", "s_lshl_b32 s12, s11, 4", "s_lshl_b32 s11, s11, 7", "v_add_nc_u32_e32 v3, s11, v1",
        "v_mov_b32_e32 v6, s12", "v_add_nc_u32_e32 v6, 0x200, v6", "v_add_nc_u32_e32 v16, 8, v6",
    )  # fmt: skip
    store, load = STORE.replace("v1, v0", "v3, v0"), LOAD.replace("v1", "v3")
    first = ring()[ring().index("v_mov_b32_e32 v4, 0") :][:6]
    words = (
        "s_cmp_lg_u32 s6, 0", "s_cbranch_scc1 both", "s_mov_b32 exec_lo, 1", "v_mov_b32_e32 v17, 0x210",
        "v_mov_b32_e32 v18, 0x218", *(line.replace("v6", "v17").replace("v16", "v18") for line in first),
        "s_mov_b32 exec_lo, -1", "s_wait_dscnt 0x0", "both:", *MEET,
    )  # fmt: skip
    fill = (*step, *wait("free", EMPTY, turned=1, shift=1), store, *arrive(FULL))
    drain = (*step, *wait("there", FULL, shift=1), load, *arrive(EMPTY))
    place = "\n".join(words)
    assert said(*ring(fill, drain, place=place)) == (Status.PROVED, [])
    early = (*step, *wait("there", FULL, turned=1, shift=1), load, *arrive(EMPTY))
    status, codes = said(*ring(fill, early, place=place))
    assert (status, codes[0]) == (Status.ALARM, "I109")
