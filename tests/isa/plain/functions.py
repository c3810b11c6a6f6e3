"""What opcodes compute for one lane: takes values by type, gives a value; a table from opcode to types and function.

Types are u32, i16, f64 and so on; floats come as `Num` and go back exact, to be rounded by whoever stores them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

from tests.isa.plain import numbers as n
from tests.isa.plain.numbers import Num

Choice = Callable[[Num, Num], Num]


class Spec(NamedTuple):
    """Result type, source types, and the function; `ulps` if it is judged by distance."""

    result: str
    sources: tuple[str, ...]
    function: Callable[..., Any]
    ulps: int = 0
    halves: bool = False  # op_sel, and the other half of the destination stays
    encodings: str = "3"  # 1: VOP1, 2: VOP2, 3: VOP3 only
    bounded: bool = False  # the clamp modifier saturates it


def _spec(result: str, sources: str, function: Callable[..., Any], **more: Any) -> Spec:
    return Spec(result, tuple(sources.split()), function, **more)


def _bits_of(value: int, first: int, count: int) -> int:
    return value >> first & ((1 << count) - 1)


def _leading(value: int, bit: int) -> int:
    for place in range(32):
        if value >> (31 - place) & 1 == bit:
            return place
    return 0xFFFF_FFFF


def _permuted(a: int, b: int, selector: int) -> int:
    data = [b >> 8 * i & 0xFF for i in range(4)] + [a >> 8 * i & 0xFF for i in range(4)]
    out = 0
    for i in range(4):
        which = selector >> 8 * i & 0xFF
        if which > 12:
            byte = 0xFF
        elif which == 12:
            byte = 0
        elif which >= 8:
            byte = 0xFF if data[2 * (which - 8) + 1] & 0x80 else 0
        else:
            byte = data[which]
        out |= byte << 8 * i
    return out


def _bytes(value: int) -> list[int]:
    return [value >> 8 * i & 0xFF for i in range(4)]


def _field(a: int, b: int, c: int, *, sign: bool) -> int:
    size = c & 31
    value = _bits_of(a, b & 31, size)
    return n.signed(value, size) if sign and size else value


def _saturate(value: int, low: int, high: int) -> int:
    return max(low, min(value, high))


def _pk16(a: int, b: int) -> int:
    return (a & 0xFFFF) | (b & 0xFFFF) << 16


def _dot(a: int, b: int, c: int, count: int, sign: bool) -> int:
    bits = 32 // count
    for i in range(count):
        x, y = _bits_of(a, i * bits, bits), _bits_of(b, i * bits, bits)
        c += n.signed(x, bits) * n.signed(y, bits) if sign else x * y
    return c


def _rounded(a: Num, how: Callable[[Fraction], int]) -> Num:
    if a.nan or a.inf:
        return a
    return Num(negative=a.negative, size=Fraction(abs(how(a.value))))


def _trunc(value: Fraction) -> int:
    return math.trunc(value)


def _to_int(a: Num, low: int, high: int, how: Callable[[Fraction], int] = _trunc) -> int:
    if a.nan:
        return 0
    if a.inf:
        return low if a.negative else high
    return _saturate(how(a.value), low, high)


def _fract(form: str) -> Callable[[Num], Num]:
    def compute(a: Num) -> Num:
        if a.nan or a.inf:
            return n.NAN
        part = a.value - math.floor(a.value)
        most = 1 - n.power_of_two(-n.FORMATS[form][1] - 1)
        return n.number(min(part, most))

    return compute


def _scale(a: Num, power: int) -> Num:
    power = _saturate(power, -5000, 5000)
    return a if a.nan or a.inf else a._replace(size=a.size * n.power_of_two(power))


def _frexp(a: Num) -> tuple[Num, int]:
    if a.nan or a.inf or a.zero:
        return a, 0
    exponent = n.log2_floor(a.size) + 1
    return a._replace(size=a.size / n.power_of_two(exponent)), exponent


def _middle(a: Num, b: Num, c: Num, low: Choice, high: Choice) -> Num:
    if a.nan or b.nan or c.nan:
        return low(low(a, b), c)
    top = high(high(a, b), c)
    if n.same(top, a):
        return high(b, c)
    return high(a, c) if n.same(top, b) else high(a, b)


def _strict(choose: Choice) -> Callable[[Num, Num, Num], Num]:
    return lambda a, b, c: n.NAN if a.nan or b.nan or c.nan else choose(choose(a, b), c)


def _through_float(function: Callable[[float], float]) -> Callable[[Num], Num]:
    def compute(a: Num) -> Num:
        try:
            return n.from_float(function(n.to_float(a)))
        except OverflowError:
            return n.infinite(negative=False)
        except ValueError:
            return n.NAN

    return compute


def _log2(value: float) -> float:
    return -math.inf if value == 0 else math.log2(value)


def _wave(function: Callable[[float], float], outside: float) -> Callable[[float], float]:
    def compute(value: float) -> float:
        if math.isnan(value) or math.isinf(value):
            return math.nan
        return outside if abs(value) > 256 else function(2 * math.pi * math.remainder(value, 1))

    return compute


M = 0xFFFF_FFFF
INTEGERS: dict[str, Spec] = {
    "v_mov_b32": _spec("u32", "u32", lambda a: a, encodings="1"),
    "v_mov_b64": _spec("u64", "u64", lambda a: a, encodings="1"),
    "v_not_b32": _spec("u32", "u32", lambda a: ~a, encodings="1"),
    "v_bfrev_b32": _spec("u32", "u32", lambda a: sum((a >> i & 1) << 31 - i for i in range(32)), encodings="1"),
    "v_ffbh_u32": _spec("u32", "u32", lambda a: _leading(a, 1), encodings="1"),
    "v_ffbl_b32": _spec("u32", "u32", lambda a: next((i for i in range(32) if a >> i & 1), M), encodings="1"),
    "v_ffbh_i32": _spec("u32", "u32", lambda a: _leading(a, 1 - (a >> 31)), encodings="1"),
    "v_prng_b32": _spec("u32", "u32", lambda a: (a << 1 & M) ^ (197 if a >> 31 else 0), encodings="1"),
    "v_sat_pk_u8_i16": _spec(
        "u16", "u32", lambda a: sum(_saturate(n.signed(a >> s & 0xFFFF, 16), 0, 255) << s // 2 for s in (0, 16)),
        encodings="1"),
    "v_bcnt_u32_b32": _spec("u32", "u32 u32", lambda a, b: sum(a >> i & 1 for i in range(32)) + b),
    "v_mul_lo_u32": _spec("u32", "u32 u32", lambda a, b: a * b),
    "v_mul_hi_u32": _spec("u32", "u32 u32", lambda a, b: a * b >> 32),
    "v_mul_hi_i32": _spec("u32", "i32 i32", lambda a, b: a * b >> 32),
    "v_bfm_b32": _spec("u32", "u32 u32", lambda a, b: ((1 << (a & 31)) - 1) << (b & 31)),
    "v_cvt_pk_u16_u32": _spec("u32", "u32 u32", lambda a, b: _pk16(min(a, 0xFFFF), min(b, 0xFFFF))),
    "v_cvt_pk_i16_i32": _spec(
        "u32", "i32 i32", lambda a, b: _pk16(_saturate(a, -32768, 32767), _saturate(b, -32768, 32767))),
    "v_add_i32": _spec("i32", "i32 i32", lambda a, b: a + b, bounded=True),
    "v_sub_i32": _spec("i32", "i32 i32", lambda a, b: a - b, bounded=True),
    "v_lshlrev_b64": _spec("u64", "u32 u64", lambda a, b: b << (a & 63)),
    "v_lshrrev_b64": _spec("u64", "u32 u64", lambda a, b: b >> (a & 63)),
    "v_ashrrev_i64": _spec("u64", "u32 i64", lambda a, b: b >> (a & 63)),
    "v_mul_i32_i24": _spec("u32", "u32 u32", lambda a, b: n.signed(a & 0xFFFFFF, 24) * n.signed(b & 0xFFFFFF, 24),
                           encodings="2"),
    "v_mul_hi_i32_i24": _spec(
        "u32", "u32 u32", lambda a, b: n.signed(a & 0xFFFFFF, 24) * n.signed(b & 0xFFFFFF, 24) >> 32, encodings="2"),
    "v_mul_u32_u24": _spec("u32", "u32 u32", lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF), encodings="2"),
    "v_mul_hi_u32_u24": _spec("u32", "u32 u32", lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF) >> 32, encodings="2"),
    "v_mad_i32_i24": _spec(
        "i32", "u32 u32 i32", lambda a, b, c: n.signed(a & 0xFFFFFF, 24) * n.signed(b & 0xFFFFFF, 24) + c,
        bounded=True),
    "v_mad_u32_u24": _spec("u32", "u32 u32 u32", lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF) + c, bounded=True),
    "v_min_i32": _spec("i32", "i32 i32", min, encodings="2"),
    "v_max_i32": _spec("i32", "i32 i32", max, encodings="2"),
    "v_min_u32": _spec("u32", "u32 u32", min, encodings="2"),
    "v_max_u32": _spec("u32", "u32 u32", max, encodings="2"),
    "v_lshrrev_b32": _spec("u32", "u32 u32", lambda a, b: b >> (a & 31), encodings="2"),
    "v_ashrrev_i32": _spec("u32", "u32 i32", lambda a, b: b >> (a & 31), encodings="2"),
    "v_lshlrev_b32": _spec("u32", "u32 u32", lambda a, b: b << (a & 31), encodings="2"),
    "v_and_b32": _spec("u32", "u32 u32", lambda a, b: a & b, encodings="2"),
    "v_or_b32": _spec("u32", "u32 u32", lambda a, b: a | b, encodings="2"),
    "v_xor_b32": _spec("u32", "u32 u32", lambda a, b: a ^ b, encodings="2"),
    "v_xnor_b32": _spec("u32", "u32 u32", lambda a, b: ~(a ^ b), encodings="2"),
    "v_add_u32": _spec("u32", "u32 u32", lambda a, b: a + b, encodings="2", bounded=True),
    "v_sub_u32": _spec("u32", "u32 u32", lambda a, b: a - b, encodings="2", bounded=True),
    "v_subrev_u32": _spec("u32", "u32 u32", lambda a, b: b - a, encodings="2", bounded=True),
    "v_bfe_u32": _spec("u32", "u32 u32 u32", lambda a, b, c: _field(a, b, c, sign=False)),
    "v_bfe_i32": _spec("u32", "u32 u32 u32", lambda a, b, c: _field(a, b, c, sign=True)),
    "v_bfi_b32": _spec("u32", "u32 u32 u32", lambda a, b, c: sum((b if a >> i & 1 else c) & 1 << i for i in range(32))),
    "v_lerp_u8": _spec("u32", "u32 u32 u32", lambda a, b, c: sum(
        (x + y + (z & 1) >> 1) << 8 * i
        for i, (x, y, z) in enumerate(zip(_bytes(a), _bytes(b), _bytes(c), strict=True)))),
    "v_alignbit_b32": _spec("u32", "u32 u32 u32", lambda a, b, c: (a << 32 | b) >> (c & 31)),
    "v_alignbyte_b32": _spec("u32", "u32 u32 u32", lambda a, b, c: (a << 32 | b) >> 8 * (c & 3)),
    "v_perm_b32": _spec("u32", "u32 u32 u32", _permuted),
    "v_sad_u8": _spec("u32", "u32 u32 u32", lambda a, b, c: c + sum(
        abs(x - y) for x, y in zip(_bytes(a), _bytes(b), strict=True)), bounded=True),
    "v_sad_hi_u8": _spec("u32", "u32 u32 u32", lambda a, b, c: c + (sum(
        abs(x - y) for x, y in zip(_bytes(a), _bytes(b), strict=True)) << 16)),
    "v_msad_u8": _spec("u32", "u32 u32 u32", lambda a, b, c: c + sum(
        abs(x - y) for x, y in zip(_bytes(a), _bytes(b), strict=True) if y), bounded=True),
    "v_sad_u16": _spec("u32", "u32 u32 u32", lambda a, b, c: c + abs((a & 0xFFFF) - (b & 0xFFFF)) + abs(
        (a >> 16) - (b >> 16))),
    "v_sad_u32": _spec("u32", "u32 u32 u32", lambda a, b, c: c + abs(a - b), bounded=True),
    "v_xad_u32": _spec("u32", "u32 u32 u32", lambda a, b, c: (a ^ b) + c),
    "v_lshl_add_u32": _spec("u32", "u32 u32 u32", lambda a, b, c: (a << (b & 31)) + c),
    "v_add_lshl_u32": _spec("u32", "u32 u32 u32", lambda a, b, c: (a + b) << (c & 31)),
    "v_add3_u32": _spec("u32", "u32 u32 u32", lambda a, b, c: a + b + c),
    "v_lshl_or_b32": _spec("u32", "u32 u32 u32", lambda a, b, c: a << (b & 31) | c),
    "v_and_or_b32": _spec("u32", "u32 u32 u32", lambda a, b, c: a & b | c),
    "v_or3_b32": _spec("u32", "u32 u32 u32", lambda a, b, c: a | b | c),
    "v_lshl_add_u64": _spec("u64", "u64 u32 u64", lambda a, b, c: (a << (b & 7)) + c),
    "v_mad_u32_u16": _spec("u32", "u16 u16 u32", lambda a, b, c: a * b + c, bounded=True),
    "v_mad_i32_i16": _spec("i32", "i16 i16 i32", lambda a, b, c: a * b + c, bounded=True),
    "v_ashr_pk_i8_i32": _spec("u16", "i32 i32 u32", lambda a, b, c: sum(
        (_saturate(x >> (c & 31), -128, 127) & 0xFF) << s for x, s in ((a, 0), (b, 8)))),
    "v_ashr_pk_u8_i32": _spec("u16", "i32 i32 u32", lambda a, b, c: sum(
        _saturate(x >> (c & 31), 0, 255) << s for x, s in ((a, 0), (b, 8)))),
    **{f"v_{how}3_{t}": _spec(t, f"{t} {t} {t}", pick, halves=t.endswith("16"))
       for t in ("i32", "u32", "i16", "u16")
       for how, pick in (("min", min), ("max", max), ("med", lambda a, b, c: sorted((a, b, c))[1]))},
    "v_dot2_i32_i16": _spec("i32", "u32 u32 i32", lambda a, b, c: _dot(a, b, c, 2, True), bounded=True),
    "v_dot2_u32_u16": _spec("u32", "u32 u32 u32", lambda a, b, c: _dot(a, b, c, 2, False), bounded=True),
    "v_dot4_i32_i8": _spec("i32", "u32 u32 i32", lambda a, b, c: _dot(a, b, c, 4, True), bounded=True),
    "v_dot4_u32_u8": _spec("u32", "u32 u32 u32", lambda a, b, c: _dot(a, b, c, 4, False), bounded=True),
    "v_dot8_i32_i4": _spec("i32", "u32 u32 i32", lambda a, b, c: _dot(a, b, c, 8, True), bounded=True),
    "v_dot8_u32_u4": _spec("u32", "u32 u32 u32", lambda a, b, c: _dot(a, b, c, 8, False), bounded=True),
}  # fmt: skip
PAIRS: dict[str, Spec] = {
    "add_u16": _spec("u16", "u16 u16", lambda a, b: a + b, encodings="2", bounded=True),
    "sub_u16": _spec("u16", "u16 u16", lambda a, b: a - b, encodings="2", bounded=True),
    "mul_lo_u16": _spec("u16", "u16 u16", lambda a, b: a * b, encodings="2"),
    "lshlrev_b16": _spec("u16", "u16 u16", lambda a, b: b << (a & 15), encodings="2"),
    "lshrrev_b16": _spec("u16", "u16 u16", lambda a, b: b >> (a & 15), encodings="2"),
    "ashrrev_i16": _spec("u16", "u16 i16", lambda a, b: b >> (a & 15), encodings="2"),
    "max_u16": _spec("u16", "u16 u16", max, encodings="2"),
    "max_i16": _spec("i16", "i16 i16", max, encodings="2"),
    "min_u16": _spec("u16", "u16 u16", min, encodings="2"),
    "min_i16": _spec("i16", "i16 i16", min, encodings="2"),
    "add_i16": _spec("i16", "i16 i16", lambda a, b: a + b, halves=True, bounded=True),
    "sub_i16": _spec("i16", "i16 i16", lambda a, b: a - b, halves=True, bounded=True),
    "mad_u16": _spec("u16", "u16 u16 u16", lambda a, b, c: a * b + c, halves=True, bounded=True),
    "mad_i16": _spec("i16", "i16 i16 i16", lambda a, b, c: a * b + c, halves=True, bounded=True),
}
INTEGERS |= {f"v_{name}": spec for name, spec in PAIRS.items()}
INTEGERS |= {
    "v_subrev_u16": _spec("u16", "u16 u16", lambda a, b: b - a, encodings="2", bounded=True),
    "v_mad_legacy_u16": _spec("u16", "u16 u16 u16", lambda a, b, c: a * b + c, bounded=True),
    "v_mad_legacy_i16": _spec("i16", "i16 i16 i16", lambda a, b, c: a * b + c, bounded=True),
}


def _family(t: str) -> dict[str, Spec]:
    half = t == "f16"
    one, two, three = t, f"{t} {t}", f"{t} {t} {t}"
    v2 = "3" if t == "f64" else "2"
    table = {
        "add": _spec(t, two, n.plus, encodings=v2),
        "mul": _spec(t, two, n.times, encodings=v2),
        "min": _spec(t, two, n.smaller, encodings=v2),
        "max": _spec(t, two, n.larger, encodings=v2),
        "fma": _spec(t, three, n.multiply_add, halves=half),
        "trunc": _spec(t, one, lambda a: _rounded(a, math.trunc), encodings="1"),
        "ceil": _spec(t, one, lambda a: _rounded(a, math.ceil), encodings="1"),
        "floor": _spec(t, one, lambda a: _rounded(a, math.floor), encodings="1"),
        "rndne": _spec(t, one, lambda a: _rounded(a, n.nearest), encodings="1"),
        "fract": _spec(t, one, _fract(t), encodings="1"),
        "rcp": _spec(t, one, n.inverse, encodings="1"),
        "sqrt": _spec(t, one, n.root, encodings="1"),
        "rsq": _spec(t, one, lambda a: n.inverse(n.root(a)), encodings="1", ulps=1),
        "frexp_mant": _spec(t, one, lambda a: _frexp(a)[0], encodings="1"),
        "ldexp": _spec(t, f"{t} {'i16' if half else 'i32'}", _scale, encodings="2" if half else "3"),
    }
    if t != "f64":
        table |= {
            "sub": _spec(t, two, lambda a, b: n.plus(a, n.minus(b)), encodings="2"),
            "subrev": _spec(t, two, lambda a, b: n.plus(b, n.minus(a)), encodings="2"),
            "exp": _spec(t, one, _through_float(math.exp2), encodings="1", ulps=1),
            "log": _spec(t, one, _through_float(_log2), encodings="1", ulps=1),
            "sin": _spec(t, one, _through_float(_wave(math.sin, 0.0)), encodings="1", ulps=1),
            "cos": _spec(t, one, _through_float(_wave(math.cos, 1.0)), encodings="1", ulps=1),
            "min3": _spec(t, three, lambda a, b, c: n.smaller(n.smaller(a, b), c), halves=half),
            "max3": _spec(t, three, lambda a, b, c: n.larger(n.larger(a, b), c), halves=half),
            "med3": _spec(t, three, lambda a, b, c: _middle(a, b, c, n.smaller, n.larger), halves=half),
        }
    return {f"v_{name}_{t}": spec for name, spec in table.items()}


def _legacy(a: Num, b: Num) -> Num:
    return n.ZERO if a.zero or b.zero else n.times(a, b)


def _i4(a: int) -> Num:
    return n.number(Fraction(n.signed(a & 15, 4), 16))


REALS: dict[str, Spec] = {
    **_family("f16"), **_family("f32"), **_family("f64"),
    "v_fma_legacy_f16": _spec("f16", "f16 f16 f16", n.multiply_add),
    "v_rcp_iflag_f32": _spec("f32", "f32", n.inverse, encodings="1"),
    "v_mul_legacy_f32": _spec("f32", "f32 f32", _legacy),
    "v_frexp_exp_i32_f32": _spec("i32", "f32", lambda a: _frexp(a)[1], encodings="1"),
    "v_frexp_exp_i32_f64": _spec("i32", "f64", lambda a: _frexp(a)[1], encodings="1"),
    "v_frexp_exp_i16_f16": _spec("i16", "f16", lambda a: _frexp(a)[1], encodings="1"),
    "v_minimum3_f32": _spec("f32", "f32 f32 f32", _strict(n.smaller)),
    "v_maximum3_f32": _spec("f32", "f32 f32 f32", _strict(n.larger)),
    "v_cvt_f32_u32": _spec("f32", "u32", n.number, encodings="1"),
    "v_cvt_f32_i32": _spec("f32", "i32", n.number, encodings="1"),
    "v_cvt_f64_u32": _spec("f64", "u32", n.number, encodings="1"),
    "v_cvt_f64_i32": _spec("f64", "i32", n.number, encodings="1"),
    "v_cvt_u32_f32": _spec("u32", "f32", lambda a: _to_int(a, 0, M), encodings="1"),
    "v_cvt_i32_f32": _spec("i32", "f32", lambda a: _to_int(a, -(2**31), 2**31 - 1), encodings="1"),
    "v_cvt_u32_f64": _spec("u32", "f64", lambda a: _to_int(a, 0, M), encodings="1"),
    "v_cvt_i32_f64": _spec("i32", "f64", lambda a: _to_int(a, -(2**31), 2**31 - 1), encodings="1"),
    "v_cvt_flr_i32_f32": _spec("i32", "f32", lambda a: _to_int(a, -(2**31), 2**31 - 1, math.floor), encodings="1"),
    "v_cvt_f32_f64": _spec("f32", "f64", lambda a: a, encodings="1"),
    "v_cvt_f64_f32": _spec("f64", "f32", lambda a: a, encodings="1"),
    "v_cvt_f32_f16": _spec("f32", "f16", lambda a: a, encodings="1"),
    "v_cvt_f16_f32": _spec("f16", "f32", lambda a: a, encodings="1"),
    "v_cvt_f16_u16": _spec("f16", "u16", n.number, encodings="1"),
    "v_cvt_f16_i16": _spec("f16", "i16", n.number, encodings="1"),
    "v_cvt_u16_f16": _spec("u32", "f16", lambda a: 0xFFFF_0000 | _to_int(a, 0, 0xFFFF), encodings="1"),
    "v_cvt_i16_f16": _spec("u32", "f16", lambda a: 0xFFFF_0000 | _to_int(a, -0x8000, 0x7FFF), encodings="1"),
    "v_cvt_f32_bf16": _spec("f32", "bf16", lambda a: a, encodings="1"),
    "v_cvt_off_f32_i4": _spec("f32", "u32", _i4, encodings="1"),
    **{f"v_cvt_f32_ubyte{i}": _spec("f32", "u32", lambda a, i=i: n.number(a >> 8 * i & 0xFF), encodings="1")
       for i in range(4)},
    "v_cvt_pk_u8_f32": _spec("u32", "f32 u32 u32", lambda a, b, c: c & ~(0xFF << 8 * (b & 3)) | _to_int(
        a, 0, 255, n.nearest) << 8 * (b & 3)),
}  # fmt: skip
