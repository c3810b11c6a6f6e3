"""What the proof doesn't follow is unknown: an LDS address made of it may be anything, and is never safe."""

from __future__ import annotations

import pytest

from rota.prove.verdict import Status
from tests.prove.written import codes, judged

START = """
v_lshlrev_b32_e32 v1, 2, v0
v_mov_b32_e32 v3, v1
v_mov_b32_e32 v4, v1
v_mov_b32_e32 v5, v1
s_load_dwordx2 s[4:5], s[0:1], 0x0
s_waitcnt lgkmcnt(0)
v_mov_b32_e32 v6, s4
"""
END = """
s_mov_b64 exec, -1
v_and_b32_e32 v3, 0xfc, v3
ds_write_b32 v3, v0
s_waitcnt lgkmcnt(0)
s_endpgm
"""
UNFOLLOWED = (
    "v_div_fmas_f32 v3, v4, v5, v6",
    "v_permlane32_swap_b32 v3, v6",
    "v_exp_f32_e32 v3, v6",
    "v_sqrt_f32_e32 v3, v6",
    "v_div_scale_f32 v3, vcc, v6, v6, v4\nv_cndmask_b32_e32 v3, v4, v3, vcc",
    "v_readfirstlane_b32 s6, v6\nv_mov_b32_e32 v3, s6",
    "v_cmp_gt_u32_e64 s[6:7], v6, v4\ns_mov_b64 exec, s[6:7]\nv_readfirstlane_b32 s8, v4\nv_mov_b32_e32 v3, s8",
    "v_readlane_b32 s6, v6, 3\nv_mov_b32_e32 v3, s6",
    "s_mov_b32 exec_lo, s4\nv_mov_b32_e32 v3, v6",
    "s_mov_b32 exec_hi, s4\nv_mov_b32_e32 v3, 0",
    "v_sub_f32_e64 v3, -v6, |v4|",
    "v_mfma_f32_4x4x1_16b_f32 v[8:11], v4, v5, 0\ns_nop 15\nv_mov_b32_e32 v3, v8",
    "v_cvt_f32_u32_e32 v3, v6",
    "v_cmp_class_f32_e64 s[6:7], v6, v4\nv_cndmask_b32_e64 v3, v4, v6, s[6:7]",
)


@pytest.mark.parametrize("text", UNFOLLOWED)
def test_an_address_made_of_it_may_be_any(text: str) -> None:
    """Both waves write there, in the same stretch between barriers."""
    verdict = judged(START + text + END)
    assert verdict.status is not Status.PROVED


def test_an_address_that_is_followed_is_known() -> None:
    assert judged(START.replace("0xfc", "0x1fc") + END.replace("0xfc", "0x1fc")).status is Status.PROVED


def test_an_exec_half_that_is_known_is_followed() -> None:
    """The lanes that are switched off keep their own place."""
    halves = "s_mov_b32 exec_lo, 0xffff\ns_mov_b32 exec_hi, 0\nv_mov_b32_e32 v3, v4\n"
    assert judged(START + halves + END.replace("0xfc", "0x1fc")).status is Status.PROVED


SOME_LANES = "v_mov_b32_e32 v3, 0\nv_cmp_gt_u32_e64 s[6:7], v6, v4\ns_mov_b64 exec, s[6:7]\n"


@pytest.mark.parametrize(
    ("halves", "status"),
    [
        (("exec_lo", "exec_hi"), Status.PROVED),
        (("exec_hi", "exec_lo"), Status.PROVED),
        (("exec_lo", "exec_lo"), Status.UNDECIDED),
        (("exec_hi",), Status.UNDECIDED),
    ],
)
def test_lanes_that_were_unknown_are_all_on_behind_both_halves(halves: tuple[str, ...], status: Status) -> None:
    """Where one half stays unknown, its lanes may keep the word that both waves write."""
    on = "".join(f"s_mov_b32 {half}, -1\n" for half in halves)
    text = START + SOME_LANES + on + "v_mov_b32_e32 v3, v4\n" + END.replace("0xfc", "0x1fc")
    assert judged(text).status is status


@pytest.mark.parametrize(("unknown", "status"), [("exec_lo", Status.UNDECIDED), ("exec_hi", Status.PROVED)])
def test_the_half_that_is_not_written_stays_as_it_was(unknown: str, status: Status) -> None:
    """All lanes have a word that both waves write, until those that are on get their own; lanes 0 to 31 write."""
    own = f"v_mov_b32_e32 v3, 0\ns_mov_b32 {unknown}, s4\nv_mov_b32_e32 v3, v4\n"
    end = END.replace("s_mov_b64 exec, -1", "s_mov_b32 exec_lo, -1\ns_mov_b32 exec_hi, 0").replace("0xfc", "0x1fc")
    assert judged(START + own + end).status is status


HALF_A_WAVE = "v_xor_b32_e32 v3, 0x80, v4\n"  # the words of lanes 32 lanes away


@pytest.mark.parametrize(
    ("exchange", "status"),
    [
        ("v_permlane32_swap_b32_e32 v3, v5\n", Status.PROVED),
        ("v_swap_b32 v3, v4\n", Status.PROVED),
        ("v_permlane32_swap_b32_e32 v3, v6\n", Status.UNDECIDED),
        ("v_swap_b32 v3, v6\n", Status.ALARM),
        ("s_mov_b32 exec_hi, 0\ns_nop 4\nv_permlane32_swap_b32_e32 v3, v5\n", Status.UNDECIDED),
    ],
)
def test_lanes_that_are_exchanged_are_followed(exchange: str, status: Status) -> None:
    """Within a wave: both waves keep words of their own.  With lanes left out, what an exchange does is not known."""
    text = START + HALF_A_WAVE + "s_nop 1\n" + exchange + END.replace("0xfc", "0x1fc")
    assert judged(text).status is status


FIRST_LANE = """s_mov_b64 exec, s[4:5]
v_readfirstlane_b32 s8, v3
s_mov_b64 exec, -1
s_nop 1
v_mov_b32_e32 v3, s8
ds_write_b32 v3, v0
s_waitcnt lgkmcnt(0)
"""


@pytest.mark.parametrize(
    ("place", "codes_found"), [("v_xor_b32_e32 v3, 0xfc, v4\n", []), ("v_and_b32_e32 v3, 0xfc, v4\n", ["I109"])]
)
def test_bits_that_all_lanes_have_alike_are_known_of_the_first(place: str, codes_found: list[str]) -> None:
    """Which lane is the first is unknown; all lanes of a wave are in its own half of LDS, or in the same one."""
    assert codes(judged(START + place + FIRST_LANE)) == codes_found
