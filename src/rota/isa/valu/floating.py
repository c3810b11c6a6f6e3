"""What floating-point VALU opcodes compute, for 16, 32 and 64 bits: a table like that of `integer`.

Rounding is to nearest even, the one mode that is executed.  Where the ISA gives a precision instead of bits
(`APPROXIMATE`) the exact value is computed and rounded once: a machine may differ from it by as much as is stated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from rota.isa.valu.integer import Function

_LOW = np.uint64(0xFFFF)  # zero in every number of a shorter format, and halfway between two of them

ORDERS: dict[str, Callable[[Any, Any], Any]] = {
    "lt": np.less, "le": np.less_equal, "eq": np.equal, "gt": np.greater, "ge": np.greater_equal, "ne": np.not_equal,
    "lg": lambda a, b: (a < b) | (a > b), "nlt": lambda a, b: ~np.less(a, b), "nle": lambda a, b: ~np.less_equal(a, b),
    "neq": np.not_equal, "ngt": lambda a, b: ~np.greater(a, b), "nge": lambda a, b: ~np.greater_equal(a, b),
    "nlg": lambda a, b: ~((a < b) | (a > b)),
    "u": lambda a, b: np.isnan(a) | np.isnan(b), "o": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    "f": lambda *_: np.False_, "t": lambda *_: np.True_,
}  # fmt: skip
ORDERS["tru"] = ORDERS["t"]
"""Comparisons by their names, of integers too."""


def multiply_add(a: Any, b: Any, c: Any, kind: Any) -> Any:  # noqa: ANN401
    """A fused multiply-add; `kind` is the format of the result, at most that of the sources."""
    if kind is np.float64:
        return _by_ratios(a, b, c)
    return to_odd(np.asarray(a, np.float64) * np.asarray(b, np.float64), np.asarray(c, np.float64)).astype(kind)


def to_odd(product: Any, addend: Any) -> Any:  # noqa: ANN401
    """Rounds a float64 sum to odd, so that rounding it again to a format half as wide rounds once."""
    total = product + addend
    if (total.view(np.uint64) & _LOW).all():  # no other number could have been rounded to one in the middle
        return total
    part = total - product
    lost = (product - (total - part)) + (addend - part)  # exactly what the sum leaves out
    inexact = np.isfinite(total) & (lost != 0) & np.isfinite(lost)
    even = total.view(np.uint64) & np.uint64(1) == 0
    towards = np.where(lost > 0, np.inf, -np.inf)
    return np.where(inexact & even, np.nextafter(total, towards), total)


def _by_ratios(a: Any, b: Any, c: Any) -> Any:  # noqa: ANN401
    """Uses integers and the single rounding of Python's division, because nothing is wider than float64."""
    rough = np.asarray(a, np.float64) * np.asarray(b, np.float64) + np.asarray(c, np.float64)
    shape = np.broadcast_shapes(np.shape(a), np.shape(b), np.shape(c))
    sources = [np.broadcast_to(np.asarray(each, np.float64), shape).ravel() for each in (a, b, c)]
    out = np.array(np.broadcast_to(rough, shape), np.float64).ravel()
    for place, (x, y, z) in enumerate(zip(*(each.tolist() for each in sources), strict=True)):
        if not (math.isfinite(x) and math.isfinite(y) and math.isfinite(z)):
            out[place] = z if math.isinf(z) and math.isfinite(x) and math.isfinite(y) else out[place]
            continue
        (xn, xd), (yn, yd), (zn, zd) = x.as_integer_ratio(), y.as_integer_ratio(), z.as_integer_ratio()
        top = xn * yn * zd + zn * xd * yd
        if top:  # else the sign of the zero is the plain sum's
            try:
                out[place] = top / (xd * yd * zd)
            except OverflowError:
                out[place] = math.inf if top > 0 else -math.inf
    return out.reshape(shape)


_KINDS = {"f16": ("h", np.float16), "f32": ("f", np.float32), "f64": ("d", np.float64)}
APPROXIMATE: dict[str, str] = {
    **dict.fromkeys(("v_rcp_f32", "v_rcp_iflag_f32", "v_rsq_f32", "v_sqrt_f32", "v_exp_f32", "v_log_f32"), "1 ulp"),
    **dict.fromkeys(("v_rcp_f16", "v_rsq_f16", "v_sqrt_f16", "v_exp_f16", "v_log_f16"), "1 ulp"),
    **dict.fromkeys(("v_rcp_f64", "v_rsq_f64", "v_sqrt_f64"), "2**29 ulp"),
    **dict.fromkeys(("v_sin_f32", "v_cos_f32", "v_sin_f16", "v_cos_f16"), "2**-10, inputs within 256 turns"),
    **dict.fromkeys(("v_dot2_f32_f16", "v_dot2c_f32_f16"), "the rounding of two sums"),
    **dict.fromkeys(("v_dot2_f32_bf16", "v_dot2c_f32_bf16"), "the rounding of two sums"),
}
"""How far a machine may be from what is computed here (AMD, CDNA3 ISA; LLVM's lowering of division and square roots).

The functions of float32 among them flush denormals on a machine, so that LLVM scales around them; here they keep them.
"""


def signalling(a: Any) -> Any:  # noqa: ANN401
    values = np.asarray(a)
    bits = values.view(f"u{values.itemsize}")
    return np.isnan(values) & (bits & bits.dtype.type(1 << np.finfo(values.dtype).nmant - 1) == 0)


def _choose(a: Any, b: Any, first: Any) -> Any:  # noqa: ANN401
    if not (np.isnan(a).any() or np.isnan(b).any()):
        return np.where(first, a, b)
    return np.where(np.isnan(a), b, np.where(np.isnan(b), a, np.where(first, a, b)))


def least(a: Any, b: Any) -> Any:  # noqa: ANN401
    """The smaller one; a number before a NaN, the negative zero before the positive."""
    return _choose(a, b, (a < b) | ((a == b) & np.signbit(a)))


def greatest(a: Any, b: Any) -> Any:  # noqa: ANN401
    """The larger one; a number before a NaN, the positive zero before the negative."""
    return _choose(a, b, (a > b) | ((a == b) & ~np.signbit(a)))


def _with_signals(choose: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """IEEE mode: a signalling NaN gives a NaN."""

    def compute(a: Any, b: Any) -> Any:  # noqa: ANN401
        if not (np.isnan(a).any() or np.isnan(b).any()):
            return choose(a, b)
        wrong = signalling(a) | signalling(b)
        return np.where(wrong, np.asarray(a).dtype.type(np.nan), choose(a, b))

    return compute


def _three(choose: Callable[[Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    return lambda a, b, c: choose(choose(a, b), c)


def _one_of(low: Callable[[Any, Any], Any], high: Callable[[Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    """The `high` of the third source and of the `low` of the others."""
    return lambda a, b, c: high(low(a, b), c)


def _middle(low: Callable[[Any, Any], Any], high: Callable[[Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    def compute(a: Any, b: Any, c: Any) -> Any:  # noqa: ANN401
        unordered = np.isnan(a) | np.isnan(b) | np.isnan(c)
        top = high(high(a, b), c)
        rest = np.where(top == a, high(b, c), np.where(top == b, high(a, c), high(a, b)))
        return np.where(unordered, low(low(a, b), c), rest)

    return compute


def _strictly(choose: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Minimum or maximum of IEEE 754-2019: a NaN if either source is one."""

    def compute(a: Any, b: Any) -> Any:  # noqa: ANN401
        unordered = np.isnan(a) | np.isnan(b)
        return np.where(unordered, np.asarray(a).dtype.type(np.nan), choose(a, b))

    return compute


def _fraction(a: Any) -> Any:  # noqa: ANN401
    """The distance to the next lower integer, always below one."""
    kind = np.asarray(a).dtype.type
    return np.minimum(a - np.floor(a), np.nextafter(kind(1), kind(0)))


def _exponent(kind: Any) -> Callable[[Any], Any]:  # noqa: ANN401
    def compute(a: Any) -> Any:  # noqa: ANN401
        return np.where(np.isfinite(a), np.frexp(np.asarray(a, np.float64))[1], 0).astype(kind)

    return compute


def _scale(kind: Any) -> Callable[[Any, Any], Any]:  # noqa: ANN401
    """Multiplies by a power of two and rounds once; clips powers that overflow or vanish anyway."""

    def compute(a: Any, b: Any) -> Any:  # noqa: ANN401
        power = np.clip(np.asarray(b).astype(np.int64), -5000, 5000).astype(np.int32)
        if kind is np.float16:  # a product with a power of two is exact in float64
            return np.ldexp(np.asarray(a, np.float64), np.clip(power, -900, 900)).astype(np.float16)
        return np.ldexp(np.asarray(a), power)

    return compute


def _in_double(function: Callable[[Any], Any], kind: Any) -> Callable[[Any], Any]:  # noqa: ANN401
    return lambda a: np.asarray(function(np.asarray(a, np.float64))).astype(kind)


def _turns(function: Callable[[Any], Any], outside: float) -> Callable[[Any], Any]:
    """A function of an angle in turns; beyond 256 turns the angle counts as zero."""

    def compute(a: Any) -> Any:  # noqa: ANN401
        part = np.where(np.isfinite(a), np.copysign(a - np.rint(a), np.where(a == np.rint(a), a, a - np.rint(a))), a)
        return np.where(np.abs(a) <= 256, function(part * (2 * math.pi)), np.where(np.isfinite(a), outside, np.nan))

    return compute


def _family(bits: str) -> dict[str, Function]:
    letter, kind = _KINDS[bits]
    one, two, three = letter, 2 * letter, 3 * letter
    low, high = _with_signals(least), _with_signals(greatest)
    table = {
        "add": Function(letter, two, lambda a, b: a + b),
        "mul": Function(letter, two, lambda a, b: a * b),
        "min": Function(letter, two, low, plain=least),
        "max": Function(letter, two, high, plain=greatest),
        "fma": Function(letter, three, lambda a, b, c: multiply_add(a, b, c, kind), halves=bits == "f16"),
        "trunc": Function(letter, one, np.trunc),
        "ceil": Function(letter, one, np.ceil),
        "floor": Function(letter, one, np.floor),
        "rndne": Function(letter, one, np.rint),
        "fract": Function(letter, one, _fraction),
        "rcp": Function(letter, one, _in_double(lambda a: 1 / a, kind)),
        "rsq": Function(letter, one, _in_double(lambda a: 1 / np.sqrt(a), kind)),
        "sqrt": Function(letter, one, np.sqrt),
        "frexp_mant": Function(letter, one, lambda a: np.asarray(np.where(np.isfinite(a), np.frexp(a)[0], a), kind)),
        "ldexp": Function(letter, letter + ("s" if bits == "f16" else "i"), _scale(kind)),
    }
    minimum, maximum = _strictly(least), _strictly(greatest)
    table |= {
        "min_num": Function(letter, two, least),
        "max_num": Function(letter, two, greatest),
        "minimum": Function(letter, two, minimum),
        "maximum": Function(letter, two, maximum),
    }
    if bits != "f64":
        table |= {
            "min3_num": Function(letter, three, _three(least)),
            "max3_num": Function(letter, three, _three(greatest)),
            "med3_num": Function(letter, three, _middle(least, greatest)),
            "minmax_num": Function(letter, three, _one_of(least, greatest)),
            "maxmin_num": Function(letter, three, _one_of(greatest, least)),
            "minimum3": Function(letter, three, _three(minimum), halves=bits == "f16"),
            "maximum3": Function(letter, three, _three(maximum), halves=bits == "f16"),
            "minimummaximum": Function(letter, three, _one_of(minimum, maximum)),
            "maximumminimum": Function(letter, three, _one_of(maximum, minimum)),
        }
        table |= {
            "sub": Function(letter, two, lambda a, b: a - b),
            "subrev": Function(letter, two, lambda a, b: b - a),
            "exp": Function(letter, one, _in_double(np.exp2, kind)),
            "log": Function(letter, one, _in_double(np.log2, kind)),
            "sin": Function(letter, one, _in_double(_turns(np.sin, 0.0), kind)),
            "cos": Function(letter, one, _in_double(_turns(np.cos, 1.0), kind)),
            "min3": Function(letter, three, _three(low), plain=_three(least), halves=bits == "f16"),
            "max3": Function(letter, three, _three(high), plain=_three(greatest), halves=bits == "f16"),
            "med3": Function(letter, three, _middle(low, high), plain=_middle(least, greatest), halves=bits == "f16"),
        }
    return {f"v_{name}_{bits}": function for name, function in table.items()}


FLOATING: dict[str, Function] = {
    **_family("f16"),
    **_family("f32"),
    **_family("f64"),
    "v_fma_legacy_f16": Function("h", "hhh", lambda a, b, c: multiply_add(a, b, c, np.float16)),
    "v_rcp_iflag_f32": Function("f", "f", _in_double(lambda a: 1 / a, np.float32)),
    "v_mul_legacy_f32": Function("f", "ff", lambda a, b: np.where((a == 0) | (b == 0), np.float32(0), a * b)),
    "v_fma_dx9_zero_f32": Function(
        "f", "fff", lambda a, b, c: np.where((a == 0) | (b == 0), c, multiply_add(a, b, c, np.float32))
    ),
    "v_frexp_exp_i32_f32": Function("i", "f", _exponent(np.int32)),
    "v_frexp_exp_i32_f64": Function("i", "d", _exponent(np.int32)),
    "v_frexp_exp_i16_f16": Function("s", "h", _exponent(np.int16)),
}
PACKED_HALF: dict[str, Function] = {
    f"v_pk_{name}_f16": FLOATING[f"v_{name}_f16"]
    for name in (
        "add",
        "mul",
        "min",
        "max",
        "fma",
        "minimum3",
        "maximum3",
        "min_num",
        "max_num",
        "minimum",
        "maximum",
        "min3_num",
        "max3_num",
    )
}
"""On both halves of a register."""
