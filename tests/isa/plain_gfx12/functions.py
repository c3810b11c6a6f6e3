"""What gfx1250's opcodes compute for one lane: a table from opcode to types and function.

Many are those of older machines by another name (`tests.isa.plain.functions`); what is new, or means something else
now, is written here, by AMD's manual of RDNA4 and by LLVM. A minimum of numbers (`_num`) ignores NaNs of either kind;
the others (`minimum`) are NaN if an operand is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from tests.isa.plain import numbers as n
from tests.isa.plain.functions import INTEGERS, PAIRS, REALS, Spec
from tests.isa.plain.numbers import Num

Choice = Callable[[Num, Num], Num]
M32 = (1 << 32) - 1


def spec(result: str, sources: str, function: Callable[..., Any], **more: Any) -> Spec:
    return Spec(result, tuple(sources.split()), function, **more)


def least(a: Num, b: Num) -> Num:
    """Of two numbers the smaller one; of a NaN and a number that."""
    if a.nan or b.nan:
        return n.NAN if a.nan and b.nan else b if a.nan else a
    return a if n.below(a, b) or (n.same(a, b) and a.negative) else b


def most(a: Num, b: Num) -> Num:
    return n.minus(least(n.minus(a), n.minus(b)))


def strict_least(a: Num, b: Num) -> Num:
    return n.NAN if a.nan or b.nan else least(a, b)


def strict_most(a: Num, b: Num) -> Num:
    return n.NAN if a.nan or b.nan else most(a, b)


def _middle(a: Num, b: Num, c: Num) -> Num:
    """The least of them if there is a NaN; else the one that isn't the largest, and the larger of the others."""
    if a.nan or b.nan or c.nan:
        return least(least(a, b), c)
    top = most(most(a, b), c)
    if n.same(top, a):
        return most(b, c)
    return most(a, c) if n.same(top, b) else most(a, b)


def _three(first: Choice, second: Choice) -> Callable[[Num, Num, Num], Num]:
    return lambda a, b, c: second(first(a, b), c)


def _tanh(value: float) -> float:
    return math.tanh(value)


def through_float(function: Callable[[float], float]) -> Callable[[Num], Num]:
    def compute(a: Num) -> Num:
        try:
            found = n.from_float(function(n.to_float(a)))
        except OverflowError:
            return n.infinite(negative=False)
        except ValueError:
            return n.NAN
        return found._replace(negative=a.negative) if found.zero and a.zero else found

    return compute


def _log2(value: float) -> float:
    return -math.inf if value == 0 else math.log2(value)


def _turns(function: Callable[[float], float], outside: float) -> Callable[[float], float]:
    def compute(value: float) -> float:
        if math.isnan(value) or math.isinf(value):
            return math.nan
        return outside if abs(value) > 256 else function(2 * math.pi * math.remainder(value, 1))

    return compute


def _comparing(t: str) -> dict[str, Spec]:
    """Minima and maxima of a float type."""
    two, three = f"{t} {t}", f"{t} {t} {t}"
    numbers = {
        "min_num": spec(t, two, least, encodings="2"),
        "max_num": spec(t, two, most, encodings="2"),
        "minimum": spec(t, two, strict_least),
        "maximum": spec(t, two, strict_most),
    }
    if t != "f64":
        numbers |= {
            "min3_num": spec(t, three, _three(least, least)),
            "max3_num": spec(t, three, _three(most, most)),
            "med3_num": spec(t, three, _middle),
            "minmax_num": spec(t, three, _three(least, most)),
            "maxmin_num": spec(t, three, _three(most, least)),
            "minimum3": spec(t, three, _three(strict_least, strict_least)),
            "maximum3": spec(t, three, _three(strict_most, strict_most)),
            "minimummaximum": spec(t, three, _three(strict_least, strict_most)),
            "maximumminimum": spec(t, three, _three(strict_most, strict_least)),
        }
    return {f"v_{name}_{t}": each for name, each in numbers.items()}


_OLD_FLOATS = (
    "add", "mul", "fma", "trunc", "ceil", "floor", "rndne", "fract", "rcp", "sqrt", "rsq", "frexp_mant", "ldexp", "sub",
    "subrev", "exp", "log", "sin", "cos",
)  # fmt: skip


def _kept_floats() -> dict[str, Spec]:
    found = {
        f"v_{name}_{t}": REALS[f"v_{name}_{t}"]
        for t in ("f16", "f32", "f64")
        for name in _OLD_FLOATS
        if f"v_{name}_{t}" in REALS
    }
    for name in ("add", "mul"):
        found[f"v_{name}_f64"] = found[f"v_{name}_f64"]._replace(encodings="2")
    return found


def _brief() -> dict[str, Spec]:
    """Transcendental functions of bfloat16, and those that are new."""
    functions: dict[str, Callable[[Num], Num]] = {
        "exp": through_float(math.exp2),
        "log": through_float(_log2),
        "sin": through_float(_turns(math.sin, 0.0)),
        "cos": through_float(_turns(math.cos, 1.0)),
        "rcp": n.inverse,
        "sqrt": n.root,
        "rsq": lambda a: n.inverse(n.root(a)),
        "tanh": through_float(_tanh),
    }
    found = {f"v_{name}_bf16": spec("bf16", "bf16", each, encodings="1", ulps=1) for name, each in functions.items()}
    for t in ("f16", "f32"):
        found[f"v_tanh_{t}"] = spec(t, t, functions["tanh"], encodings="1", ulps=1)
    return found


def _saturate(value: int, low: int, high: int) -> int:
    return max(low, min(value, high))


def _integer(a: Num, low: int, high: int, how: Callable[[Fraction], int] = math.trunc) -> int:
    if a.nan:
        return 0
    if a.inf:
        return low if a.negative else high
    return _saturate(how(a.value), low, high)


def _pair(low: int, high: int) -> int:
    return (low & 0xFFFF) | (high & 0xFFFF) << 16


def _normed(form: str, low: int, high: int) -> Callable[[Num], int]:
    """A number from -1 to 1 as a share of the largest integer."""
    return lambda a: _integer(rounded_product(a, high, form), low, high, n.nearest)


def rounded_product(a: Num, factor: int, form: str) -> Num:
    del form
    return a if a.nan or a.inf else a._replace(size=a.size * factor)


def _either(one: Callable[[Num], int]) -> Callable[[Num, Num], int]:
    return lambda a, b: _pair(one(a), one(b))


def _zero_wins(a: Num, b: Num) -> Num:
    return n.ZERO if a.zero or b.zero else n.times(a, b)


def _sign_run(a: int) -> int:
    """How many bits from the top are alike; -1 if all are."""
    bits = [a >> place & 1 for place in range(31, -1, -1)]
    return next((place for place, bit in enumerate(bits) if bit != bits[0]), M32)


def _sorted_by(low: Callable[..., int], high: Callable[..., int]) -> Callable[[int, int, int], int]:
    return lambda a, b, c: high(low(a, b), c)


def _wrapped(value: int, kind: str) -> int:
    width = int(kind[1:])
    value &= (1 << width) - 1
    return n.signed(value, width) if kind[0] == "i" else value


def _of_integers() -> dict[str, Spec]:
    """Minima, maxima and sums of integers."""
    found: dict[str, Spec] = {}
    for t in ("i32", "u32"):
        three = f"{t} {t} {t}"
        found[f"v_minmax_{t}"] = spec(t, three, _sorted_by(min, max))
        found[f"v_maxmin_{t}"] = spec(t, three, _sorted_by(max, min))
        for how, pick in (("min", min), ("max", max)):
            found[f"v_add_{how}_{t}"] = spec(t, three, lambda a, b, c, t=t, pick=pick: pick(_wrapped(a + b, t), c))
    for t in ("i64", "u64"):
        found[f"v_min_{t}"] = spec(t, f"{t} {t}", min)
        found[f"v_max_{t}"] = spec(t, f"{t} {t}", max)
    return found


_SAME = (
    "v_mov_b32", "v_mov_b64", "v_not_b32", "v_bfrev_b32", "v_prng_b32", "v_bcnt_u32_b32", "v_mul_lo_u32",
    "v_mul_hi_u32", "v_mul_hi_i32", "v_bfm_b32", "v_cvt_pk_u16_u32", "v_cvt_pk_i16_i32", "v_lshrrev_b64",
    "v_ashrrev_i64", "v_mul_i32_i24", "v_mul_hi_i32_i24", "v_mul_u32_u24", "v_mul_hi_u32_u24", "v_mad_i32_i24",
    "v_mad_u32_u24", "v_min_i32", "v_max_i32", "v_min_u32", "v_max_u32", "v_lshrrev_b32", "v_ashrrev_i32",
    "v_lshlrev_b32", "v_and_b32", "v_or_b32", "v_xor_b32", "v_xnor_b32", "v_bfe_u32", "v_bfe_i32", "v_bfi_b32",
    "v_lerp_u8", "v_perm_b32", "v_sad_u8", "v_sad_hi_u8", "v_msad_u8", "v_sad_u16",
    "v_sad_u32", "v_xad_u32", "v_lshl_add_u32", "v_add_lshl_u32", "v_add3_u32", "v_lshl_or_b32", "v_and_or_b32",
    "v_or3_b32", "v_lshl_add_u64", "v_mad_u32_u16", "v_mad_i32_i16",
    "v_dot4_u32_u8", "v_dot8_u32_u4", "v_sat_pk_u8_i16",
    *(f"v_{how}3_{t}" for how in ("min", "max", "med") for t in ("i32", "u32", "i16", "u16")),
)  # fmt: skip
_RENAMED = {
    "v_add_nc_u32": "v_add_u32", "v_sub_nc_u32": "v_sub_u32", "v_subrev_nc_u32": "v_subrev_u32",
    "v_add_nc_i32": "v_add_i32", "v_sub_nc_i32": "v_sub_i32", "v_clz_i32_u32": "v_ffbh_u32",
    "v_ctz_i32_b32": "v_ffbl_b32", "v_lshlrev_b64": "v_lshlrev_b64",
}  # fmt: skip
_WIDE_SHIFT = INTEGERS["v_lshlrev_b64"]._replace(encodings="2")
_SHORT = {
    "v_add_nc_u16": "add_u16", "v_sub_nc_u16": "sub_u16", "v_mul_lo_u16": "mul_lo_u16", "v_lshlrev_b16": "lshlrev_b16",
    "v_lshrrev_b16": "lshrrev_b16", "v_ashrrev_i16": "ashrrev_i16", "v_max_u16": "max_u16", "v_max_i16": "max_i16",
    "v_min_u16": "min_u16", "v_min_i16": "min_i16", "v_add_nc_i16": "add_i16", "v_sub_nc_i16": "sub_i16",
    "v_mad_u16": "mad_u16", "v_mad_i16": "mad_i16",
}  # fmt: skip
WHOLE: dict[str, Spec] = {
    **{name: INTEGERS[name] for name in _SAME},
    **{name: INTEGERS[old] for name, old in _RENAMED.items()},
    **{name: PAIRS[old]._replace(encodings="3") for name, old in _SHORT.items()},
    **_of_integers(),
    "v_lshlrev_b64": _WIDE_SHIFT,
    **{f"v_align{unit}_b32": INTEGERS[f"v_align{unit}_b32"]._replace(sources=("u32", "u32", "u16"))
       for unit in ("bit", "byte")},
    **{f"v_ashr_pk_{t}_i32": INTEGERS[f"v_ashr_pk_{t}_i32"]._replace(result="u32") for t in ("i8", "u8")},
    "v_cls_i32": spec("u32", "u32", _sign_run, encodings="1"),
    "v_mov_b16": spec("u16", "u16", lambda a: a, encodings="1"),
    "v_not_b16": spec("u16", "u16", lambda a: ~a, encodings="1"),
    "v_and_b16": spec("u16", "u16 u16", lambda a, b: a & b),
    "v_or_b16": spec("u16", "u16 u16", lambda a, b: a | b),
    "v_xor_b16": spec("u16", "u16 u16", lambda a, b: a ^ b),
    "v_xor3_b32": spec("u32", "u32 u32 u32", lambda a, b, c: a ^ b ^ c),
    "v_mad_u32": spec("u32", "u32 u32 u32", lambda a, b, c: a * b + c),
    "v_add_nc_u64": spec("u64", "u64 u64", lambda a, b: a + b, encodings="2"),
    "v_sub_nc_u64": spec("u64", "u64 u64", lambda a, b: a - b, encodings="2"),
    "v_mul_u64": spec("u64", "u64 u64", lambda a, b: a * b, encodings="2"),
    "v_mad_nc_u64_u32": spec("u64", "u32 u32 u64", lambda a, b, c: a * b + c),
    "v_mad_nc_i64_i32": spec("i64", "i32 i32 i64", lambda a, b, c: a * b + c),
    "v_cvt_i32_i16": spec("i32", "i16", lambda a: a, encodings="1"),
    "v_cvt_u32_u16": spec("u32", "u16", lambda a: a, encodings="1"),
    "v_pack_b32_f16": spec("u32", "u16 u16", lambda a, b: a | b << 16),
    "v_sat_pk4_i4_i8": spec("u16", "u32", lambda a: sum(
        (_saturate(n.signed(a >> 8 * i & 0xFF, 8), -8, 7) & 15) << 4 * i for i in range(4)), encodings="1"),
    "v_sat_pk4_u4_u8": spec("u16", "u32", lambda a: sum(min(a >> 8 * i & 0xFF, 15) << 4 * i for i in range(4)),
                            encodings="1"),
}  # fmt: skip
_I32, _U32 = (-(2**31), 2**31 - 1), (0, M32)
_CONVERTED = (
    "v_cvt_f32_u32", "v_cvt_f32_i32", "v_cvt_f64_u32", "v_cvt_f64_i32", "v_cvt_u32_f32", "v_cvt_i32_f32",
    "v_cvt_u32_f64", "v_cvt_i32_f64", "v_cvt_f32_f64", "v_cvt_f64_f32", "v_cvt_f32_f16", "v_cvt_f16_f32",
    "v_cvt_f16_u16", "v_cvt_f16_i16", "v_cvt_f32_bf16", "v_cvt_off_f32_i4", "v_cvt_pk_u8_f32",
    *(f"v_cvt_f32_ubyte{i}" for i in range(4)), "v_rcp_iflag_f32", "v_frexp_exp_i32_f32", "v_frexp_exp_i32_f64",
    "v_frexp_exp_i16_f16",
)  # fmt: skip
FLOATING: dict[str, Spec] = {
    **_kept_floats(), **_brief(), **_comparing("f16"), **_comparing("f32"), **_comparing("f64"),
    **{name: REALS[name] for name in _CONVERTED},
    "v_mul_dx9_zero_f32": spec("f32", "f32 f32", _zero_wins, encodings="2"),
    "v_fma_dx9_zero_f32": spec("f32", "f32 f32 f32", lambda a, b, c: (
        c if a.zero or b.zero else n.multiply_add(a, b, c))),
    "v_cvt_u16_f16": spec("u16", "f16", lambda a: _integer(a, 0, 0xFFFF), encodings="1"),
    "v_cvt_i16_f16": spec("i16", "f16", lambda a: _integer(a, -0x8000, 0x7FFF), encodings="1"),
    "v_cvt_floor_i32_f32": spec("i32", "f32", lambda a: _integer(a, *_I32, math.floor), encodings="1"),
    "v_cvt_nearest_i32_f32": spec("i32", "f32", lambda a: _integer(
        a, *_I32, lambda value: math.floor(value + Fraction(1, 2))), encodings="1"),
    "v_cvt_pk_i16_f32": spec("u32", "f32 f32", _either(lambda a: _integer(a, -0x8000, 0x7FFF))),
    "v_cvt_pk_u16_f32": spec("u32", "f32 f32", _either(lambda a: _integer(a, 0, 0xFFFF))),
    **{f"v_cvt_norm_{t}_f16": spec(t, "f16", _normed("f16", low, high), encodings="1")
       for t, low, high in (("i16", -0x7FFF, 0x7FFF), ("u16", 0, 0xFFFF))},
    **{f"v_cvt_pk_norm_{t}_{f}": spec("u32", f"{f} {f}", _either(_normed(f, low, high)))
       for f in ("f16", "f32") for t, low, high in (("i16", -0x7FFF, 0x7FFF), ("u16", 0, 0xFFFF))},
}  # fmt: skip
FUNCTIONS: dict[str, Spec] = {**WHOLE, **FLOATING}
"""Opcodes that compute a function per lane."""

ON_ITSELF = {f"v_fmac_{t}": f"v_fma_{t}" for t in ("f16", "f32", "f64")}
"""Opcodes whose last source is their destination."""


def _packed() -> dict[str, Spec]:
    found = {f"v_pk_{name}": each for name, each in PAIRS.items()}
    for name in ("add", "mul", "fma", "min_num", "max_num", "minimum", "maximum", "min3_num", "max3_num", "minimum3"):
        found[f"v_pk_{name}_f16"] = FLOATING[f"v_{name}_f16"]
    found["v_pk_maximum3_f16"] = FLOATING["v_maximum3_f16"]
    for name in ("add", "mul", "fma", "min_num", "max_num"):
        old = FLOATING[f"v_{name}_f16"]
        found[f"v_pk_{name}_bf16"] = old._replace(result="bf16", sources=("bf16",) * len(old.sources))
    for t in ("i16", "u16"):
        for how, pick in (("min", min), ("max", max)):
            three = f"{t} {t} {t}"
            found[f"v_pk_{how}3_{t}"] = spec(t, three, pick)
            found[f"v_pk_add_{how}_{t}"] = spec(t, three, lambda a, b, c, t=t, pick=pick: pick(_wrapped(a + b, t), c))
    return found


PACKED = _packed()
"""Opcodes that do the same to both halves of registers."""
