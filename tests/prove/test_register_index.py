"""Registers that are chosen while running: those that are meant count, not those that are named."""

from __future__ import annotations

import pytest

from rota.prove.verdict import Status, Verdict
from tests.prove.written import codes, judged

# Each lane of both waves has a place of its own in v11; v10 and v12 are 0.
START = """
v_mov_b32_e32 v10, 0
v_lshlrev_b32_e32 v11, 2, v0
v_mov_b32_e32 v12, 0
s_load_dwordx2 s[4:5], s[0:1], 0x0
s_waitcnt lgkmcnt(0)
"""
END = """
s_set_gpr_idx_off
ds_write_b32 v6, v0
s_waitcnt lgkmcnt(0)
s_endpgm
"""


def indexed(text: str, which: str = "SRC0", index: str = "1") -> Verdict:
    return judged(f"{START}s_mov_b32 s6, {index}\ns_set_gpr_idx_on s6, gpr_idx({which})\n{text}\n{END}")


PLACES = (
    ("v_mov_b32_e32 v6, v10", "SRC0", 1),
    ("v_add_u32_e32 v6, v10, v12", "SRC0", 1),
    ("v_add_u32_e32 v6, v12, v10", "SRC1", 1),
    ("v_add_u32_e32 v6, 0, v10", "SRC0,SRC1", 1),
    ("v_add_u32_e32 v6, v9, v10", "SRC0,SRC1", 1),  # with 2 it would be v11 and 0 as well
    ("v_add3_u32 v6, v12, v12, v10", "SRC2", 1),
    ("v_add_u32_e32 v4, v11, v12", "DST", 2),
    ("v_add_u32_e32 v4, v9, v12", "SRC0,DST", 2),
)


@pytest.mark.parametrize(("text", "which", "index"), PLACES)
def test_the_registers_that_are_meant_make_the_address(text: str, which: str, index: int) -> None:
    """Lanes write to places of their own; with another index, or one that a launch passes, that isn't so."""
    assert indexed(text, which, str(index)).status is Status.PROVED
    for other in ("0", str(index + 3), "s4"):
        assert indexed(text, which, other).status is not Status.PROVED, other


# Both waves have the same places in v10, and other ones in v11; s7 is the number of the wave.
BY_WAVE = """
v_and_b32_e32 v9, 63, v0
v_lshlrev_b32_e32 v10, 2, v9
v_add_u32_e32 v11, 0x100, v10
v_mov_b32_e32 v12, 0
v_lshrrev_b32_e32 v2, 6, v0
s_nop 4
v_readfirstlane_b32 s7, v2
s_nop 4
"""


@pytest.mark.parametrize(
    ("index", "proved"), [("s_mov_b32 s6, s7", True), ("s_sub_u32 s6, 1, s7", True), ("s_lshr_b32 s6, s7, 1", False)]
)
@pytest.mark.parametrize("text", ["v_mov_b32_e32 v6, v10", "v_add_u32_e32 v6, v10, v12", "v_max_u32_e32 v6, v10, v12"])
def test_each_wave_has_its_own_index(text: str, index: str, proved: bool) -> None:
    verdict = judged(f"{BY_WAVE}{index}\ns_set_gpr_idx_on s6, gpr_idx(SRC0)\n{text}\n{END}")
    assert (verdict.status is Status.PROVED) is proved


def test_a_target_that_differs_from_wave_to_wave_is_not_known() -> None:
    text = "s_set_gpr_idx_on s7, gpr_idx(DST)\nv_mov_b32_e32 v6, v10\n"
    assert judged(f"{BY_WAVE}v_mov_b32_e32 v7, v11\n{text}{END}").status is not Status.PROVED


@pytest.mark.parametrize(("row", "early"), [(10, True), (11, True), (12, False)])
def test_what_any_wave_uses_is_early(row: int, early: bool) -> None:
    load = f"{BY_WAVE}v_mov_b32_e32 v13, 0\nglobal_load_dword v{row}, v[20:21], off\n"
    text = f"{load}s_set_gpr_idx_on s7, gpr_idx(SRC0)\nv_add_u32_e32 v6, v10, v13\ns_set_gpr_idx_off\n"
    assert ("I103" in codes(judged(f"{text}s_waitcnt vmcnt(0)\ns_endpgm"))) is early


def test_a_register_beyond_the_last_may_be_any() -> None:
    assert indexed("v_mov_b32_e32 v6, v10", index="0xf6").status is not Status.PROVED
    # A write there goes to the first register, which is stored here.
    last = indexed("v_mov_b32_e32 v6, v11\nv_mov_b32_e32 v12, v10", "DST", "0")
    assert last.status is Status.PROVED
    unknown = indexed("v_mov_b32_e32 v6, v11\ns_set_gpr_idx_idx s4\nv_mov_b32_e32 v12, v10", "DST", "0")
    assert unknown.status is Status.PROVED  # v6 stands before all that the second may write
    before = indexed("v_mov_b32_e32 v6, v11\ns_set_gpr_idx_idx s4\nv_mov_b32_e32 v5, v10", "DST", "0")
    assert before.status is not Status.PROVED


@pytest.mark.parametrize(("index", "early"), [("1", True), ("2", False), ("s4", True)])
def test_a_load_under_way_to_the_register_that_is_meant_is_early(index: str, early: bool) -> None:
    load = f"{START}s_mov_b32 s6, {index}\nglobal_load_dword v11, v[20:21], off\n"
    text = f"{load}s_set_gpr_idx_on s6, gpr_idx(SRC0)\nv_add_u32_e32 v6, v10, v12\ns_set_gpr_idx_off\n"
    assert ("I103" in codes(judged(f"{text}s_waitcnt vmcnt(0)\ns_endpgm"))) is early


@pytest.mark.parametrize(
    "text",
    [
        "v_accvgpr_read_b32 v6, a0",
        "v_fmac_f32_e32 v6, v10, v11",
        "v_cmp_eq_u32_e64 s[8:9], v10, v11",
        "v_add_co_u32_e32 v6, vcc, v10, v11",
        "v_pk_add_f32 v[6:7], v[10:11], v[12:13]",
        "v_mov_b32_dpp v6, v10 row_shl:1 row_mask:0xf bank_mask:0xf",
        "v_swap_b32 v6, v10",
        "v_mfma_f32_4x4x1_16b_f32 v[8:11], v4, v5, 0",
    ],
)
def test_what_uses_registers_in_its_own_way_is_refused(text: str) -> None:
    verdict = indexed(text)
    assert verdict.status is Status.INCONCLUSIVE
    assert codes(verdict) == ["I401"]
