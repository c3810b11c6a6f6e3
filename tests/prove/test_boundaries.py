"""The last byte that an LDS op uses, and the next one: each op with addresses that are known, and that come from data.

One wave does the op in all lanes, the other touches a byte: the last one is a race, the next one isn't.  LDS that ends
after the last byte is enough, and one byte less isn't.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from rota.prove.kernel_proof import Policies
from tests.prove.written import codes, judged

M0 = 0x100
HEAD = """
v_readfirstlane_b32 s4, v0
v_and_b32_e32 v10, 63, v0
s_lshr_b32 s4, s4, 6
s_mov_b32 m0, 0x100
{index}
v_mul_u32_u24_e32 v1, {stride}, v10
s_cmp_eq_u32 s4, 0
s_cbranch_scc0 L1
{op}
s_branch Lend
L1:
v_mov_b32_e32 v2, {at}
{touch}
Lend:
s_waitcnt vmcnt(0) lgkmcnt(0)
"""
FROM_DATA = "global_load_dword v10, v0, s[8:9]\ns_waitcnt vmcnt(0)\nv_min_u32_e32 v10, 63, v10"
M0_FROM_DATA = "s_load_dword s6, s[8:9], 0x0\ns_waitcnt lgkmcnt(0)\ns_min_u32 s6, s6, 64\ns_lshl_b32 m0, s6, 2\ns_nop 4"
READ, WRITE = "ds_read_u8 v3, v2", "ds_write_b8 v2, v20"


@dataclass(frozen=True)
class Op:
    """An op whose lanes are `stride` bytes apart; it uses all bytes up to `end` of those that the last lane uses."""

    text: str
    stride: int
    end: int
    touch: str = READ

    @property
    def last(self) -> int:
        return 63 * self.stride + self.end

    def judged(self, at: int, index: str = "", lds_bytes: int = 4096, base: int = 0) -> list[str]:
        text = HEAD.format(index=index, stride=self.stride, op=self.text, at=hex(at + base), touch=self.touch)
        return codes(judged(text, lds_bytes=lds_bytes, policies=Policies()))


def _of(text: str, width: int, end: int = 0, touch: str = READ) -> Op:
    return Op(text, width, end or width, touch)


DS = [
    _of("ds_write_b8 v1, v20", 1),
    _of("ds_write_b8_d16_hi v1, v20", 1),
    _of("ds_write_b16 v1, v20", 2),
    _of("ds_write_b16_d16_hi v1, v20", 2),
    _of("ds_write_b32 v1, v20", 4),
    _of("ds_write_b64 v1, v[20:21]", 8),
    _of("ds_write_b96 v1, v[20:22]", 12),
    _of("ds_write_b128 v1, v[20:23]", 16),
    _of("ds_write_b32 v1, v20 offset:40", 4, 44),
    _of("ds_write2_b32 v1, v20, v21 offset1:7", 4, 32),
    _of("ds_write2st64_b32 v1, v20, v21 offset1:3", 4, 772),
    _of("ds_write2_b64 v1, v[20:21], v[22:23] offset1:9", 8, 80),
    _of("ds_write2st64_b64 v1, v[20:21], v[22:23] offset1:2", 8, 1032),
    _of("ds_read_u8 v5, v1", 1, touch=WRITE),
    _of("ds_read_i8 v5, v1", 1, touch=WRITE),
    _of("ds_read_u8_d16 v20, v1", 1, touch=WRITE),
    _of("ds_read_u8_d16_hi v20, v1", 1, touch=WRITE),
    _of("ds_read_u16 v5, v1", 2, touch=WRITE),
    _of("ds_read_i16 v5, v1", 2, touch=WRITE),
    _of("ds_read_u16_d16 v20, v1", 2, touch=WRITE),
    _of("ds_read_u16_d16_hi v20, v1", 2, touch=WRITE),
    _of("ds_read_b32 v5, v1", 4, touch=WRITE),
    _of("ds_read_b64 v[20:21], v1", 8, touch=WRITE),
    _of("ds_read_b96 v[20:22], v1", 12, touch=WRITE),
    _of("ds_read_b128 v[20:23], v1", 16, touch=WRITE),
    _of("ds_read2_b32 v[20:21], v1 offset1:5", 4, 24, touch=WRITE),
    _of("ds_read2st64_b32 v[20:21], v1 offset1:5", 4, 1284, touch=WRITE),
    _of("ds_read2_b64 v[20:23], v1 offset1:5", 8, 48, touch=WRITE),
    _of("ds_read2st64_b64 v[20:23], v1 offset1:2", 8, 1032, touch=WRITE),
    _of("ds_read_b64_tr_b16 v[20:21], v1", 8, touch=WRITE),
    _of("ds_read_b64_tr_b8 v[20:21], v1", 8, touch=WRITE),
    _of("ds_read_b64_tr_b4 v[20:21], v1", 8, touch=WRITE),
    _of("ds_read_b96_tr_b6 v[20:22], v1", 16, 12, touch=WRITE),
    _of("ds_add_u32 v1, v20", 4),
    _of("ds_sub_u32 v1, v20", 4),
    _of("ds_rsub_u32 v1, v20", 4),
    _of("ds_inc_u32 v1, v20", 4),
    _of("ds_dec_u32 v1, v20", 4),
    _of("ds_min_i32 v1, v20", 4),
    _of("ds_max_rtn_u64 v[20:21], v1, v[22:23]", 8),
    _of("ds_and_b32 v1, v20", 4),
    _of("ds_or_rtn_b32 v5, v1, v20", 4),
    _of("ds_xor_b64 v1, v[20:21]", 8),
    _of("ds_mskor_b32 v1, v20, v21", 4),
    _of("ds_cmpst_b32 v1, v20, v21", 4),
    _of("ds_cmpst_rtn_b64 v[24:25], v1, v[20:21], v[22:23]", 8),
    _of("ds_wrxchg_rtn_b32 v5, v1, v20", 4),
    _of("ds_wrxchg_rtn_b64 v[20:21], v1, v[22:23]", 8),
    _of("ds_add_u64 v1, v[20:21]", 8),
    _of("ds_add_rtn_f32 v5, v1, v20", 4),
    _of("ds_add_f64 v1, v[20:21]", 8),
    _of("ds_pk_add_f16 v1, v20", 4),
    _of("ds_pk_add_bf16 v1, v20", 4),
]
DMA = [
    _of("buffer_load_dword v20, s[8:11], 0 offen lds", 4),
    _of("buffer_load_dword v20, s[8:11], 0 offen offset:512 lds", 4, 516),
    _of("buffer_load_dwordx3 v20, s[8:11], 0 offen lds", 12),
    _of("buffer_load_dwordx4 v20, s[8:11], 0 offen lds", 16),
    _of("global_load_lds_dword v20, s[8:9]", 4),
    _of("global_load_lds_dwordx3 v20, s[8:9]", 12),
    _of("global_load_lds_dwordx4 v20, s[8:9] offset:256", 16, 272),
]
NOT_KNOWN = [  # what the proof doesn't know ends it, and is never taken for nothing
    "ds_write_addtid_b32 v20 offset:16",
    "ds_read_addtid_b32 v20 offset:16",
    "ds_append v5 offset:64",
    "ds_consume v5 offset:64",
    "ds_wrxchg2_rtn_b32 v[20:21], v1, v22, v23 offset1:5",
    "buffer_load_ubyte v20, s[8:11], 0 offen lds",
    "buffer_load_ushort v20, s[8:11], 0 offen lds",
    "global_load_lds_ushort v20, s[8:9]",
]


@pytest.mark.thorough  # runs for seconds
@pytest.mark.parametrize("index", ["", FROM_DATA], ids=["known", "from data"])
@pytest.mark.parametrize("op", DS, ids=[each.text for each in DS])
def test_the_bytes_of_an_lds_op(op: Op, index: str) -> None:
    assert op.judged(op.last - 1, index) == ["I109"]
    assert op.judged(op.last, index) == []
    assert op.judged(op.last + 8, index, lds_bytes=op.last + 9) == []
    assert "I105" in op.judged(0, index, lds_bytes=op.last - 1)


@pytest.mark.parametrize(("index", "base"), [("", M0), (M0_FROM_DATA, M0)], ids=["known", "from data"])
@pytest.mark.parametrize("op", DMA, ids=[each.text for each in DMA])
def test_the_bytes_of_a_load_to_lds(op: Op, index: str, base: int) -> None:
    assert op.judged(op.last - 1, index, base=base) == ["I109"]
    assert op.judged(op.last, index, base=base) == []
    assert "I105" in op.judged(0, index, lds_bytes=base + op.last - 1, base=base)
    assert "I105" not in op.judged(op.last - 1, index, lds_bytes=base + op.last, base=base)


@pytest.mark.parametrize("text", NOT_KNOWN)
def test_what_the_proof_does_not_know_ends_it(text: str) -> None:
    assert "I401" in _of(text, 4).judged(0)
