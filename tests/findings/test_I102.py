from __future__ import annotations

import pytest

from rota.errors import IsaError
from tests.findings.smallest import raised
from tests.isa.single import loaded
from tests.wording.golden import mentions


def test_an_opcode_that_the_interpreter_does_not_know() -> None:
    finding = raised("I102", lambda: loaded("v_frobnicate_b32 v0, v1"))
    assert "v_frobnicate_b32" in finding.message
    assert finding.concerns[0].label == "v_frobnicate_b32 v0, v1"


def test_all_of_them_are_named_once() -> None:
    with pytest.raises(IsaError) as error:
        loaded("s_frob s0\nv_mov_b32_e32 v0, v1\ns_frob s1\nv_nicate v0")
    assert [finding.message.split()[-1] for finding in error.value.findings] == ["s_frob", "v_nicate"]
    assert [finding.evidence for finding in error.value.findings] == [(("sites", 2),), (("sites", 1),)]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("v_mov_b32_dpp v0, v1 row_bcast:63 row_mask:0xf bank_mask:0xf", ("row_bcast:63",)),
        ("v_mov_b32_dpp v0, v1 row_shr:16 row_mask:0xf bank_mask:0xf", ("row_shr:16",)),
        ("v_add_co_u32_dpp v0, vcc, v1, v2 row_shr:1 row_mask:0xf bank_mask:0xf", ("row_shr",)),
        ("v_add_f32_e64 v0, v1, v2 mul:2", ("mul:2",)),
        ("v_mul_f32_sdwa v0, -v1, v2 dst_sel:DWORD src0_sel:WORD_1 src1_sel:DWORD", ()),
        ("v_or_b32_sdwa v0, v1, v2 dst_sel:WORD_0 dst_unused:UNUSED_NEVER", ()),
        ("v_bitop3_b32 v0, v1, v2, v3 bitop3:0x6c clamp", ()),
        ("v_mul_lo_u16_e64 v0, v1, v2 clamp", ()),
        ("v_pk_mul_f32 v[0:1], v[2:3], 2.0", ("2.0",)),
        ("v_pk_add_u16 v0, v1, 1.0", ("1.0",)),
        ("v_cndmask_b32_e64 v0, v1, v2, vcc clamp", ("clamp",)),
        ("v_mov_b32_e32 v0, src_shared_base", ()),
        ("s_mov_b32 s0, ttmp3", ("ttmp3",)),
        ("v_add_u32_e32 s0, v1, v2", ()),
        ("v_mac_f16_e32 v0, v1, v2", ()),
        ("v_cvt_rpi_i32_f32_e32 v0, v1", ()),
        ("v_cvt_pk_fp8_f32 v0, v1, v2 op_sel:[1,0,0]", ("op_sel",)),
        ("s_nop", ()),
        ("s_nop many", ()),
        ("ds_read_b64 v[0:1], v2 offset:far", ()),
        ("v_mfma_f32_16x16x32_f16 v[0:3], v[4:7], v[8:11]", ()),
        ("v_mfma_f32_4x4x2_16b_bf16 v[0:3], v4, v5, v[0:3]", ()),
        ("v_mfma_f32_16x16x32_f16 v[0:3], v[4:5], v[6:7], v[0:3]", ()),
        ("v_mfma_f32_16x16x32_f16 v[0:3], v[4:7], v[8:11], v[0:3] cbsz:1", ("cbsz:1",)),
        ("v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[4:7], v[8:11], v[0:3] cbsz:5 blgp:4", ("cbsz:5", "blgp:4")),
        ("v_mfma_f32_16x16x8_xf32 v[0:3], v[4:5], v[6:7], v[0:3]", ()),
        ("buffer_load_dword v0, v1, s[0:3], 0 offen tfe", ("tfe",)),
        ("buffer_load_ubyte v1, s[0:3], 0 offen lds", ()),
        ("s_load_dword s0, s[2:3], 0x0 dlc", ("dlc",)),
        ("ds_read_b32 v0, v1 gds", ("gds",)),
        ("ds_append v0", ()),
        ("s_waitcnt vmcnt(0) vscnt(0)", ()),
        ("s_waitcnt_vscnt null, 0x0", ()),
        ("s_sethalt 1", ()),
        ("s_cbranch_g_fork s[0:1], s[2:3]", ()),
        ("s_endpgm_saved", ()),
        ("s_sendmsg sendmsg(MSG_SAVEWAVE)", ()),
        ("s_sendmsghalt sendmsg(MSG_INTERRUPT)", ()),
        ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 3", ()),
        ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 1", ()),
        ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 6, 2), 0", ()),
        ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 28, 1), 1", ("VSKIP",)),
        ("s_setreg_imm32_b32 hwreg(HW_REG_TRAPSTS), 0", ("hwreg(HW_REG_TRAPSTS)",)),
        ("s_setreg_b32 hwreg(HW_REG_MODE), s0", ("VSKIP",)),
        ("s_getreg_b32 s0, hwreg(HW_REG_HW_ID)", ("hwreg(HW_REG_HW_ID)",)),
        ("s_getreg_b32 s0, hwreg(HW_REG_MODE)", ()),
        ("s_getpc_b64 s[0:1]", ()),
        ("s_setpc_b64 s[0:1]", ()),
        ("flat_load_dword v0, v[2:3] lds", ()),
        ("scratch_load_lds_dword off, s0", ()),
    ],
)
def test_what_it_cannot_run_it_refuses(text: str, names: tuple[str, ...]) -> None:
    assert mentions(raised("I102", lambda: loaded(text)).message, text.split(maxsplit=1)[0], *names)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("v_mad_u16 v0, v1, v2, v3 op_sel:[1,0]", ("op_sel",)),
        ("v_pack_b32_f16 v0, v1, v2 op_sel:[0,0,1]", ("op_sel",)),
        ("v_mad_u16 v0, 1, v2, v3 op_sel:[1,0,0,0]", ("op_sel",)),
        ("v_mad_u16 v0, -v1, v2, v3 op_sel:[1,0,0,0]", ()),
        ("v_mov_b32_dpp v0, s1 row_shl:1 row_mask:0xf bank_mask:0xf", ()),
        ("v_mov_b32_dpp v0, v1 row_shl:1 row_mirror row_mask:0xf bank_mask:0xf", ("row_shl:1", "row_mirror")),
        ("v_add_f64_sdwa v[0:1], v[2:3], v[4:5] src0_sel:DWORD src1_sel:DWORD", ()),
        ("v_cvt_pk_f32_fp8_sdwa v[0:1], v1 dst_sel:DWORD src0_sel:WORD_1", ("dst_sel",)),
        ("v_add_u32_sdwa v0, 5, v1 src0_sel:WORD_0 src1_sel:DWORD", ()),
        ("v_writelane_b32 s0, s1, 2", ("s0",)),
        ("v_permlane32_swap_b32_e32 s0, v1", ()),
        ("v_div_scale_f32 v0, vcc, |v1|, v2, v3", ()),
        ("v_cmp_lt_f32_e64 s[0:1], v1, v2 clamp", ("clamp",)),
        ("v_cvt_pk_fp8_f32 v0, v1, v2 op_sel:[0,1]", ("op_sel",)),
        ("s_mov_b32 s0, v1", ()),
        ("v_pk_add_u16 v0, v1, v2 op_sel:[1]", ("op_sel",)),
        ("v_pk_add_u16 v0, v1, v2 neg_lo:[1,0]", ()),
        ("v_pk_add_u16_dpp v0, v1, v2 row_mirror row_mask:0xf bank_mask:0xf", ()),
        ("v_pk_add_f32 v[0:1], v2, v[4:5]", ("v2",)),
        ("v_pk_mov_b32 v[0:1], -v[2:3], v[4:5]", ()),
        ("v_pk_mov_b32 v[0:1], 5, 0 op_sel:[1,0]", ()),
        ("v_fma_mix_f32 v0, v1, v2, v3 neg_lo:[1,0,0]", ("neg_lo",)),
        ("v_fma_mix_f32 v0, v1, v2, v3 op_sel:[1,0,0]", ("op_sel",)),
        ("v_fma_mix_f32 v0, 1.0, v2, v3 op_sel_hi:[1,0,0]", ("1.0",)),
        ("v_dot2_f32_f16 v0, 1.0, v2, v3", ()),
        ("s_set_gpr_idx_on s3, 4", ()),
        ("s_movrels_b32 s8, 5", ()),
        ("v_cvt_scalef32_pk_fp8_f32 v0, -v1, v2, v3", ()),
        ("v_cvt_scalef32_f32_fp8 v0, v[1:2], v3", ("op_sel",)),
        ("v_cvt_scalef32_pk_fp8_f32 v0, v1, v2, v3 op_sel:[1,0,0,0]", ("op_sel",)),
        ("v_cvt_scalef32_pk32_fp6_f16 v[0:5], v[2:9], v4", ()),
        ("v_cvt_scalef32_pk_f32_fp8 v0, v1, v2", ("op_sel",)),
    ],
)
def test_forms_that_are_not_known_are_refused(text: str, names: tuple[str, ...]) -> None:
    assert mentions(raised("I102", lambda: loaded(text)).message, text.split(maxsplit=1)[0], *names)


@pytest.mark.parametrize("opcode", ["v_bitop3_b32 v0, v1, v2, v3 bitop3:0x6c", "v_permlane32_swap_b32_e32 v0, v1"])
def test_what_only_another_machine_has_is_refused(opcode: str) -> None:
    loaded(opcode, "gfx950")
    assert "gfx942" in raised("I102", lambda: loaded(opcode, "gfx942")).message
