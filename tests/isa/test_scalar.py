"""Each scalar instruction against Python's integers, with its condition code."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from rota.isa.registers import EXEC, M0, VCC
from tests.isa.single import execute, fresh

A, B = 0x8765_4321, 0x0FED_CBA9
M32, M64 = 2**32 - 1, 2**64 - 1
SA = A - 2**32
WIDE_A, WIDE_B = A | B << 32, 0x1234_5678_9ABC_DEF0


class Case(NamedTuple):
    text: str
    result: int
    scc: int  # 1 before


# s2 = A, s3 = B (so s[2:3] = WIDE_A), s[4:5] = WIDE_B, s6 = 4, SCC = 1; the result goes to s8 or s[8:9].
CASES = [
    Case("s_add_u32 s8, s2, s3", (A + B) & M32, 0),
    Case("s_add_u32 s8, s2, s2", 2 * A & M32, 1),
    Case("s_addc_u32 s8, s2, s3", (A + B + 1) & M32, 0),
    Case("s_sub_u32 s8, s3, s2", (B - A) & M32, 1),
    Case("s_subb_u32 s8, s2, s3", A - B - 1, 0),
    Case("s_add_i32 s8, s2, s2", 2 * A & M32, 1),
    Case("s_sub_i32 s8, s3, s2", (B - SA) & M32, 1),
    Case("s_mul_i32 s8, s2, s3", A * B & M32, 1),
    Case("s_mul_hi_u32 s8, s2, s3", A * B >> 32, 1),
    Case("s_mul_hi_i32 s8, s2, s3", (SA * B >> 32) & M32, 1),
    Case("s_lshl_b32 s8, s2, 36", A << 4 & M32, 1),
    Case("s_lshr_b32 s8, s2, s6", A >> 4, 1),
    Case("s_ashr_i32 s8, s2, 4", SA >> 4 & M32, 1),
    Case("s_lshl_b64 s[8:9], s[2:3], 7", WIDE_A << 7 & M64, 1),
    Case("s_lshr_b64 s[8:9], s[2:3], s6", WIDE_A >> 4, 1),
    Case("s_ashr_i64 s[8:9], s[2:3], 63", 0, 0),
    Case("s_min_i32 s8, s2, s3", A, 1),
    Case("s_min_u32 s8, s2, s3", B, 0),
    Case("s_max_i32 s8, s2, s3", B, 0),
    Case("s_max_u32 s8, s2, s3", A, 1),
    Case("s_bfe_u32 s8, s2, 0x80004", 0x32, 1),
    Case("s_bfe_i32 s8, s2, 0x4001c", -8 & M32, 1),
    Case("s_bfe_u64 s[8:9], s[2:3], 0x80020", 0xA9, 1),
    Case("s_bfe_i64 s[8:9], s[2:3], 0x80020", -0x57 & M64, 1),
    Case("s_bfm_b32 s8, 5, 3", 0xF8, 1),
    Case("s_cselect_b32 s8, s2, s3", A, 1),
    Case("s_cselect_b64 s[8:9], s[2:3], s[4:5]", WIDE_A, 1),
    Case("s_pack_ll_b32_b16 s8, s2, s3", 0xCBA9_4321, 1),
    Case("s_pack_lh_b32_b16 s8, s2, s3", 0x0FED_4321, 1),
    Case("s_pack_hh_b32_b16 s8, s2, s3", 0x0FED_8765, 1),
    Case("s_lshl2_add_u32 s8, s2, s3", (4 * A + B) & M32, 1),
    Case("s_lshl1_add_u32 s8, s6, s3", 8 + B, 0),
    Case("s_and_b32 s8, s2, s3", A & B, 1),
    Case("s_or_b64 s[8:9], s[2:3], s[4:5]", WIDE_A | WIDE_B, 1),
    Case("s_xor_b32 s8, s2, s2", 0, 0),
    Case("s_andn2_b64 s[8:9], s[2:3], s[4:5]", WIDE_A & ~WIDE_B, 1),
    Case("s_orn2_b32 s8, s2, s3", (A | ~B) & M32, 1),
    Case("s_nand_b32 s8, s2, s3", ~(A & B) & M32, 1),
    Case("s_nor_b64 s[8:9], s[2:3], s[4:5]", ~(WIDE_A | WIDE_B) & M64, 1),
    Case("s_xnor_b32 s8, s2, s3", ~(A ^ B) & M32, 1),
    Case("s_mov_b32 s8, 0x27000", 0x27000, 1),
    Case("s_mov_b32 s8, 1.0", 0x3F80_0000, 1),
    Case("s_mov_b64 s[8:9], -1", M64, 1),
    Case("s_movk_i32 s8, 0x8000", 0xFFFF_8000, 1),
    Case("s_not_b32 s8, s2", ~A & M32, 1),
    Case("s_not_b64 s[8:9], -1", 0, 0),
    Case("s_brev_b32 s8, -2", 0x7FFF_FFFF, 1),
    Case("s_abs_i32 s8, s2", -SA, 1),
    Case("s_sext_i32_i8 s8, s3", 0xFFFF_FFA9, 1),
    Case("s_sext_i32_i16 s8, s3", 0xFFFF_CBA9, 1),
    Case("s_bcnt1_i32_b32 s8, s2", A.bit_count(), 1),
    Case("s_bcnt1_i32_b64 s8, s[2:3]", WIDE_A.bit_count(), 1),
    Case("s_ff1_i32_b32 s8, s6", 2, 1),
    Case("s_ff1_i32_b64 s8, s[4:5]", 4, 1),
    Case("s_ff1_i32_b32 s8, 0", M32, 1),
    Case("s_flbit_i32_b32 s8, s3", 4, 1),
    Case("s_addk_i32 s8, 0xffc0", 100 - 64, 0),
    Case("s_mulk_i32 s8, 3", 300, 1),
    Case("s_cmovk_i32 s8, 7", 7, 1),
    Case("s_cmov_b32 s8, s2", A, 1),
    Case("s_bitset1_b32 s8, 0", 101, 1),
    Case("s_bitset0_b32 s8, 2", 96, 1),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.text)
def test_result_and_condition_code(case: Case) -> None:
    wave = fresh(scalars={2: A, 3: B, 4: WIDE_B & M32, 5: WIDE_B >> 32, 6: 4, 8: 100, 9: 0})
    wave.scc = 1
    execute(case.text, wave)
    wide = "s[8:9]" in case.text
    assert wave.s[8] | wave.s[9] << 32 * wide == case.result
    assert wave.scc == case.scc


@pytest.mark.parametrize(
    ("text", "scc"),
    [
        ("s_cmp_eq_u32 s2, s2", 1),
        ("s_cmp_lg_u32 s2, s2", 0),
        ("s_cmp_gt_i32 s2, s3", 0),
        ("s_cmp_gt_u32 s2, s3", 1),
        ("s_cmp_ge_i32 s3, s2", 1),
        ("s_cmp_lt_i32 s2, 0", 1),
        ("s_cmp_le_u32 s2, s2", 1),
        ("s_cmp_eq_u64 s[2:3], s[4:5]", 0),
        ("s_cmp_lg_u64 s[2:3], s[4:5]", 1),
        ("s_cmpk_lt_i32 s6, 0xffff", 0),
        ("s_cmpk_lt_u32 s6, 0xffff", 1),
        ("s_bitcmp1_b32 s6, 2", 1),
        ("s_bitcmp0_b32 s6, 2", 0),
    ],
)
def test_comparisons_set_the_condition_code(text: str, scc: int) -> None:
    wave = fresh(scalars={2: A, 3: B, 4: WIDE_B & M32, 5: WIDE_B >> 32, 6: 4})
    wave.scc = 1 - scc
    assert execute(text, wave).scc == scc


@pytest.mark.parametrize(
    ("opcode", "mask"), [("s_and_saveexec_b64", 0xF0), ("s_or_saveexec_b64", 0xFFF), ("s_andn2_saveexec_b64", 0xF00)]
)
def test_exec_is_saved_and_combined(opcode: str, mask: int) -> None:
    wave = fresh(scalars={EXEC: 0xFF, EXEC + 1: 0, VCC: 0xFF0, VCC + 1: 0})
    execute(f"{opcode} s[8:9], vcc", wave)
    assert wave.s[8] | wave.s[9] << 32 == 0xFF
    assert wave.s[EXEC] | wave.s[EXEC + 1] << 32 == mask
    assert wave.active.sum() == mask.bit_count()
    assert wave.scc == 1


def test_setting_m0_is_remembered_for_loads_that_use_it() -> None:
    wave = execute("s_nop 6\ns_mov_b32 m0, s2", fresh(scalars={2: 64}))
    assert (wave.s[M0], wave.m0_at) == (64, 7)


@pytest.mark.parametrize(
    ("branch", "scalars", "scc", "taken"),
    [
        ("s_branch", {}, 0, True),
        ("s_cbranch_scc0", {}, 0, True),
        ("s_cbranch_scc0", {}, 1, False),
        ("s_cbranch_scc1", {}, 1, True),
        ("s_cbranch_vccz", {VCC: 0, VCC + 1: 0}, 0, True),
        ("s_cbranch_vccnz", {VCC: 0, VCC + 1: 1}, 0, True),
        ("s_cbranch_execz", {EXEC: 1, EXEC + 1: 0}, 0, False),
        ("s_cbranch_execnz", {EXEC: 1, EXEC + 1: 0}, 0, True),
    ],
)
def test_branches(branch: str, scalars: dict[int, int], scc: int, taken: bool) -> None:
    wave = fresh(scalars={**scalars, 8: 0})
    wave.scc = scc
    execute(f"{branch} .LBB0_1\ns_mov_b32 s8, 5\n.LBB0_1:\ns_nop 0", wave)
    assert wave.s[8] == (0 if taken else 5)
