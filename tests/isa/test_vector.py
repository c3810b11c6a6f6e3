"""Each VALU instruction against Python's numbers, lane by lane; the oracle works on one lane at a time."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from rota.errors import IsaError
from rota.isa.registers import EXEC, VCC
from tests.isa.single import codes, execute, fresh
from tests.wording.golden import worded

RNG = np.random.default_rng(11)
A, B, C, D = (RNG.integers(0, 2**32, 64, dtype=np.uint32) for _ in range(4))
A[:4] = (0, 1, 0x8000_0000, 0xFFFF_FFFF)
B[:4] = (0xFFFF_FFFF, 0xFFFF_FFFF, 31, 0x7FFF_FFFF)
C[:2] = (0, 0x0C0D_0908)
M32, M64 = 2**32 - 1, 2**64 - 1
SCALAR = 0x0706_0104


def signed(value: int, bits: int = 32) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


def permuted(a: int, b: int, selector: int) -> int:
    octets = [b >> 8 * i & 0xFF for i in range(4)] + [a >> 8 * i & 0xFF for i in range(4)]
    signs = [b >> 15 & 1, b >> 31 & 1, a >> 15 & 1, a >> 31 & 1]
    table = {**dict(enumerate(octets)), **{8 + i: 0xFF * sign for i, sign in enumerate(signs)}, 12: 0}
    return sum(table.get(selector >> 8 * i & 0xFF, 0xFF) << 8 * i for i in range(4))


def field(a: int, b: int, c: int) -> int:
    return a >> (b & 31) & ((1 << (c & 31)) - 1)


class Case(NamedTuple):
    text: str
    oracle: Callable[..., int]  # of v0, v1, v2, v3 as unsigned numbers


# v0 to v3 hold A to D (so v[0:1] is B << 32 | A), s4 the number SCALAR; the result goes to v8 or v[8:9].
CASES = [
    Case("v_mov_b32_e32 v8, v0", lambda a, b, c, d: a),
    Case("v_mov_b32_e32 v8, s4", lambda a, b, c, d: SCALAR),
    Case("v_mov_b64_e32 v[8:9], v[2:3]", lambda a, b, c, d: c | d << 32),
    Case("v_accvgpr_write_b32 a8, v0", lambda a, b, c, d: a),
    Case("v_not_b32_e32 v8, v0", lambda a, b, c, d: ~a & M32),
    Case("v_bfrev_b32_e32 v8, v0", lambda a, b, c, d: int(f"{a:032b}"[::-1], 2)),
    Case("v_bcnt_u32_b32 v8, v0, v1", lambda a, b, c, d: (a.bit_count() + b) & M32),
    Case("v_add_u32_e32 v8, v0, v1", lambda a, b, c, d: (a + b) & M32),
    Case("v_add_u32_e32 v8, s4, v1", lambda a, b, c, d: (SCALAR + b) & M32),
    Case("v_sub_u32_e32 v8, v0, v1", lambda a, b, c, d: (a - b) & M32),
    Case("v_subrev_u32_e32 v8, v0, v1", lambda a, b, c, d: (b - a) & M32),
    Case("v_mul_lo_u32 v8, v0, v1", lambda a, b, c, d: a * b & M32),
    Case("v_mul_hi_u32 v8, v0, v1", lambda a, b, c, d: a * b >> 32),
    Case("v_mul_hi_i32 v8, v0, v1", lambda a, b, c, d: signed(a) * signed(b) >> 32 & M32),
    Case("v_mul_u32_u24_e32 v8, v0, v1", lambda a, b, c, d: (a & 0xFFFFFF) * (b & 0xFFFFFF) & M32),
    Case("v_mul_i32_i24_e32 v8, v0, v1", lambda a, b, c, d: signed(a & 0xFFFFFF, 24) * signed(b & 0xFFFFFF, 24) & M32),
    Case("v_mad_u32_u24 v8, v0, v1, v2", lambda a, b, c, d: ((a & 0xFFFFFF) * (b & 0xFFFFFF) + c) & M32),
    Case("v_mad_i32_i24 v8, v0, v1, v2",
         lambda a, b, c, d: (signed(a & 0xFFFFFF, 24) * signed(b & 0xFFFFFF, 24) + c) & M32),
    Case("v_lshlrev_b32_e32 v8, v0, v1", lambda a, b, c, d: b << (a & 31) & M32),
    Case("v_lshrrev_b32_e32 v8, v0, v1", lambda a, b, c, d: b >> (a & 31)),
    Case("v_ashrrev_i32_e32 v8, v0, v1", lambda a, b, c, d: signed(b) >> (a & 31) & M32),
    Case("v_ashrrev_i32_e32 v8, 31, v1", lambda a, b, c, d: signed(b) >> 31 & M32),
    Case("v_lshlrev_b64 v[8:9], v0, v[2:3]", lambda a, b, c, d: (c | d << 32) << (a & 63) & M64),
    Case("v_lshrrev_b64 v[8:9], 5, v[2:3]", lambda a, b, c, d: (c | d << 32) >> 5),
    Case("v_ashrrev_i64 v[8:9], v0, v[2:3]", lambda a, b, c, d: signed(c | d << 32, 64) >> (a & 63) & M64),
    Case("v_add_u16_e32 v8, v0, v1", lambda a, b, c, d: (a + b) & 0xFFFF),
    Case("v_sub_u16_e32 v8, v0, v1", lambda a, b, c, d: (a - b) & 0xFFFF),
    Case("v_mul_lo_u16_e32 v8, v0, v1", lambda a, b, c, d: a * b & 0xFFFF),
    Case("v_lshlrev_b16_e32 v8, v0, v1", lambda a, b, c, d: b << (a & 15) & 0xFFFF),
    Case("v_lshrrev_b16_e32 v8, v0, v1", lambda a, b, c, d: (b & 0xFFFF) >> (a & 15)),
    Case("v_and_b32_e32 v8, 0xf0f0f0f0, v1", lambda a, b, c, d: 0xF0F0F0F0 & b),
    Case("v_or_b32_e32 v8, v0, v1", lambda a, b, c, d: a | b),
    Case("v_xor_b32_e32 v8, -1, v1", lambda a, b, c, d: ~b & M32),
    Case("v_xnor_b32_e32 v8, v0, v1", lambda a, b, c, d: ~(a ^ b) & M32),
    Case("v_min_u32_e32 v8, v0, v1", lambda a, b, c, d: min(a, b)),
    Case("v_max_u32_e32 v8, v0, v1", lambda a, b, c, d: max(a, b)),
    Case("v_min_i32_e32 v8, v0, v1", lambda a, b, c, d: min(a, b, key=signed)),
    Case("v_max_i32_e32 v8, v0, v1", lambda a, b, c, d: max(a, b, key=signed)),
    Case("v_add3_u32 v8, v0, v1, v2", lambda a, b, c, d: (a + b + c) & M32),
    Case("v_lshl_add_u32 v8, v0, 3, v2", lambda a, b, c, d: ((a << 3) + c) & M32),
    Case("v_add_lshl_u32 v8, v0, v1, 1", lambda a, b, c, d: (a + b) << 1 & M32),
    Case("v_lshl_or_b32 v8, v0, v1, v2", lambda a, b, c, d: (a << (b & 31) | c) & M32),
    Case("v_and_or_b32 v8, v0, v1, v2", lambda a, b, c, d: a & b | c),
    Case("v_or3_b32 v8, v0, v1, v2", lambda a, b, c, d: a | b | c),
    Case("v_xad_u32 v8, v0, v1, v2", lambda a, b, c, d: ((a ^ b) + c) & M32),
    Case("v_lshl_add_u64 v[8:9], v[0:1], 2, v[2:3]", lambda a, b, c, d: ((a | b << 32) * 4 + (c | d << 32)) & M64),
    Case("v_bfe_u32 v8, v0, v1, v2", lambda a, b, c, d: field(a, b, c)),
    Case("v_bfe_i32 v8, v0, v1, v2",
         lambda a, b, c, d: signed(field(a, b, c), c & 31) & M32 if c & 31 else 0),
    Case("v_bfi_b32 v8, v0, v1, v2", lambda a, b, c, d: a & b | ~a & c),
    Case("v_alignbit_b32 v8, v0, v1, v2", lambda a, b, c, d: (a << 32 | b) >> (c & 31) & M32),
    Case("v_alignbyte_b32 v8, v0, v1, v2", lambda a, b, c, d: (a << 32 | b) >> 8 * (c & 3) & M32),
    Case("v_perm_b32 v8, v0, v1, s4", lambda a, b, c, d: permuted(a, b, SCALAR)),
    Case("v_perm_b32 v8, v0, v1, v2", lambda a, b, c, d: permuted(a, b, c)),
    Case("v_mad_u64_u32 v[8:9], s[6:7], v0, v1, v[2:3]", lambda a, b, c, d: (a * b + (c | d << 32)) & M64),
    Case("v_mad_i64_i32 v[8:9], s[6:7], v0, s4, v[2:3]", lambda a, b, c, d: (signed(a) * SCALAR + (c | d << 32)) & M64),
    Case("v_bitop3_b32 v8, v0, v1, v2 bitop3:0x6c", lambda a, b, c, d: b ^ (a & c)),
    Case("v_bitop3_b32 v8, v0, v1, s4 bitop3:0x36", lambda a, b, c, d: (a | SCALAR) ^ b),
    Case("v_pack_b32_f16 v8, v0, v1", lambda a, b, c, d: a & 0xFFFF | (b & 0xFFFF) << 16),
    Case("v_or_b32_sdwa v8, v0, v1 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:BYTE_2",
         lambda a, b, c, d: a >> 16 | b >> 16 & 0xFF),
    Case("v_add_u32_sdwa v8, v0, sext(v1) dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD src1_sel:WORD_0",
         lambda a, b, c, d: 0x1234 | (a + signed(b & 0xFFFF, 16) & 0xFFFF) << 16),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.text)
def test_whole_numbers(case: Case) -> None:
    wave = execute(case.text, fresh({0: A, 1: B, 2: C, 3: D, 8: 0xABCD_1234, 9: 0}, {4: SCALAR}))
    row = 256 + 8 if "a8" in case.text else 8
    result = wave.v[row].astype(object) | (wave.v[9].astype(object) << 32 if "v[8:9]" in case.text else 0)
    wanted = [case.oracle(*(int(x) for x in lane)) for lane in zip(A, B, C, D, strict=True)]
    assert result.tolist() == wanted
    assert codes(wave) == []


@pytest.mark.parametrize("case", CASES[4:16:3], ids=lambda case: case.text)
def test_lanes_that_exec_leaves_out_keep_their_value(case: Case) -> None:
    wave = fresh({0: A, 1: B, 2: C, 3: D, 8: 5, 9: 5}, {4: SCALAR, EXEC: 0x0000_FFFF, EXEC + 1: 0x8000_0000})
    execute(case.text, wave)
    assert (wave.v[8, 16:63] == 5).all()
    assert wave.v[8, 63] == case.oracle(int(A[63]), int(B[63]), int(C[63]), int(D[63])) & M32


X, Y, Z = ((RNG.standard_normal(64) * 50).astype(np.float32) for _ in range(3))


class Real(NamedTuple):
    text: str
    oracle: Callable[[float, float, float], float]


# v0 to v2 hold X to Z; what comes out is the oracle's number rounded to float32.
REALS = [
    Real("v_add_f32_e32 v8, v0, v1", lambda x, y, z: x + y),
    Real("v_sub_f32_e32 v8, v0, v1", lambda x, y, z: x - y),
    Real("v_subrev_f32_e32 v8, v0, v1", lambda x, y, z: y - x),
    Real("v_mul_f32_e32 v8, v0, v1", lambda x, y, z: x * y),
    Real("v_mul_f32_e64 v8, -v0, |v1|", lambda x, y, z: -x * abs(y)),
    Real("v_mul_f32_e64 v8, -|v0|, v1", lambda x, y, z: -abs(x) * y),
    Real("v_mul_f32_e64 v8, v0, v1 clamp", lambda x, y, z: min(max(x * y, 0.0), 1.0)),
    Real("v_max_f32_e32 v8, v0, v1", lambda x, y, z: max(x, y)),
    Real("v_min_f32_e32 v8, 4.0, v1", lambda x, y, z: min(4.0, y)),
    Real("v_max3_f32 v8, v0, v1, v2", lambda x, y, z: max(x, y, z)),
    Real("v_fma_f32 v8, v0, v1, v2", lambda x, y, z: x * y + z),
    Real("v_fmac_f32_e32 v8, v0, v1", lambda x, y, z: x * y + 3.0),
    Real("v_rcp_f32_e32 v8, v0", lambda x, y, z: 1 / x),
    Real("v_rcp_iflag_f32_e32 v8, v0", lambda x, y, z: 1 / x),
    Real("v_exp_f32_e32 v8, v0", lambda x, y, z: 2.0**x),
    Real("v_log_f32_e64 v8, |v0|", lambda x, y, z: math.log2(abs(x))),
    Real("v_sqrt_f32_e64 v8, |v0|", lambda x, y, z: math.sqrt(abs(x))),
]


@pytest.mark.parametrize("case", REALS, ids=lambda case: case.text)
def test_real_numbers(case: Real) -> None:
    wave = execute(case.text, fresh({0: X, 1: Y, 2: Z, 8: np.full(64, 3, np.float32)}))
    wanted = [case.oracle(*(float(v) for v in lane)) for lane in zip(X, Y, Z, strict=True)]
    np.testing.assert_allclose(wave.f[8], np.array(wanted).astype(np.float32), rtol=2e-7)


def test_pairs_choose_their_halves() -> None:
    wave = fresh({0: X, 1: Y, 2: Z, 3: X, 4: Y, 5: Y})
    execute("v_pk_mul_f32 v[8:9], v[0:1], v[2:3] op_sel:[1,0] op_sel_hi:[0,1]", wave)
    np.testing.assert_array_equal(wave.f[8:10], [Y * Z, X * X])
    execute("v_pk_add_f32 v[8:9], v[0:1], v[2:3] neg_lo:[0,1] neg_hi:[0,1]", wave)
    np.testing.assert_array_equal(wave.f[8:10], [X - Z, Y - X])
    execute("v_pk_fma_f32 v[0:1], v[0:1], v[2:3], v[4:5]", wave)
    np.testing.assert_allclose(wave.f[0:2], [X * Z.astype(float) + Y, Y * X.astype(float) + Y], rtol=1e-6)


def as_bits(form: str, value: float) -> int:
    (bits,) = struct.unpack("<H" if form == "<e" else "<I", struct.pack(form, value))
    return int(bits)


EXACT = np.array([0.0, 1.0, -2.5, 65504.0, 1e-7, 0.333251953125, -0.1, 1024.7] * 8, np.float32)


@pytest.mark.parametrize(
    ("text", "oracle"),
    [
        ("v_cvt_f16_f32_e32 v8, v0", lambda x, y: as_bits("<e", x)),
        ("v_cvt_pk_f16_f32 v8, v0, v1", lambda x, y: as_bits("<e", x) | as_bits("<e", y) << 16),
        ("v_cvt_u32_f32_e32 v8, v0", lambda x, y: max(0, int(x))),
        ("v_cvt_i32_f32_e32 v8, v0", lambda x, y: int(x) & M32),
    ],
)
def test_conversions(text: str, oracle: Callable[[float, float], int]) -> None:
    other = EXACT[::-1].copy()
    wave = execute(text, fresh({0: EXACT, 1: other}))
    assert wave.v[8].tolist() == [oracle(float(x), float(y)) for x, y in zip(EXACT, other, strict=True)]


def test_conversions_to_real_numbers() -> None:
    wave = execute(
        "v_cvt_f32_u32_e32 v8, v0\nv_cvt_f32_i32_e32 v9, v0\nv_cvt_f32_f16_e32 v10, v1", fresh({0: A, 1: 0x3C00})
    )
    np.testing.assert_array_equal(wave.f[8], A.astype(np.float32))
    np.testing.assert_array_equal(wave.f[9], A.view(np.int32).astype(np.float32))
    assert (wave.f[10] == 1.0).all()
    assert (execute("v_cvt_f32_f16_e32 v8, 1.0", fresh()).f[8] == 1.0).all()


def test_towards_zero_takes_the_largest_half_that_is_not_larger() -> None:
    wave = execute("v_cvt_pkrtz_f16_f32 v8, v0, v0", fresh({0: EXACT}))
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float64)
    wanted = np.searchsorted(halves, np.abs(EXACT.astype(np.float64)), side="right") - 1
    wanted |= np.where(EXACT < 0, 0x8000, 0)
    assert (wave.v[8] & 0xFFFF).tolist() == (wave.v[8] >> 16).tolist() == wanted.tolist()


def test_bf16_rounds_to_even_and_keeps_nan() -> None:
    bits = np.array([0x3F80_8000, 0x3F81_8000, 0x3F80_8001, 0x7F80_0001] * 16, np.uint32)
    wave = execute("v_cvt_pk_bf16_f32 v8, v0, v0", fresh({0: bits}))
    assert (wave.v[8, :3] & 0xFFFF).tolist() == [0x3F80, 0x3F82, 0x3F81]
    assert wave.v[8, 3] & 0x7FFF > 0x7F80


def test_carry_goes_out_and_in() -> None:
    wave = execute(
        "v_add_co_u32_e32 v8, vcc, v0, v1\nv_addc_co_u32_e32 v9, vcc, v2, v3, vcc", fresh({0: A, 1: B, 2: C, 3: D})
    )
    total = (A.astype(object) | C.astype(object) << 32) + (B.astype(object) | D.astype(object) << 32)
    assert (wave.v[8].astype(object) | wave.v[9].astype(object) << 32).tolist() == [int(t) & M64 for t in total]
    assert wave.s[VCC] | wave.s[VCC + 1] << 32 == sum((int(t) >> 64) << lane for lane, t in enumerate(total))
    execute("v_sub_co_u32_e32 v8, vcc, v0, v1\nv_subb_co_u32_e32 v9, vcc, v2, v3, vcc", wave)
    rest = (A.astype(object) | C.astype(object) << 32) - (B.astype(object) | D.astype(object) << 32)
    assert (wave.v[8].astype(object) | wave.v[9].astype(object) << 32).tolist() == [int(t) & M64 for t in rest]
    execute("v_subrev_co_u32_e32 v8, vcc, v1, v0\nv_subbrev_co_u32_e32 v9, vcc, v3, v2, vcc", wave)
    assert (wave.v[8].astype(object) | wave.v[9].astype(object) << 32).tolist() == [int(t) & M64 for t in rest]


NAN = float("nan")


@pytest.mark.parametrize(
    ("order", "kind", "oracle"),
    [
        ("lt", "i32", lambda a, b: signed(a) < signed(b)),
        ("le", "u32", lambda a, b: a <= b),
        ("ne", "u32", lambda a, b: a != b),
        ("gt", "i32", lambda a, b: signed(a) > signed(b)),
        ("ge", "u32", lambda a, b: a >= b),
        ("eq", "u32", lambda a, b: a == b),
    ],
)
def test_comparisons(order: str, kind: str, oracle: Callable[[int, int], bool]) -> None:
    wave = fresh({0: A, 1: B}, {EXEC: M32, EXEC + 1: 0x7FFF_FFFF})
    execute(f"v_cmp_{order}_{kind}_e64 s[6:7], v0, v1", wave)
    wanted = sum(oracle(int(a), int(b)) << lane for lane, (a, b) in enumerate(zip(A, B, strict=True)) if lane < 63)
    assert wave.s[6] | wave.s[7] << 32 == wanted


@pytest.mark.parametrize(
    ("order", "wanted"),
    [("lt", "100"), ("nlt", "011"), ("u", "001"), ("o", "110"), ("lg", "100"), ("nlg", "011"), ("neq", "101"),
     ("nle", "001"), ("nge", "101"), ("ngt", "111")],
)  # fmt: skip
def test_comparisons_with_nan(order: str, wanted: str) -> None:
    left, right = np.array([1, 2, NAN] + [0] * 61, np.float32), np.array([2, 2, 1] + [0] * 61, np.float32)
    wave = execute(f"v_cmp_{order}_f32_e32 vcc, v0, v1", fresh({0: left, 1: right}))
    assert "".join(str(wave.s[VCC] >> lane & 1) for lane in range(3)) == wanted


def flipped(bits: int) -> int:
    return bits ^ 1 << 31


def cleared(bits: int) -> int:
    return bits & ~(1 << 31)


@pytest.mark.parametrize(
    ("no", "yes", "oracle"),
    [
        ("v0", "-v1", lambda a, b: (a, flipped(b))),
        ("-v0", "v1", lambda a, b: (flipped(a), b)),
        ("|v0|", "v1", lambda a, b: (cleared(a), b)),
        ("-|v0|", "-|v1|", lambda a, b: (flipped(cleared(a)), flipped(cleared(b)))),
        ("-s4", "1.0", lambda a, b: (flipped(SCALAR), 0x3F80_0000)),
    ],
)
def test_a_choice_takes_signs_as_bits(no: str, yes: str, oracle: Callable[[int, int], tuple[int, int]]) -> None:
    """On any bits, NaNs and integers included: a sign flips bit 31, bars clear it (CDNA3 ISA, VOP3)."""
    wave = fresh({0: A, 1: B}, {4: SCALAR, VCC: 0xAAAA_AAAA, VCC + 1: 0xAAAA_AAAA})
    execute(f"v_cndmask_b32_e64 v8, {no}, {yes}, vcc", wave)
    assert wave.v[8].tolist() == [oracle(int(A[lane]), int(B[lane]))[lane % 2] for lane in range(64)]


def test_signs_of_nan_and_of_halves_are_bits_as_well() -> None:
    wave = fresh({0: 0x7FC0_1234, 1: 0xFFC0_5678, 2: 0x0000_3C01, 3: 0x0000_FE03})
    execute("v_pack_b32_f16 v8, -v2, |v3|\nv_pack_b32_f16 v9, -|v2|, 1.0\nv_cvt_f32_f16_e64 v10, -v2", wave)
    assert (wave.v[8] == 0x7E03_BC01).all()
    assert (wave.v[9] == 0x3C00_BC01).all()
    assert (wave.f[10] == -(1 + 2**-10)).all()
    execute("v_max_f32_e64 v8, -v0, -v0\nv_cmp_u_f32_e64 s[8:9], |v1|, |v1|", wave)
    assert np.isnan(wave.f[8]).all()
    assert wave.s[8:10] == [M32, M32]


@pytest.mark.parametrize(
    "text",
    [
        "v_add_u32_e64 v8, -v0, v1",
        "v_mov_b32_e64 v8, |v0|",
        "v_cmp_lt_i32_e64 vcc, -v0, v1",
        "v_cvt_i32_f32_sdwa v8, -v0 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1",
    ],
)
def test_a_sign_that_no_assembler_would_write_is_refused(text: str) -> None:
    with pytest.raises(IsaError) as caught:
        execute(text, fresh({0: A, 1: B}))
    worded(caught.value)


def test_selecting_crossing_and_counting_lanes() -> None:
    wave = fresh({0: A, 1: B, 2: 7}, {4: 9, VCC: 0xFF, VCC + 1: 0, EXEC: 0xFFFF_FFF0, EXEC + 1: M32})
    execute("v_readfirstlane_b32 s8, v0\nv_readlane_b32 s9, v1, s4\nv_cndmask_b32_e32 v8, v0, v1, vcc", wave)
    assert (wave.s[8], wave.s[9]) == (A[4], B[9])
    assert (wave.v[8, 4:8] == B[4:8]).all()
    assert (wave.v[8, 8:] == A[8:]).all()
    execute("v_writelane_b32 v2, s4, 3", wave)
    assert (wave.v[2, 3], wave.v[2, 4]) == (9, 7)
    execute("v_mbcnt_lo_u32_b32 v9, -1, 0\nv_mbcnt_hi_u32_b32 v9, -1, v9", fresh_all := fresh())
    assert fresh_all.v[9].tolist() == list(range(64))
    execute("v_cmpx_gt_u32_e32 vcc, 8, v9", fresh_all)
    assert fresh_all.active.sum() == 8


def all_texts() -> list[str]:
    """Every instruction that these tests spell, for the assembler to judge."""
    cases: list[Any] = [*CASES, *REALS]
    return [case.text for case in cases]
