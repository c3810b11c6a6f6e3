"""What the MODE register, M0 and EXEC change about vector instructions; scalar registers by index; clocks."""

from __future__ import annotations

import numpy as np
import pytest

from rota.isa.decoded import waves_at
from rota.isa.registers import EXEC, M0, VCC
from rota.isa.wave.operand import PRIVATE_BASE, SHARED_BASE
from rota.isa.wave.wave import DENORM32, DX10_CLAMP, IEEE, POISON, Wave
from rota.targets.cdna4 import CDNA4
from tests.isa.single import codes, execute, fresh, loaded

ROWS = {row: np.uint32(100 * row) + np.arange(64, dtype=np.uint32) for row in range(12)}


def lane_zero(wave: Wave, row: int) -> int:
    return int(wave.v[row, 0])


@pytest.mark.parametrize(
    ("which", "text", "row", "wanted"),
    [
        ("SRC0", "v_mov_b32_e32 v8, v1", 8, 400),
        ("DST", "v_mov_b32_e32 v4, v1", 7, 100),
        ("SRC0,DST", "v_mov_b32_e32 v4, v1", 7, 400),
        ("SRC1", "v_sub_u32_e32 v8, v5, v1", 8, 100),
        ("SRC0", "v_add_u32_e32 v8, s4, v1", 8, 150),
        ("SRC0", "v_lshlrev_b64 v[8:9], 0, v[2:3]", 8, 200),
        ("SRC1", "v_lshlrev_b64 v[8:9], 0, v[2:3]", 8, 500),
        ("SRC0,SRC1,SRC2", "v_add3_u32 v8, v0, v1, v2", 8, 1200),
        ("SRC0,SRC1", "v_cndmask_b32_e64 v8, -|v1|, v2, s[6:7]", 8, 400 | 1 << 31),
        ("SRC0", "v_nop", 8, 800),
    ],
)
def test_an_index_moves_the_registers_that_it_is_for(which: str, text: str, row: int, wanted: int) -> None:
    wave = fresh(ROWS, {3: 3, 4: 50, 6: 0, 7: 0, M0: 0xABC0_0FFF})
    execute(f"s_set_gpr_idx_on s3, gpr_idx({which})\n{text}", wave)
    assert lane_zero(wave, row) == wanted
    names = {"SRC0": 1, "SRC1": 2, "SRC2": 4, "DST": 8}
    assert wave.s[M0] == 0xABC0_0F03 | sum(names[name] for name in which.split(",")) << 12


def test_an_index_can_change_and_end() -> None:
    wave = fresh(ROWS, {3: 3, 4: 1})
    execute("s_set_gpr_idx_on s3, gpr_idx(SRC0)\ns_set_gpr_idx_idx s4\nv_mov_b32_e32 v8, v1", wave)
    assert lane_zero(wave, 8) == 200
    execute("s_set_gpr_idx_mode gpr_idx(DST)\nv_mov_b32_e32 v8, v1", wave)
    assert lane_zero(wave, 9) == 100
    execute("s_set_gpr_idx_off\nv_mov_b32_e32 v8, v1", wave)
    assert lane_zero(wave, 8) == 100


@pytest.mark.parametrize(("bit", "wanted"), [(2, 800), (3, 100)])
def test_vector_instructions_are_skipped_on_demand(bit: int, wanted: int) -> None:
    wave = fresh(ROWS, {3: 0b0100, 5: 0})
    execute(f"s_setvskip s3, {bit}\nv_mov_b32_e32 v8, v1\ns_mov_b32 s5, 7", wave)
    assert (lane_zero(wave, 8), wave.s[5]) == (wanted, 7)
    execute("s_setvskip s3, 0\nv_mov_b32_e32 v8, v2", wave)
    assert lane_zero(wave, 8) == 200


def test_what_an_index_or_a_skip_may_touch_is_not_known_beforehand() -> None:
    text = "v_cmp_gt_u32_e32 vcc, 64, v0\ns_cbranch_vccz .LBB0_1\ns_nop 0\n.LBB0_1:\ns_nop 0"
    plain = [step.instruction for step in loaded(text).steps]
    assert waves_at(plain, CDNA4, 2, [2]) == {2: frozenset({0})}
    indexed = [step.instruction for step in loaded(f"s_set_gpr_idx_on s3, gpr_idx(DST)\n{text}").steps]
    assert waves_at(indexed, CDNA4, 2, [3]) == {3: None}


TINY = 0x0000_1234
SMALLEST = 0x0080_0000


@pytest.mark.parametrize(
    ("text", "kept", "flushed"),
    [
        ("v_add_f32_e32 v8, v0, v1", TINY, 0),
        ("v_mul_f32_e64 v8, -v0, 1.0", 0x8000_1234, 0x8000_0000),
        ("v_mul_f32_e32 v8, 0.5, v2", 0x0040_0000, 0),
        ("v_fma_f32 v8, v0, 1.0, v1", TINY, 0),
        ("v_max_f32_e32 v8, v0, v1", TINY, 0),
        ("v_mov_b32_e32 v8, v0", TINY, TINY),
        ("v_add_u32_e32 v8, v0, v1", TINY, TINY),
        ("v_fma_mix_f32 v8, v0, 1.0, v1", TINY, 0),
    ],
)
def test_denormals_are_kept_or_flushed(text: str, kept: int, flushed: int) -> None:
    for keep, wanted in ((True, kept), (False, flushed)):
        wave = fresh({0: TINY, 1: 0, 2: SMALLEST, 8: 5})
        wave.mode = wave.mode if keep else wave.mode & ~DENORM32
        assert lane_zero(execute(text, wave), 8) == wanted


def test_pairs_and_comparisons_flush_as_well() -> None:
    wave = fresh({0: TINY, 1: TINY, 2: 0, 3: 0})
    execute("v_pk_add_f32 v[8:9], v[0:1], v[2:3]\nv_cmp_lt_f32_e32 vcc, v2, v0", wave)
    assert (lane_zero(wave, 8), lane_zero(wave, 9), wave.s[VCC] & 1) == (TINY, TINY, 1)
    wave.mode &= ~DENORM32
    execute("v_pk_add_f32 v[8:9], v[0:1], v[2:3]\nv_cmp_lt_f32_e32 vcc, v2, v0", wave)
    assert (lane_zero(wave, 8), lane_zero(wave, 9), wave.s[VCC] & 1) == (0, 0, 0)


def test_a_signalling_nan_counts_only_by_ieee_rules() -> None:
    wave = fresh({0: 0x7F80_0001, 1: 0x3F80_0000})
    assert lane_zero(execute("v_min_f32_e32 v8, v0, v1", wave), 8) & 0x7FC0_0000 == 0x7FC0_0000
    wave.mode &= ~IEEE
    assert lane_zero(execute("v_min_f32_e32 v8, v0, v1", wave), 8) == 0x3F80_0000


def test_a_clamped_nan_is_zero_or_stays() -> None:
    wave = fresh({0: 0x7FC0_0000, 1: 0x3F80_0000})
    assert lane_zero(execute("v_add_f32_e64 v8, v0, v1 clamp", wave), 8) == 0
    wave.mode &= ~DX10_CLAMP
    assert np.isnan(execute("v_add_f32_e64 v8, v0, v1 clamp", wave).f[8, 0])


@pytest.mark.parametrize(
    ("below", "above", "wanted"),
    [
        (0, 0, 0xFFC0_0000),
        (0x7F80_0000, 0xFF80_0000, 0xFFC0_0000),
        (0x7FC0_1234, 0, 0x7FC0_1234),
        (0, 0x7FC0_4321, 0x7FC0_4321),
    ],
)
def test_a_division_that_fails_has_the_nan_of_the_isa(below: int, above: int, wanted: int) -> None:
    assert lane_zero(execute("v_div_fixup_f32 v8, v0, v1, v2", fresh({0: 0, 1: below, 2: above})), 8) == wanted


def test_a_pair_of_scalar_registers_may_move_over_itself() -> None:
    wave = execute("s_movrels_b64 s[8:9], s[2:3]", fresh(scalars={M0: 5, 7: 70, 8: 80, 9: 90}))
    assert (wave.s[8], wave.s[9]) == (70, 80)


def test_a_move_by_index_beyond_the_registers_is_a_finding() -> None:
    wave = execute("s_movrels_b32 s8, s2", fresh(scalars={M0: 100, 8: 1}))
    assert (codes(wave), wave.s[8]) == (["I102"], 1)


def test_lanes_swapped_while_some_are_off_are_a_finding() -> None:
    wave = fresh(ROWS, {EXEC: 1, EXEC + 1: 0})
    assert codes(execute("v_permlane32_swap_b32_e32 v0, v1", wave)) == ["I102"]


@pytest.mark.parametrize("text", ["v_readfirstlane_b32 m0, v1", "v_readlane_b32 m0, v1, 0", "s_mov_b32 m0, 0x64"])
def test_setting_m0_is_remembered_whoever_does_it(text: str) -> None:
    wave = execute(f"s_nop 6\n{text}", fresh(ROWS))
    assert (wave.s[M0], wave.m0_at) == (100, 7)


def test_a_scaled_conversion_takes_scalars_and_constants() -> None:
    wave = execute(
        "v_cvt_scalef32_pk_fp8_f32 v8, s4, v1, 1.0", fresh({1: 0x4000_0000, 8: 0xABCD_0000}, {4: 0x3F80_0000})
    )
    assert lane_zero(wave, 8) == 0xABCD_4038


def test_memory_instructions_do_not_mind_an_index() -> None:
    text = "s_set_gpr_idx_on s3, gpr_idx(SRC0,SRC1)\nds_write_b32 v0, v1\ns_waitcnt lgkmcnt(0)"
    wave = execute(text, fresh({0: np.arange(64, dtype=np.uint32) * 4, 1: 7, 4: 9}, {3: 3}))
    assert codes(wave) == []


LOADED = "global_load_dword v{row}, v[0:1], off\ns_set_gpr_idx_on s3, gpr_idx({which})\n"


@pytest.mark.parametrize(
    ("which", "row", "found"),
    [("SRC0", 4, ["I103"]), ("SRC0", 1, []), ("DST", 11, ["I103"]), ("DST", 8, []), ("SRC1", 1, ["I103"])],
)
def test_a_wait_is_due_for_the_register_that_is_meant(which: str, row: int, found: list[str]) -> None:
    """v_mov_b32 v8, v1 with an index of 3 reads v4, or writes v11."""
    buffer = np.zeros(64, np.uint32)
    wave = fresh({0: 0, 1: 0}, {3: 3}, buffers=(buffer,))
    wave.v[0], wave.v[1] = wave.memory.address(0) & 0xFFFF_FFFF, wave.memory.address(0) >> 32
    execute(LOADED.format(row=row, which=which) + "v_mov_b32_e32 v8, v1", wave)
    assert codes(wave) == found


MATRIX = "v_mfma_f32_4x4x4_16b_f16 v[8:11], v[0:1], v[2:3], 0\ns_set_gpr_idx_on s3, gpr_idx(SRC0)\n"


@pytest.mark.parametrize(("named", "found"), [("v5", ["I104"]), ("v8", []), ("v9", [])])
def test_wait_states_are_kept_for_the_register_that_is_meant(named: str, found: list[str]) -> None:
    """What a matrix instruction writes is read through an index of 3, which leads to it or away from it."""
    wave = fresh(dict.fromkeys(range(16), 0), {3: 3 if named == "v5" else 4})
    execute(f"{MATRIX}v_mov_b32_e32 v20, {named}", wave)
    assert codes(wave) == found


def test_clocks_grow_and_have_to_be_waited_for() -> None:
    wave = execute("s_memtime s[8:9]", fresh(scalars={8: 1, 9: 1}))
    assert wave.s[8] == POISON
    execute("s_waitcnt lgkmcnt(0)\ns_memrealtime s[10:11]\ns_waitcnt lgkmcnt(0)", wave)
    assert wave.s[10] | wave.s[11] << 32 > wave.s[8] | wave.s[9] << 32


def test_accumulation_registers_are_read_written_and_moved() -> None:
    text = "v_accvgpr_write_b32 a3, v1\nv_accvgpr_mov_b32 a4, a3\nv_accvgpr_read_b32 v8, a4"
    wave = execute(text, fresh(ROWS))
    assert wave.v[8].tolist() == wave.v[256 + 3].tolist() == ROWS[1].tolist()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("s_mov_b64 s[8:9], src_shared_base", SHARED_BASE),
        ("s_mov_b64 s[8:9], src_private_base", PRIVATE_BASE),
        ("s_mov_b64 s[8:9], 1.0", 0x3FF0 << 48),
        ("s_mov_b64 s[8:9], 0x80000000", 0x8000_0000),
        ("s_mov_b64 s[8:9], -2", 2**64 - 2),
        ("s_ashr_i64 s[8:9], s[2:3], 4", 0xFF00_0000_0000_0000),
        ("s_lshl_b64 s[8:9], lit(0xffffffff), 4", 0xF_FFFF_FFF0),
    ],
)
def test_constants_of_64_bits(text: str, wanted: int) -> None:
    wave = execute(text, fresh(scalars={2: 0, 3: 0xF000_0000}))
    assert wave.s[8] | wave.s[9] << 32 == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("v_cvt_f32_f64_e32 v8, 0x40080000", 3.0),
        ("v_cvt_f32_f64_e32 v8, 0.5", 0.5),
        ("v_cvt_f32_f16_e32 v8, 0x3e00", 1.5),
        ("v_cvt_f32_f16_e32 v8, 1", 2.0**-24),
        ("v_cvt_f32_i32_e32 v8, -7", -7.0),
        ("v_mul_f32_e64 v8, |-4.0|, neg(2.0)", -8.0),
        ("v_cvt_f32_u32_e32 v8, src_scc", 1.0),
        ("v_cvt_f32_u32_e32 v8, src_execz", 0.0),
        ("v_cvt_f32_u32_e32 v8, src_vccz", 1.0),
    ],
)
def test_constants_are_read_as_what_the_instruction_takes(text: str, wanted: float) -> None:
    wave = fresh(scalars={VCC: 0, VCC + 1: 0})
    wave.scc = 1
    assert (execute(text, wave).f[8] == np.float32(wanted)).all()
