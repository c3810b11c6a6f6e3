from __future__ import annotations

import pytest

from rota.errors import IsaError
from tests.findings.smallest import raised
from tests.isa.single import loaded


def test_an_opcode_that_the_interpreter_does_not_know() -> None:
    finding = raised("I102", lambda: loaded("v_frobnicate_b32 v0, v1"))
    assert finding.message == "the interpreter doesn't know v_frobnicate_b32"
    assert finding.concerns[0].label == "v_frobnicate_b32 v0, v1"


def test_all_of_them_are_named_once() -> None:
    with pytest.raises(IsaError) as error:
        loaded("s_frob s0\nv_mov_b32_e32 v0, v1\ns_frob s1\nv_nicate v0")
    assert [finding.message.split()[-1] for finding in error.value.findings] == ["s_frob", "v_nicate"]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("v_mov_b32_dpp v0, v1 row_shr:1 row_mask:0xf bank_mask:0xf", "v_mov_b32_dpp"),
        ("v_add_f32_e64 v0, v1, v2 mul:2", "modifiers 'mul:2'"),
        ("v_mul_f32_sdwa v0, v1, v2 dst_sel:WORD_1 src0_sel:DWORD src1_sel:DWORD", "modifiers 'dst_sel"),
        ("v_or_b32_sdwa v0, v1, v2 dst_sel:WORD_0 dst_unused:UNUSED_SEXT", "UNUSED_SEXT"),
        ("v_bitop3_b32 v0, v1, v2, v3 bitop3:0x6c clamp", "modifiers 'bitop3:0x6c clamp'"),
        ("v_pk_mul_f32 v[0:1], v[2:3], v[4:5] clamp", "modifiers 'clamp'"),
        ("v_cndmask_b32_e64 v0, v1, v2, vcc clamp", "modifiers 'clamp'"),
        ("v_cmp_lt_u16_e32 vcc, v0, v1", "v_cmp_lt_u16_e32"),
        ("v_mov_b32_e32 v0, src_shared_base", "operand 'src_shared_base'"),
        ("s_nop", "form"),
        ("s_nop many", "form"),
        ("ds_read_b64 v[0:1], v2 offset:far", "form"),
        ("v_mfma_f32_16x16x32_f16 v[0:3], v[4:7], v[8:11]", "form"),
        ("v_mfma_f32_4x4x2_16b_bf16 v[0:3], v4, v5, v[0:3]", "v_mfma_f32_4x4x2_16b_bf16"),
        ("v_mfma_f32_16x16x32_f16 v[0:3], v[4:5], v[6:7], v[0:3]", "operand width"),
        ("v_mfma_f32_16x16x32_f16 v[0:3], v[4:7], v[8:11], v[0:3] cbsz:1", "modifiers 'cbsz:1'"),
        ("v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[4:7], v[8:11], v[0:3] cbsz:5 blgp:4", "modifiers 'cbsz:5 blgp:4'"),
        ("v_mfma_f32_16x16x8_xf32 v[0:3], v[4:5], v[6:7], v[0:3]", "v_mfma_f32_16x16x8_xf32"),
        ("buffer_load_dword v0, v1, s[0:3], 0 idxen", "modifier 'idxen'"),
        ("buffer_load_ubyte v1, s[0:3], 0 offen lds", "width of a load to LDS"),
        ("s_load_dword s0, s[2:3], 0x0 glc", "modifiers 'glc'"),
        ("ds_read_b32 v0, v1 gds", "modifier 'gds'"),
        ("ds_append v0", "ds_append"),
        ("s_waitcnt 0x3f70", "count"),
        ("flat_load_dword v0, v[2:3]", "flat_load_dword"),
        ("scratch_load_dword v0, off, s0", "scratch_load_dword"),
    ],
)
def test_what_it_cannot_run_it_refuses(text: str, part: str) -> None:
    assert part in raised("I102", lambda: loaded(text)).message
