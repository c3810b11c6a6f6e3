"""Asynchronous and tensor copies of gfx1250 in the proof, and kernels that are known to be right or wrong."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from rota.prove.kernel_proof import ARRIVALS_ASSUMED, NOWHERE_ASSUMED, prove_object
from rota.prove.verdict import Status, Verdict
from tests.isa.gfx1250 import assembled
from tests.shared import shared
from tests.wording.golden import mentions

FOLDER = "kernels/gfx1250"


def judged(*body: str, lds: int = 2048, block: int = 64) -> Verdict:
    code = assembled(*body, more=f".amdhsa_group_segment_fixed_size {lds}", lds=lds, vgprs=512)
    (verdict,) = prove_object(code, block=block)
    return verdict


def said(*body: str, lds: int = 2048, block: int = 64) -> tuple[Status, list[str]]:
    verdict = judged(*body, lds=lds, block=block)
    return verdict.status, [each.code for each in verdict.findings]


def without(lines: Sequence[str], *places: int) -> tuple[str, ...]:
    return tuple(line for place, line in enumerate(lines) if place not in places)


# Asynchronous copies: each lane names its place in LDS, and only asynccnt says when the copy has ended.

ADDRESS = ("s_load_b64 s[4:5], s[0:1], 0x0", "s_wait_kmcnt 0x0", "v_lshlrev_b32_e32 v1, 2, v0")
MEET = ("s_barrier_signal -1", "s_barrier_wait -1")
FETCH = "global_load_async_to_lds_b32 v1, v1, s[4:5]"
OTHER = "v_xor_b32_e32 v2, 0x80, v1"  # the place of the other wave
LOADED = (*ADDRESS, FETCH, "s_wait_asynccnt 0x0", *MEET, OTHER, "ds_load_b32 v3, v2", "s_wait_dscnt 0x0")
STORED = (
    *ADDRESS, "v_mov_b32_e32 v3, 1", "ds_store_b32 v1, v3", "s_wait_dscnt 0x0",
    "global_store_async_from_lds_b32 v1, v1, s[4:5]", "s_wait_asynccnt 0x0", "ds_store_b32 v1, v3", "s_wait_dscnt 0x0",
)  # fmt: skip


def test_a_tile_that_is_fetched_awaited_and_read_is_proved() -> None:
    assert said(*LOADED) == (Status.PROVED, [])


@pytest.mark.parametrize(
    ("places", "codes"), [((4,), ["I109", "I403"]), ((5, 6), ["I109"]), ((4, 5, 6), ["I109", "I403"])]
)
def test_a_load_needs_its_wait_and_the_barrier(places: tuple[int, ...], codes: list[str]) -> None:
    assert said(*without(LOADED, *places)) == (Status.ALARM, codes)


@pytest.mark.parametrize(
    "wait", ["s_wait_loadcnt 0x0", "s_wait_dscnt 0x0", "s_wait_storecnt 0x0", "s_wait_tensorcnt 0x0"]
)
def test_no_other_counter_counts_it(wait: str) -> None:
    status, codes = said(*LOADED[:4], wait, *LOADED[5:])
    assert (status, codes) == (Status.ALARM, ["I109", "I403"])


def test_loads_end_in_the_order_of_loads() -> None:
    """Two tiles in flight: a wait for one leaves the younger, and a store from LDS says nothing of either."""
    second = "global_load_async_to_lds_b32 v1, v1, s[4:5] offset:512"
    read = (*MEET, OTHER, "ds_load_b32 v3, v2", "s_wait_dscnt 0x0", "s_wait_asynccnt 0x0")
    assert said(*ADDRESS, FETCH, second, "s_wait_asynccnt 0x1", *read) == (Status.PROVED, [])
    assert said(*ADDRESS, FETCH, second, "s_wait_asynccnt 0x2", *read) == (Status.ALARM, ["I109"])
    store = "global_store_async_from_lds_b32 v1, v1, s[4:5] offset:512"
    assert said(*ADDRESS, FETCH, store, "s_wait_asynccnt 0x1", *read) == (Status.ALARM, ["I109"])


def test_what_is_copied_from_lds_is_not_overwritten_before() -> None:
    assert said(*STORED) == (Status.PROVED, [])
    assert said(*without(STORED, 7)) == (Status.ALARM, ["I106", "I403"])
    assert said(*without(STORED, 5)) == (Status.ALARM, ["I106"])  # nor copied before it is written


def test_two_copies_from_the_same_place_are_no_race() -> None:
    copy = "global_store_async_from_lds_b32 v1, v1, s[4:5]"
    assert said(*ADDRESS, copy, copy, "ds_load_b32 v3, v1", "s_wait_dscnt 0x0", "s_wait_asynccnt 0x0") == (
        Status.PROVED, [],
    )  # fmt: skip


def test_an_offset_counts_in_lds_too() -> None:
    assert said(*ADDRESS, f"{FETCH} offset:1792", "s_wait_asynccnt 0x0") == (Status.PROVED, [])
    status, codes = said(*ADDRESS, f"{FETCH} offset:1796", "s_wait_asynccnt 0x0")
    assert (status, codes) == (Status.ALARM, ["I105"])


def masked(store: str) -> tuple[str, ...]:
    """Lanes with an element copy it, the others write a zero: each gives 0x7fffffff where it isn't meant."""
    return (
        *ADDRESS, "s_load_b32 s6, s[0:1], 0x8", "s_wait_kmcnt 0x0", "v_cmp_lt_u32_e32 vcc_lo, s6, v0",
        "v_cndmask_b32_e32 v4, 0x7fffffff, v1, vcc_lo", store, "v_mov_b32_e32 v6, 0",
        "global_load_async_to_lds_b32 v4, v1, s[4:5]", "ds_store_b32 v5, v6", "s_wait_asynccnt 0x0", "s_wait_dscnt 0x0",
    )  # fmt: skip


def test_lanes_that_are_not_meant_access_nothing() -> None:
    others = "v_cndmask_b32_e64 v5, v1, 0x7fffffff, vcc_lo"
    verdict = judged(*masked(others))
    assert (verdict.status, verdict.findings) == (Status.PROVED, ())
    assert NOWHERE_ASSUMED in verdict.assumptions
    same = "v_cndmask_b32_e32 v5, 0x7fffffff, v1, vcc_lo"
    assert said(*masked(same)) == (Status.ALARM, ["I106"])
    turned = "v_sub_nc_u32_e32 v7, 0x7c, v1\nv_cndmask_b32_e64 v5, v7, 0x7fffffff, vcc_lo"
    status, codes = said(*masked(turned), block=32)
    assert (status, codes) == (Status.ALARM, ["I106"])  # a lane writes where another one copies


def test_an_address_is_bounded_with_its_offset() -> None:
    """128 * (1 & ~n) - 4 * lane + 124 is never below 0."""
    lines = (
        *ADDRESS, "s_load_b32 s6, s[0:1], 0x8", "s_wait_kmcnt 0x0", "s_and_not1_b32 s6, 1, s6", "s_lshl_b32 s6, s6, 7",
        "v_sub_nc_u32_e32 v3, s6, v1", "ds_load_b32 v4, v3 offset:124", "s_wait_dscnt 0x0",
    )  # fmt: skip
    assert said(*lines, lds=256, block=32) == (Status.PROVED, [])
    assert said(*lines, lds=252, block=32)[0] is Status.UNDECIDED


# Tensor copies: one job of the wave, which two groups of scalar registers describe.

TILE = (
    "s_load_b64 s[4:5], s[0:1], 0x0", "s_wait_kmcnt 0x0", "s_mov_b32 s12, {count}", "s_mov_b32 s13, {place}",
    "s_mov_b32 s14, s4", "s_or_b32 s15, s5, 0x80000000", "s_mov_b32 s16, {flags}", "s_mov_b32 s17, 0x200000",
    "s_mov_b32 s18, 0x40000", "s_mov_b32 s19, {dim0} << 16", "s_mov_b32 s20, {dim1}", "s_mov_b32 s21, 32",
    "s_mov_b32 s22, 0", "s_mov_b32 s23, 0",
)  # fmt: skip
COPY, WORDS = "tensor_load_to_lds s[12:15], s[16:23]", 2 << 16


def tile(count: str = "1", place: str = "0", flags: int = WORDS, dim0: int = 32, dim1: int = 4) -> tuple[str, ...]:
    """32 x 4 words, if nothing else is said."""
    values = {"count": count, "place": place, "flags": hex(flags), "dim0": dim0, "dim1": dim1}
    return tuple(line.format(**values) for line in TILE)


def copied(lines: tuple[str, ...], lds: int, *, instruction: str = COPY) -> tuple[Status, list[str]]:
    return said(*lines, instruction, "s_wait_tensorcnt 0x0", lds=lds, block=32)


@pytest.mark.parametrize(
    ("lines", "size"),
    [
        (tile(), 512),
        (tile(place="0x100"), 768),
        (tile(flags=1 << 16), 256),
        (tile(dim1=0), 128),
        (tile(flags=WORDS | 1 << 20 | 4 << 22 | 3 << 25), 512 + 3 * 16),  # four words after each 32
        (tile(flags=WORDS | 1 << 20 | 3 << 22), 512 + 7 * 4),
    ],
)
def test_a_tile_has_a_known_size(lines: tuple[str, ...], size: int) -> None:
    for instruction in (COPY, "tensor_store_from_lds s[12:15], s[16:23]"):
        assert copied(lines, size, instruction=instruction) == (Status.PROVED, [])
        assert copied(lines, size - 4, instruction=instruction) == (Status.ALARM, ["I105"])


def test_a_copy_that_is_switched_off_touches_nothing() -> None:
    assert copied(tile(count="0"), 4) == (Status.PROVED, [])
    assert copied(tile(count="2"), 4) == (Status.ALARM, ["I105"])  # no number but 0 is known to switch it off


def test_padding_is_not_written() -> None:
    """A wave writes its own words between the rows of a tile that is still on its way."""
    padded = tile(flags=WORDS | 1 << 20 | 4 << 22)
    write = ("v_mov_b32_e32 v1, {}", "ds_store_b32 v1, v0", "s_wait_dscnt 0x0", "s_wait_tensorcnt 0x0")
    between = [line.format(128) for line in write]
    inside = [line.format(132) for line in write]
    lanes = "s_mov_b32 exec_lo, 1"
    assert said(*padded, COPY, lanes, *between, block=32) == (Status.PROVED, [])
    assert said(*padded, COPY, lanes, *inside, block=32) == (Status.ALARM, ["I106"])


def test_tensor_copies_end_in_order() -> None:
    one, other = tile(), tile(place="0x200")
    read = ("v_lshlrev_b32_e32 v1, 2, v0", "ds_load_b32 v2, v1", "s_wait_dscnt 0x0", "s_wait_tensorcnt 0x0")
    assert said(*one, COPY, *other, COPY, "s_wait_tensorcnt 0x1", *read, block=32) == (Status.PROVED, [])
    assert said(*one, COPY, *other, COPY, "s_wait_tensorcnt 0x2", *read, block=32) == (Status.ALARM, ["I106"])


@pytest.mark.parametrize(
    ("lines", "field"),
    [
        (tile(flags=WORDS | 3), "mask of workgroups"),
        (tile(flags=WORDS | 1 << 19), "iteration"),
        (tile(count="0x80000001"), "gather or scatter"),
        ((*tile(), "s_mov_b32 s20, s4"), "tile_dim1"),
        ((*tile(), "s_mov_b32 s16, s4"), "mask of workgroups"),
    ],
)
def test_a_field_that_is_not_known_is_named(lines: tuple[str, ...], field: str) -> None:
    verdict = judged(*lines, COPY, "s_wait_tensorcnt 0x0", block=32)
    assert (verdict.status, [each.code for each in verdict.findings]) == (Status.INCONCLUSIVE, ["I401"])
    assert dict(verdict.findings[0].evidence)["field"] == field
    assert verdict.findings[0].concerns[0].label == COPY


# Other things that waves of 32 lanes need.


def test_a_transposing_read_is_done_by_all_lanes() -> None:
    lines = ("v_lshlrev_b32_e32 v1, 4, v0", "s_mov_b32 exec_lo, {}", "ds_load_tr16_b128 v[4:7], v1", "s_wait_dscnt 0x0")
    for lanes in (1, -1):
        body = [line.format(lanes) for line in lines]
        assert said(*body, lds=512, block=32) == (Status.PROVED, [])
        assert said(*body, lds=508, block=32) == (Status.REFUTED, ["I105"])


def test_a_waves_number_is_known() -> None:
    """Each wave writes 128 bytes of its own."""
    lines = (
        "s_bfe_u32 s4, ttmp8, 0x50019", "s_lshl_b32 s4, s4, 7", "v_and_b32_e32 v1, 31, v0",
        "v_lshl_add_u32 v1, v1, 2, s4", "ds_store_b32 v1, v0", "s_wait_dscnt 0x0",
    )  # fmt: skip
    assert said(*lines, lds=256) == (Status.PROVED, [])
    assert said(*lines, lds=252) == (Status.REFUTED, ["I105"])


def test_a_mask_that_a_condition_selects_is_the_same_in_all_waves() -> None:
    """Whether waves meet is decided once for the workgroup."""
    lines = (
        "s_load_b32 s4, s[0:1], 0x0", "s_wait_kmcnt 0x0", "s_bitcmp1_b32 s4, 5", "s_cselect_b32 s5, -1, 0",
        "s_and_b32 vcc_lo, exec_lo, s5", "s_cbranch_vccz over", *MEET, "over:",
    )  # fmt: skip
    assert said(*lines) == (Status.PROVED, [])


@pytest.mark.parametrize(
    ("lines", "holds"),
    [
        (("s_mov_b64 s[4:5], src_shared_base", "s_or_b64 s[4:5], s[4:5], 0x200", "s_cmp_lg_u64 s[4:5], 0"), True),
        (("s_mov_b64 s[4:5], src_shared_base", "s_or_b64 s[4:5], s[4:5], 0x200", "s_cmp_eq_u64 s[4:5], 0"), False),
        (("s_mov_b32 s4, 0", "s_mov_b32 s5, 0", "s_cmp_lg_u64 s[4:5], 0"), False),
        (("s_mov_b32 s4, 0", "s_bitset1_b32 s4, 31", "s_cmp_lg_u32 s4, 0x80000000"), False),
        (("s_mov_b32 s4, 5", "s_bitset0_b32 s4, 2", "s_cmp_eq_u32 s4, 1"), True),
        (("s_mov_b32 s4, 4", "s_mov_b32 s5, 0", "s_xor_b64 s[6:7], s[4:5], 4"), False),
        (("s_mov_b32 s4, 4", "s_mov_b32 s5, 8", "s_xor_b64 s[6:7], s[4:5], 4"), True),
    ],
)
def test_words_of_64_bits(lines: tuple[str, ...], holds: bool) -> None:
    """Outside of LDS if SCC is what it should be, else inside."""
    body = (*lines, f"s_cselect_b32 s8, {'0, 64' if holds else '64, 0'}", "v_mov_b32_e32 v1, s8", "ds_load_b32 v2, v1",
            "s_wait_dscnt 0x0")  # fmt: skip
    assert said(*body, lds=64, block=32) == (Status.PROVED, [])


# Named barriers: for waves that join them; whoever initialises one, the workgroup meets before others join it.

BAR = "s_mov_b32 m0, {}"
FIRST = ("s_bfe_u32 s6, ttmp8, 0x50019", "v_and_b32_e32 v1, 31, v0", "v_lshlrev_b32_e32 v1, 2, v1")
SET_UP = ("s_cmp_lg_u32 s6, 0", "s_cbranch_scc1 begun", BAR.format("{count}0001"), "s_barrier_init m0", "begun:", *MEET)


def handed_over(
    *, count: str = "0x2", joins: str = "s_barrier_join m0", signals: str = "s_barrier_signal m0", before: str = "",
    waits: str = "s_barrier_wait 1", others: tuple[str, ...] = (),
) -> tuple[str, ...]:  # fmt: skip
    """Wave 0 writes 32 words, wave 1 reads them after both have met; what other waves do comes after they part."""
    set_up = [line.replace("{count}", count) for line in SET_UP]
    return (
        *FIRST, *set_up, "s_cmp_gt_u32 s6, 1", "s_cbranch_scc1 others", BAR.format(1), joins, "s_cmp_lg_u32 s6, 0",
        "s_cbranch_scc1 meet", "ds_store_b32 v1, v0", "s_wait_dscnt 0x0", "meet:", before, signals, waits,
        "s_cmp_lg_u32 s6, 1", "s_cbranch_scc1 end", "ds_load_b32 v2, v1", "s_wait_dscnt 0x0", "s_branch end",
        "others:", *others, "end:",
    )  # fmt: skip


@pytest.mark.parametrize("block", [64, 128])
def test_two_waves_meet_at_a_barrier_of_their_own(block: int) -> None:
    verdict = judged(*handed_over(), block=block)
    assert (verdict.status, verdict.findings) == (Status.PROVED, ())
    assert said(*handed_over(signals="s_barrier_signal 1"), block=block) == (Status.PROVED, [])


def test_a_count_that_one_of_two_completes_orders_nothing() -> None:
    assert said(*handed_over(count="0x1"), block=128) == (Status.ALARM, ["I109"])


def test_a_count_that_nobody_completes_is_taken_for_granted() -> None:
    verdict = judged(*handed_over(count="0x3"), block=128)
    assert verdict.status is Status.PROVED  # of races: the waves hang
    assert ARRIVALS_ASSUMED in verdict.assumptions


def test_a_wave_that_does_not_join_is_not_ordered() -> None:
    """Nor is one that has ended: whether it was before is a matter of time."""
    touch = ("ds_store_b32 v1, v0", "s_wait_dscnt 0x0")
    assert said(*handed_over(others=touch), block=96) == (Status.ALARM, ["I109"])
    late = "ds_load_b32 v3, v1\ns_wait_dscnt 0x0"
    only_after = handed_over(others=(late,))
    verdict = judged(*(line for line in only_after if line != "ds_store_b32 v1, v0"), block=96)
    assert verdict.status is Status.PROVED  # all of them read
    written = [line.replace("ds_load_b32 v2, v1", "ds_store_b32 v1, v0") for line in only_after]
    written.remove("ds_store_b32 v1, v0")
    assert said(*written, block=96) == (Status.ALARM, ["I109"])


def test_a_write_after_the_signal_is_not_ordered() -> None:
    lines = handed_over(signals="s_barrier_signal m0\nds_store_b32 v1, v0\ns_wait_dscnt 0x0")
    status, codes = said(*lines, block=64)
    assert (status, set(codes)) == (Status.REFUTED, {"I109"})


@pytest.mark.parametrize(
    ("lines", "place"),
    [
        (handed_over(joins="s_nop 0"), "s_barrier_signal m0"),
        (handed_over(signals="s_nop 0"), "s_barrier_wait 1"),
        (handed_over(signals="s_barrier_signal 2"), "s_barrier_signal 2"),
        (handed_over(before="s_barrier_signal m0"), "s_barrier_signal m0"),
        (handed_over(waits="s_barrier_wait -1"), "s_barrier_wait 0xffff"),
        (handed_over(signals="s_mov_b32 m0, 0x30001\ns_barrier_signal m0"), "s_barrier_signal m0"),
        (handed_over(joins="s_mov_b32 m0, 2\ns_barrier_join m0"), "s_barrier_signal m0"),
        (
            handed_over(joins="s_load_b32 s8, s[0:1], 0x0\ns_wait_kmcnt 0x0\ns_mov_b32 m0, s8\ns_barrier_join m0"),
            "s_barrier_join m0",
        ),
        (tuple(line for line in handed_over() if line not in MEET), "s_barrier_signal m0"),
        (handed_over(count="0x0"), "s_barrier_init m0"),
        (handed_over(waits="s_cmp_lg_u32 s6, 0\ns_cbranch_scc0 end\ns_barrier_wait 1"), "s_endpgm"),
    ],
)
def test_a_barrier_that_the_proof_does_not_understand_ends_it(lines: tuple[str, ...], place: str) -> None:
    verdict = judged(*lines, block=128)
    assert verdict.status is Status.INCONCLUSIVE
    (finding,) = (each for each in verdict.findings if each.code == "I401")
    assert [each.label for each in finding.concerns] == [place]


# Barriers in LDS: a word counts arrivals, and waves poll the bit that turns when the last has come.

ARRIVES, POLLS = "ds_atomic_barrier_arrive_rtn_b64 v[10:11], v6, v[8:9]", "ds_load_b32 v7, v6"
ARRIVE = ("v_mov_b32_e32 v8, {count}", "v_mov_b32_e32 v9, 0", "v_mov_b32_e32 v6, 0x200", "s_mov_b32 exec_lo, 1",
          ARRIVES, "s_mov_b32 exec_lo, -1", "s_wait_dscnt 0x0")  # fmt: skip
ARRIVE_LATER = ("v_mov_b32_e32 v6, 0x200", "s_mov_b32 exec_lo, 1", "ds_atomic_async_barrier_arrive_b64 v6",
                "s_mov_b32 exec_lo, -1")  # fmt: skip
POLL = ("v_mov_b32_e32 v6, 0x200", "poll{n}:", "s_sleep 1", "ds_load_b32 v7, v6", "s_wait_dscnt 0x0",
        "v_readfirstlane_b32 s8, v7", "s_bitcmp{bit}_b32 s8, 29", "s_cbranch_scc1 poll{n}")  # fmt: skip
STORE = ("ds_store_b32 v1, v0",)
FETCHED = ("s_load_b64 s[4:5], s[0:1], 0x0", "s_wait_kmcnt 0x0", "global_load_async_to_lds_b32 v1, v1, s[4:5]")


def arrive(count: int = 1) -> tuple[str, ...]:
    return tuple(line.format(count=count) for line in ARRIVE)


def poll(name: int = 0, bit: int = 0) -> tuple[str, ...]:
    """Until the bit is no longer that one."""
    return tuple(line.format(n=name, bit=bit) for line in POLL)


def counted(
    *, word: int = 0, landed: str = "s_wait_dscnt 0x0", meet: tuple[str, ...] = MEET, writer: tuple[str, ...] = (),
    reader: tuple[str, ...] = (), third: tuple[str, ...] = (),
) -> tuple[str, ...]:  # fmt: skip
    """Wave 0 sets the word up and writes, wave 1 reads; a third one may do something else."""
    return (
        *FIRST, "s_cmp_lg_u32 s6, 0", "s_cbranch_scc1 begun", f"v_mov_b32_e32 v4, {word}", f"v_mov_b32_e32 v5, {word}",
        "v_mov_b32_e32 v6, 0x200", "s_mov_b32 exec_lo, 1", "ds_store_b64 v6, v[4:5]", "s_mov_b32 exec_lo, -1", landed,
        "begun:", *meet, "s_cmp_eq_u32 s6, 1", "s_cbranch_scc1 reader", "s_cmp_eq_u32 s6, 2", "s_cbranch_scc1 third",
        *writer, "s_branch end", "reader:", *reader, "ds_load_b32 v2, v1", "s_wait_dscnt 0x0", "s_branch end", "third:",
        *third, "end:",
    )  # fmt: skip


def test_a_wave_that_has_seen_the_phase_end_comes_after_what_was_done_before_it() -> None:
    """LDS instructions of a wave are performed in order, so that the arrival needs no wait before it."""
    assert said(*counted(writer=(*STORE, *arrive()), reader=poll())) == (Status.PROVED, [])


READ = "ds_load_b32 v3, v1", "s_wait_dscnt 0x0"


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (counted(writer=(*STORE, *arrive())), Status.REFUTED),  # nobody polls
        (counted(writer=(*arrive(), *STORE, "s_wait_dscnt 0x0"), reader=poll()), Status.REFUTED),  # too early
        (
            counted(writer=(*STORE, *arrive()), reader=("ds_load_b32 v3, v1", "s_wait_dscnt 0x0", *poll())),
            Status.REFUTED,
        ),
        (counted(writer=(*STORE, *arrive(2)), reader=poll()), Status.ALARM),  # the count may be reached before
    ],
)
def test_what_is_not_before_the_arrival_and_after_the_poll_is_not_ordered(
    lines: tuple[str, ...], status: Status
) -> None:
    assert said(*lines) == (status, ["I109"])


def test_a_word_that_counts_too_few_orders_nothing() -> None:
    """Of two waves that arrive, either may be the one that it counts."""
    writes = ("v_add_nc_u32_e32 v1, 0x80, v1", *STORE, *arrive())
    both = partial(counted, writer=(*STORE, *arrive()), third=writes, reader=(*poll(), "ds_load_b32 v3, v1 offset:128"))
    assert said(*both(word=1), block=96) == (Status.PROVED, [])
    status, codes = said(*both(word=0), block=96)
    assert (status, codes) == (Status.ALARM, ["I109"])
    idle = partial(counted, writer=(*STORE, *arrive()), third=arrive(), reader=poll())
    assert said(*idle(word=1), block=96) == (Status.PROVED, [])
    assert said(*idle(word=0), block=96) == (Status.ALARM, ["I109"])  # the idle one may come first


def test_a_word_that_counts_too_many_is_taken_for_granted() -> None:
    verdict = judged(*counted(word=1, writer=(*STORE, *arrive()), reader=poll()))
    assert verdict.status is Status.PROVED  # the reader hangs
    assert ARRIVALS_ASSUMED in verdict.assumptions


def test_a_copy_arrives_when_it_has_ended() -> None:
    ends = "s_wait_asynccnt 0x0"
    assert said(*counted(writer=(*FETCHED, *ARRIVE_LATER, ends), reader=poll())) == (Status.PROVED, [])
    assert said(*counted(writer=(*FETCHED, *arrive(), ends), reader=poll())) == (Status.ALARM, ["I109"])
    assert said(*counted(writer=(*FETCHED, ends, *arrive()), reader=poll())) == (Status.PROVED, [])
    assert said(*counted(writer=(*ARRIVE_LATER, *FETCHED, ends), reader=poll())) == (Status.ALARM, ["I109"])
    # An instruction of its own isn't one of the copies that it waits for.
    assert said(*counted(writer=(*STORE, *ARRIVE_LATER, "s_wait_dscnt 0x0"), reader=poll())) == (
        Status.REFUTED,
        ["I109"],
    )


def test_a_tensor_copy_arrives_by_itself() -> None:
    """Its place is word 64 of LDS, in units of 8 bytes."""
    flags, barrier = WORDS | 1 << 18, "s_or_b32 s17, s17, {}"
    lines = tile(flags=flags, dim1=1)
    copied_to = (*lines, barrier.format(64), COPY)
    ends = "s_wait_tensorcnt 0x0"
    assert said(*counted(writer=(*copied_to, ends), reader=poll())) == (Status.PROVED, [])
    without_flag = (*tile(dim1=1), barrier.format(64), COPY, ends)
    verdict = judged(*counted(writer=without_flag, reader=poll()))
    assert ARRIVALS_ASSUMED in verdict.assumptions
    verdict = judged(*counted(writer=(*lines, barrier.format(65), COPY, ends), reader=poll()))
    assert verdict.status is Status.INCONCLUSIVE


def test_the_workgroup_meets_after_one_wave_has_polled() -> None:
    """Then what was before the arrival is before what any wave does."""
    third = (*MEET, "ds_load_b32 v2, v1", "s_wait_dscnt 0x0")
    meets = counted(
        writer=(*FETCHED, *ARRIVE_LATER, *MEET, "s_wait_asynccnt 0x0"), reader=(*poll(), *MEET), third=third
    )
    assert said(*meets, block=96) == (Status.PROVED, [])
    apart = counted(writer=(*FETCHED, *ARRIVE_LATER, *MEET, "s_wait_asynccnt 0x0"), reader=MEET, third=third)
    assert said(*apart, block=96) == (Status.ALARM, ["I109"])


def test_a_call_is_refused_where_vector_units_are_waited_for() -> None:
    mode = "s_setreg_imm32_b32 hwreg(HW_REG_WAVE_SCHED_MODE, 0, 2), {}"
    jump = ("s_get_pc_i64 s[4:5]", "s_set_pc_i64 s[4:5]")
    for number in (0, 2):
        (finding,) = judged(mode.format(number), *jump).findings
        assert (finding.code, finding.concerns[0].label) == ("I401", jump[1])
        assert mentions(finding.message, "s_wait_alu") == (number == 2)


@pytest.mark.parametrize(
    ("lines", "place"),
    [
        (counted(landed="s_nop 0", writer=(*STORE, *arrive()), reader=poll()), POLLS),
        (counted(word=1, writer=("loop:", *arrive(), "s_cbranch_vccz loop"), reader=poll()), ARRIVES),
        (
            counted(writer=(*STORE, *arrive(), "ds_store_b64 v6, v[4:5]", "s_wait_dscnt 0x0"), reader=poll()),
            "ds_store_b64 v6, v[4:5]",
        ),
        (
            counted(writer=(*STORE, *arrive(), "ds_store_b32 v6, v4", "s_wait_dscnt 0x0"), reader=poll()),
            "ds_store_b32 v6, v4",
        ),
        (counted(writer=(*STORE, *(line.replace("v8, 1", "v8, s0") for line in arrive())), reader=poll()), ARRIVES),
        (counted(writer=(*STORE, *(line.replace("0x200", "s0") for line in arrive())), reader=poll()), ARRIVES),
        (counted(writer=(*STORE, *arrive()), reader=("s_barrier_signal -1", *poll())), POLLS),
    ],
)
def test_what_the_proof_does_not_follow_of_a_barrier_in_lds_ends_it(lines: tuple[str, ...], place: str) -> None:
    verdict = judged(*lines)
    assert verdict.status is Status.INCONCLUSIVE, str(verdict)
    (finding,) = (each for each in verdict.findings if each.code == "I401")
    assert [each.label for each in finding.concerns] == [place]


def test_later_phases_are_followed() -> None:
    hangs = judged(*counted(writer=(*STORE, *arrive()), reader=(*poll(), *poll(1, bit=1))))
    assert (hangs.status, ARRIVALS_ASSUMED in hangs.assumptions) == (Status.PROVED, True)
    assert said(*counted(writer=(*STORE, *arrive()), reader=(*poll(), *arrive()))) == (Status.PROVED, [])


def test_a_barrier_that_may_not_be_set_up_orders_nothing() -> None:
    """A wave may poll it before, and find any phase."""
    status, codes = said(*counted(meet=(), writer=(*STORE, *arrive()), reader=poll()))
    assert (status, codes) == (Status.REFUTED, ["I109", "I401"])


def test_a_loop_whose_result_is_used_later_is_no_wait() -> None:
    """It may end for another reason, before the phase has."""
    ends = "s_cmp_lg_u32 s8, 5"
    used = tuple(line.replace("s_bitcmp0_b32 s8, 29", ends) for line in poll())
    skips = ("s_bitcmp0_b32 s8, 29", "s_cbranch_scc1 end")
    assert said(*counted(writer=(*STORE, *arrive()), reader=(*used, *skips)))[0] is not Status.PROVED


def test_waves_meet_at_a_named_barrier_while_others_are_elsewhere() -> None:
    assert said(*handed_over(others=MEET), block=128)[0] is Status.PROVED
    late = handed_over(others=MEET, signals="s_barrier_signal m0\nds_store_b32 v1, v0\ns_wait_dscnt 0x0")
    assert said(*late, block=128)[0] is Status.ALARM
    by_signals = handed_over(others=MEET, signals="s_mov_b32 m0, 0x20001\ns_barrier_signal m0")
    without_count = [line for line in by_signals if line != "s_barrier_init m0"]
    assert said(*without_count, block=128)[0] is Status.PROVED
    early = [line.replace("0x20001", "0x10001") for line in without_count]
    assert said(*early, block=128)[0] is Status.ALARM


def test_a_named_barrier_whose_count_did_not_fit_orders_nothing_later() -> None:
    """Of three that meet at a count of two, one is left over: it counts for the next two."""
    meet = ("s_barrier_signal m0", "s_barrier_wait 1")
    first = [line.replace("{count}", "0x2") for line in SET_UP]
    lines = (
        *FIRST, *first, BAR.format(1), "s_barrier_join m0", *meet, "s_cmp_eq_u32 s6, 2", "s_cbranch_scc1 end",
        "s_cmp_lg_u32 s6, 0", "s_cbranch_scc1 read", *STORE, "s_wait_dscnt 0x0", *meet, "s_branch end", "read:", *meet,
        "ds_load_b32 v2, v1", "s_wait_dscnt 0x0", "end:",
    )  # fmt: skip
    assert said(*lines, block=64)[0] is Status.PROVED
    assert said(*lines, block=96)[0] is Status.ALARM


def test_a_signal_that_may_count_for_others_ends_the_proof() -> None:
    """The third wave has met nobody; its signal may come before those of the others."""
    late = ("s_mov_b32 m0, 2", "s_barrier_join m0", "s_mov_b32 m0, 0x10002", "s_barrier_signal m0", "s_barrier_wait 2",
            BAR.format(1), "s_barrier_join m0", "s_barrier_signal 1", "s_barrier_wait 1")  # fmt: skip
    verdict = judged(*handed_over(others=late), block=96)
    assert verdict.status is Status.INCONCLUSIVE
    (finding,) = (each for each in verdict.findings if each.code == "I401")
    assert [each.label for each in finding.concerns] == ["s_barrier_signal 1"]


def test_numbers_in_lds_are_known_once_the_workgroup_has_met() -> None:
    """Both waves write the same number, and read at that place; beyond 0x208 is no LDS."""
    write = ("v_mov_b32_e32 v4, {}", "v_mov_b32_e32 v6, 0x180", "ds_store_b32 v6, v4", "s_wait_dscnt 0x0")
    read = (*poll(), "v_mov_b32_e32 v6, 0x180", "ds_load_b32 v5, v6", "s_wait_dscnt 0x0", "ds_load_b32 v2, v5",
            "s_wait_dscnt 0x0")  # fmt: skip

    def body(number: object, *more: str) -> tuple[str, ...]:
        lines = tuple(line.format(number) for line in write)
        return counted(meet=(*lines, *MEET, *more), writer=(*STORE, *arrive()), reader=read)

    assert said(*body(0x40), lds=0x208)[0] is Status.PROVED
    assert said(*body(0x400), lds=0x208)[0] is Status.REFUTED
    assert said(*body(0x40, "ds_store_b32 v6, v0", "s_wait_dscnt 0x0"), lds=0x208)[0] is not Status.PROVED
    assert said(*body("v0"), lds=0x208)[0] is not Status.PROVED  # each lane another one


def test_a_loop_that_may_give_up_is_no_wait() -> None:
    """It counts its rounds, and ends when there have been enough."""
    rounds = "s_add_co_i32 s9, s9, 1\ns_and_b32 s8, s8, 0x20000000\ns_cmp_gt_i32 s9, 99\ns_cselect_b32 s8, 1, s8\n"
    gives_up = tuple(
        line.replace("s_bitcmp0_b32 s8, 29", f"{rounds}s_cmp_eq_u32 s8, 0") for line in ("s_mov_b32 s9, 0", *poll())
    )
    assert said(*counted(writer=(*STORE, *arrive()), reader=gives_up)) == (Status.REFUTED, ["I109"])


def test_a_wait_for_a_bit_that_is_there_orders_nothing() -> None:
    """Until the bit isn't 1: it is 0 at first.  A second such wait may pass, too."""
    body = counted(writer=(*STORE, *arrive()), reader=poll(bit=1))
    assert said(*body) == (Status.REFUTED, ["I109"])
    twice = counted(writer=(*STORE, "s_wait_dscnt 0x0"), reader=(*poll(bit=1), *poll(1, bit=1)))
    assert said(*twice) == (Status.REFUTED, ["I109"])


# Kernels that are right or wrong by construction.

TWINS = {
    "h_async_double": "I106 I109", "h_async_missing_wait": "I109 I403", "h_async_read_drain": "I109",
    "h_async_store_war": "I106", "h_dscnt_missing": "I103", "h_kmcnt_order": "I103", "h_load_tr": "I109",
    "h_named_pair": "I109", "h_named_ring": "I109", "h_mbarrier_count": "I109",
    "g_async_mbarrier": "I106", "g_tdm_mbarrier": "I106 I109",
    "h_reduce_split": "I109", "h_split_window": "I109", "h_tdm_pair": "I106 I403", "h_tdm_ring": "I109",
    "h_tdm_store_reuse": "I106", "h_trans_hazard": "I104", "h_wmma_gemm": "I103", "h_wmma_result_hazard": "I104",
    "h_wmma_valu_hazard": "I104", "g_async_store_reuse": "I106", "g_tdm_gemm_b2": "I106 I109",
    "g_tdm_gemm_b3": "I106 I109",
    "g_tdm_store_two": "I106 I109", "g_tdm_two_loads": "I106 I109",
}  # fmt: skip
WRONG = {
    **dict.fromkeys(("h_trans_hazard", "h_wmma_result_hazard", "h_wmma_valu_hazard"), Status.ONE_SOURCE),
    # Registers that no wait covers are no race that a replay looks for; that of mbarrier_count doesn't end.
    **dict.fromkeys(("h_dscnt_missing", "h_kmcnt_order", "h_wmma_gemm", "h_mbarrier_count"), Status.ALARM),
}

MODE_WRITES = frozenset({"g_tdm_two_loads"})  # LLVM writes MODE without the v_nop that one source asks for


def prove_shipped(name: str) -> Verdict:
    folder = {"h": "hip", "a": "hip", "g": "gluon"}.get(name[0], "triton")
    path = Path(shared(f"{FOLDER}/{folder}/{name}.gfx1250.hsaco"))
    notes = path.with_suffix(".json")
    known = json.loads(notes.read_text("utf-8")) if notes.exists() else {}
    block = (known["threads"], 1, 1) if "threads" in known else None
    (verdict,) = prove_object(path, dynamic_lds=known.get("shared"), block=block)
    return verdict


@pytest.mark.thorough
@pytest.mark.parametrize("name", TWINS)
def test_twins_are_told_apart(name: str) -> None:
    right, wrong = prove_shipped(f"{name}_ok"), prove_shipped(f"{name}_bad")
    noted = name in MODE_WRITES
    assert right.status is (Status.ONE_SOURCE if noted else Status.PROVED)
    assert [dict(each.evidence)["rule"] for each in right.findings] == ["mode_write"] * noted
    assert wrong.status is WRONG.get(name, Status.REFUTED)  # as a rule a replay shows it
    assert {each.code for each in wrong.findings} >= set(TWINS[name].split())


@pytest.mark.thorough
def test_a_wrong_gemm_by_asynchronous_copies_is_found() -> None:
    """Its right twin stays undecided: its last buffer is (K + 63) / 64 % 2 of a K that may be negative."""
    right, wrong = prove_shipped("g_async_gemm_ok"), prove_shipped("g_async_gemm_bad")
    assert (right.status, {each.code for each in right.findings}) == (Status.UNDECIDED, {"I105"})
    assert wrong.status is Status.REFUTED
    assert {each.code for each in wrong.findings} >= {"I106", "I109"}


# Their fault is in global memory, in registers of an access that is replayed, and in a value: none of it is judged.
BEYOND = frozenset({"h_storecnt_flag", "h_xcnt_replay", "a_wide_registers"})
REFUSED = frozenset({"h_cluster_exchange", "h_cluster_multicast"})  # clusters


def list_names(folder: str) -> list[str]:
    return sorted(each.name.partition(".")[0] for each in shared(f"{FOLDER}/{folder}").glob("*.gfx1250.hsaco"))


@pytest.mark.thorough
def test_a_wrong_arrival_for_asynchronous_copies_is_found() -> None:
    """In its right twin the producing wave ends before its copies have, which no public source allows or forbids."""
    right, wrong = prove_shipped("h_mbarrier_async_ok"), prove_shipped("h_mbarrier_async_bad")
    assert (right.status, [each.code for each in right.findings]) == (Status.ONE_SOURCE, ["I403"])
    assert (wrong.status, {each.code for each in wrong.findings}) == (Status.REFUTED, {"I109", "I403"})


@pytest.mark.thorough
def test_a_ring_between_halves_of_a_workgroup_is_proved() -> None:
    """Gluon's roles are read from LDS, their loops are unrolled by 4 and by 8, and the rest takes a round at a time."""
    right = prove_shipped("g_ws_ring_ok")
    assert (right.status, right.findings) == (Status.PROVED, ())
    for fault, status in (("nofull", Status.REFUTED), ("noempty", Status.ALARM), ("count", Status.ALARM)):
        wrong = prove_shipped(f"g_ws_ring_bad_{fault}")
        race = next(each for each in wrong.findings if each.code == "I109")
        assert wrong.status is status, fault
        assert [each.label.split()[0] for each in race.concerns] == [
            "ds_store_2addr_stride64_b32", "ds_load_2addr_stride64_b32",
        ]  # fmt: skip


@pytest.mark.thorough
def test_no_other_kernel_is_called_right_or_wrong() -> None:
    for name in (*list_names("hip"), *list_names("gluon")):
        base = name.partition("_ok")[0].partition("_bad")[0]
        if base in TWINS or base in {"g_async_gemm", "h_mbarrier_async", "g_ws_ring"}:
            continue
        verdict = prove_shipped(name)
        if base in BEYOND or base.startswith("g_mx"):
            assert (verdict.status, verdict.findings) == (Status.PROVED, ()), name
        else:
            assert base in REFUSED
            assert verdict.status is Status.INCONCLUSIVE, name
            assert {each.code for each in verdict.findings} == {"I401"}, name


@pytest.mark.thorough
def test_every_kernel_of_triton_is_proved() -> None:
    found = {name: prove_shipped(name).status for name in list_names("triton")}
    assert len(found) == 24
    assert {name for name, status in found.items() if status is not Status.PROVED} == set()
