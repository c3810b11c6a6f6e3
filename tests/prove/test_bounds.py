"""Addresses of LDS that come from data: proved where something bounds them, and only there."""

from __future__ import annotations

import pytest

from rota.prove.causes import UNDECIDED
from rota.prove.kernel_proof import Policies
from rota.prove.verdict import Status
from tests.prove.written import codes, evidence, judged

SIZE = 256
LOADED = "global_load_dword v1, v0, s[4:5]\ns_waitcnt vmcnt(0)"
OWN = "v_lshlrev_b32_e32 v2, 2, v1"
READ = "ds_read_b32 v3, v2\ns_waitcnt lgkmcnt(0)"
WITHIN = Policies(lds_in_bounds=True)


def text(*lines: str) -> str:
    return "\n".join((LOADED, *lines))


def test_nothing_bounds_an_address_that_was_loaded() -> None:
    verdict = judged(text(OWN, READ), lds_bytes=SIZE)
    assert verdict.status is Status.UNDECIDED
    assert codes(verdict) == ["I105"]
    shown = evidence(verdict, "I105")
    assert (shown["rule"], shown["LDS bytes"]) == ("no bound", SIZE)
    assert UNDECIDED in shown
    assert [concern.label for concern in verdict.findings[0].concerns] == ["ds_read_b32 v3, v2"]


def test_a_wave_without_active_lanes_touches_nothing() -> None:
    """It was given a list of all addresses, of 32 GiB."""
    first = "v_cmp_gt_u32_e64 s[8:9], 64, v0\ns_and_saveexec_b64 s[6:7], s[8:9]"  # lanes of the first wave alone
    load = "global_load_dword v2, v0, s[2:3]\ns_waitcnt vmcnt(0)"
    verdict = judged(f"{load}\n{first}\nds_read_b32 v3, v2\ns_mov_b64 exec, s[6:7]", lds_bytes=SIZE)
    assert codes(verdict) == ["I105"]


def test_an_execution_with_other_data_decides_nothing() -> None:
    assert judged(text(OWN, READ), lds_bytes=SIZE, witness=True).status is Status.UNDECIDED


def test_who_asks_for_it_gets_it_as_an_assumption() -> None:
    verdict = judged(text(OWN, READ), lds_bytes=SIZE, policies=WITHIN)
    assert verdict.proved
    usual = judged(text("v_and_b32_e32 v1, 63, v1", OWN, READ), lds_bytes=SIZE, policies=WITHIN)
    assert set(verdict.assumptions) > set(usual.assumptions)  # named only where the proof rests on it


BOUNDED = {  # how an address of 256 bytes is kept, and one that is one word too far
    "mask": ("v_and_b32_e32 v1, {}, v1\n" + OWN, 63, 64),
    "bit field": ("v_bfe_u32 v1, v1, 3, {}\n" + OWN, 6, 7),
    "shift": ("v_lshrrev_b32_e32 v1, {}, v1\n" + OWN, 26, 25),
    "least": ("v_min_u32_e32 v1, {}, v1\n" + OWN, 63, 64),
    "middle": ("v_med3_i32 v1, v1, 0, {}\n" + OWN, 63, 64),
    "two of them": ("v_max_i32_e32 v1, 0, v1\nv_min_i32_e32 v1, {}, v1\n" + OWN, 63, 64),
    "turned round": ("v_and_b32_e32 v1, {}, v1\nv_sub_u32_e32 v1, 63, v1\n" + OWN, 63, 127),
    "sum": ("v_and_b32_e32 v1, 31, v1\nv_and_b32_e32 v4, 31, v0\nv_add_u32_e32 v1, {}, v1\n"
            "v_add_u32_e32 v1, v4, v1\n" + OWN, 1, 2),
    "product": ("v_min_u32_e32 v1, 9, v1\nv_mul_u32_u24_e32 v1, {}, v1\n" + OWN, 7, 8),
    "offset": ("v_and_b32_e32 v1, 31, v1\n" + OWN + "\nv_add_u32_e32 v2, {}, v2", 128, 132),
    "comparison": ("v_cmp_gt_u32_e32 vcc, {}, v1\ns_and_saveexec_b64 s[8:9], vcc\n" + OWN, 64, 65),
    "two comparisons": ("v_cmp_lt_i32_e32 vcc, -1, v1\ns_and_saveexec_b64 s[8:9], vcc\n"
                        "v_cmp_gt_i32_e32 vcc, {}, v1\ns_and_b64 exec, exec, vcc\n" + OWN, 64, 65),
    "either of two": ("v_cmp_gt_u32_e32 vcc, {}, v1\nv_cmp_eq_u32_e64 s[10:11], 63, v1\n"
                      "s_or_b64 exec, vcc, s[10:11]\n" + OWN, 60, 65),
    "choice": ("v_cmp_gt_u32_e32 vcc, {}, v1\ns_nop 4\nv_cndmask_b32_e32 v1, 0, v1, vcc\n" + OWN, 64, 65),
    "first lane": ("v_and_b32_e32 v1, {}, v1\ns_nop 4\nv_readfirstlane_b32 s8, v1\ns_nop 4\nv_mov_b32_e32 v1, s8\n"
                   + OWN, 63, 64),
    "part": (("v_and_b32_e32 v4, 0, v0\nv_add_u32_sdwa v2, v4, v1 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:DWORD"
             " src1_sel:{}\nv_lshrrev_b32_e32 v2, 2, v2\nv_lshlrev_b32_e32 v2, 2, v2"), "BYTE_3", "WORD_1"),
}  # fmt: skip


@pytest.mark.parametrize("how", BOUNDED)
def test_what_bounds_an_address(how: str) -> None:
    """One word further, and it isn't bounded."""
    lines, inside, outside = BOUNDED[how]
    assert judged(text(lines.format(inside), READ), lds_bytes=SIZE).proved
    assert codes(judged(text(lines.format(outside), READ), lds_bytes=SIZE)) == ["I105"]


def test_a_byte_is_below_256_in_the_lanes_that_loaded_it() -> None:
    byte = "global_load_ubyte v1, v0, s[4:5]\ns_waitcnt vmcnt(0)"
    some = "v_cmp_gt_u32_e32 vcc, 8, v0\ns_and_saveexec_b64 s[8:9], vcc"
    assert judged(f"{byte}\n{OWN}\n{READ}", lds_bytes=1024).proved
    assert codes(judged(f"{byte}\n{OWN}\n{READ}", lds_bytes=1020)) == ["I105"]
    assert judged(f"{some}\n{byte}\n{OWN}\n{READ}", lds_bytes=1024).proved
    verdict = judged(f"{some}\n{byte}\ns_mov_b64 exec, s[8:9]\n{OWN}\n{READ}", lds_bytes=1024)
    assert codes(verdict) == ["I105"]


def test_what_exec_says_of_active_lanes_says_nothing_of_the_first_one() -> None:
    first = "v_readfirstlane_b32 s8, v1\nv_cmp_gt_u32_e32 vcc, 64, v1\ns_and_saveexec_b64 s[10:11], vcc"
    assert codes(judged(text(first, "s_lshl_b32 s8, s8, 2\nv_mov_b32_e32 v2, s8", READ), lds_bytes=SIZE)) == ["I105"]


def test_a_decision_about_an_argument_bounds_it() -> None:
    argument = "s_load_dword s8, s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\ns_cmp_gt_u32 s8, {}\ns_cbranch_scc1 L1"
    use = "s_lshl_b32 s9, s8, 2\nv_mov_b32_e32 v2, s9\n" + READ + "\nL1:"
    assert judged(f"{argument.format(63)}\n{use}", lds_bytes=SIZE).proved
    assert codes(judged(f"{argument.format(64)}\n{use}", lds_bytes=SIZE)) == ["I105"]


def test_a_sum_that_wraps_comes_to_any_byte() -> None:
    """An address just below 4 GiB and an offset are an address at the beginning of LDS, which the other wave writes."""
    high = "v_or_b32_e32 v1, 0xfffff000, v1\nds_read_b32 v3, v1 offset:64512\ns_waitcnt lgkmcnt(0)"
    other = "v_mov_b32_e32 v4, 0\nds_write_b32 v4, v0"
    assert "I109" in codes(judged(text(high, other), policies=WITHIN))


@pytest.mark.parametrize(("most", "found"), [(0, []), (64, ["I105"])])
def test_loads_to_lds_stay_inside_too(most: int, found: list[str]) -> None:
    load = f"s_load_dword s8, s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\ns_and_b32 m0, s8, {most}\ns_nop 4"
    go = "buffer_load_dword v0, s[4:7], 0 offen lds\ns_waitcnt vmcnt(0)"
    assert codes(judged(f"{load}\n{go}", lds_bytes=SIZE, waves=1)) == found


SPILL, BACK = (
    "scratch_store_dword off, v2, off offset:{}",
    "scratch_load_dword v2, off, off offset:{}\ns_waitcnt vmcnt(0)",
)


@pytest.mark.parametrize(
    ("between", "found"),
    [
        ((SPILL.format(8), "v_mov_b32_e32 v2, 0", BACK.format(8)), []),
        ((SPILL.format(8), BACK.format(12)), ["I105"]),  # another word, which nobody wrote
        ((SPILL.format(8), "scratch_store_dword off, v1, off offset:8", BACK.format(8)), ["I105"]),
        ((SPILL.format(8), "scratch_store_dword v5, v1, off", BACK.format(8)), ["I105"]),  # perhaps the same word
        (("scratch_store_dwordx2 off, v[2:3], off offset:4", BACK.format(4)), []),
        (("scratch_store_dwordx2 off, v[1:2], off offset:4", BACK.format(4)), ["I105"]),
        (("s_mov_b64 exec, 0xff", SPILL.format(0), "s_mov_b64 exec, -1", BACK.format(0)), ["I105"]),
    ],
)
def test_an_address_that_was_spilled_is_the_same_when_it_comes_back(between: tuple[str, ...], found: list[str]) -> None:
    bounded = "v_and_b32_e32 v2, 63, v0\nv_lshlrev_b32_e32 v2, 2, v2"
    assert codes(judged(text(bounded, *between, READ), lds_bytes=SIZE)) == found
