"""The math of rota's stand-in for HIP's headers, executed, against Python's: functions, conversions, half and bf16."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.isa.binary.hip_run import mapped

pytestmark = pytest.mark.thorough

Reals = NDArray[np.float64]
RNG = np.random.default_rng(11)
KNOWN = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 1e-9, -1e-9, 1e-3, 3.0, -4.0, 0.25, 0.7, 1.5, -2.5]
WIDE = np.concatenate([RNG.uniform(-4, 4, 200), RNG.uniform(-80, 80, 40), KNOWN])
POSITIVE = np.concatenate([RNG.uniform(1e-6, 4, 200), 10 ** RNG.uniform(-30, 30, 40), np.abs(KNOWN) + 1e-12])
WITHIN_ONE = np.concatenate([RNG.uniform(-1, 1, 240), np.clip(KNOWN, -0.999, 0.999)])
FROM_ONE = np.concatenate([RNG.uniform(1, 4, 240), 1 + np.abs(KNOWN)])
BROAD = np.concatenate([RNG.uniform(-1000, 1000, 240), KNOWN])


def erf_inputs() -> Reals:
    return np.concatenate([RNG.uniform(-6, 6, 240), KNOWN])


FUNCTIONS: list[tuple[str, Callable[[float], float], Reals, float]] = [
    # name, what it is, arguments, relative error of the double (of the float: one of its units more)
    ("exp", math.exp, WIDE, 2**-48),
    ("exp2", math.exp2, WIDE, 2**-48),
    ("exp10", lambda x: 10.0**x, np.clip(WIDE, -30, 30), 2**-48),
    ("expm1", math.expm1, WIDE, 2**-48),
    ("log", math.log, POSITIVE, 2**-48),
    ("log2", math.log2, POSITIVE, 2**-48),
    ("log10", math.log10, POSITIVE, 2**-48),
    ("log1p", math.log1p, np.abs(WIDE), 2**-48),
    ("sqrt", math.sqrt, POSITIVE, 0.0),
    ("rsqrt", lambda x: 1 / math.sqrt(x), POSITIVE, 2**-48),
    ("cbrt", math.cbrt, WIDE, 2**-48),
    ("sinh", math.sinh, WIDE, 2**-48),
    ("cosh", math.cosh, WIDE, 2**-48),
    ("tanh", math.tanh, WIDE, 2**-48),
    ("asinh", math.asinh, BROAD, 2**-48),
    ("acosh", math.acosh, FROM_ONE, 2**-47),
    ("atanh", math.atanh, WITHIN_ONE * 0.999, 2**-47),
    ("asin", math.asin, WITHIN_ONE, 2**-48),
    ("acos", math.acos, WITHIN_ONE, 2**-48),
    ("atan", math.atan, BROAD, 2**-48),
    ("erf", math.erf, erf_inputs(), 1e-12),
    ("erfc", math.erfc, erf_inputs(), 1e-12),
    ("floor", math.floor, BROAD, 0.0),
    ("ceil", math.ceil, BROAD, 0.0),
    ("trunc", math.trunc, BROAD, 0.0),
    ("rint", round, BROAD, 0.0),
    ("fabs", abs, BROAD, 0.0),
]
TURNS: list[tuple[str, Callable[[float], float]]] = [("sin", math.sin), ("cos", math.cos), ("tan", math.tan)]
NAMES = (*(each[0] for each in FUNCTIONS), *(each[0] for each in TURNS))
DOUBLES, SINGLES = (tuple(f"o = {name}{suffix}(a);" for name in NAMES) for suffix in ("", "f"))
TWO = ("pow", "atan2", "hypot", "fmod", "remainder", "fmax", "fmin", "copysign")
PAIRS = tuple(f"o = {name}(a, b);" for name in TWO)
FAST = tuple(f"o = {name}(a);" for name in ("__expf", "__logf", "__log2f", "__sinf"))


@pytest.mark.parametrize(("name", "python", "x", "error"), FUNCTIONS, ids=[each[0] for each in FUNCTIONS])
def test_functions_are_as_accurate_as_documented(
    name: str, python: Callable[[float], float], x: Reals, error: float
) -> None:
    got = mapped(f"o = {name}(a);", x, out=np.float64, also=DOUBLES).astype(np.float64)
    want = np.array([python(each) for each in x.tolist()], np.float64)
    np.testing.assert_allclose(got, want, rtol=error, atol=0)
    single = x.astype(np.float32)
    narrow = mapped(f"o = {name}f(a);", single, out=np.float32, also=SINGLES).astype(np.float64)
    want = np.array([python(each) for each in single.astype(float).tolist()], np.float64)
    np.testing.assert_allclose(narrow, want, rtol=3 * 2**-23 if error else 2**-24, atol=2**-149)


@pytest.mark.parametrize(("name", "python"), TURNS, ids=[each[0] for each in TURNS])
def test_angles_are_reduced(name: str, python: Callable[[float], float]) -> None:
    x = np.concatenate([BROAD[:128], RNG.uniform(-1e8, 1e8, 128)])
    got = mapped(f"o = {name}(a);", x, out=np.float64, also=DOUBLES).astype(np.float64)
    want = np.array([python(each) for each in x.tolist()])
    np.testing.assert_allclose(got, want, rtol=1e-14, atol=1e-15)
    single = x.astype(np.float32)
    narrow = mapped(f"o = {name}f(a);", single, out=np.float32, also=SINGLES)
    want = np.array([python(each) for each in single.astype(float).tolist()])
    np.testing.assert_allclose(narrow.astype(np.float64), want, rtol=2**-23)


def test_functions_of_two_numbers() -> None:
    x, y = np.abs(WIDE) + 0.01, RNG.uniform(-8, 8, 256)
    pairs = list(zip(x.tolist(), y.tolist(), strict=True))
    for name, python in (("pow", math.pow), ("atan2", math.atan2), ("hypot", math.hypot), ("fmod", math.fmod)):
        got = mapped(f"o = {name}(a, b);", x, y, out=np.float64, also=PAIRS).astype(np.float64)
        want = np.array([python(*each) for each in pairs])
        np.testing.assert_allclose(got, want, rtol=1e-13, err_msg=name)
    exact: tuple[tuple[str, Callable[[float, float], float]], ...]
    exact = (("remainder", math.remainder), ("fmax", max), ("fmin", min), ("copysign", math.copysign))
    for name, two in exact:
        got = mapped(f"o = {name}(a, b);", x, y, out=np.float64, also=PAIRS).astype(np.float64)
        want = np.array([two(*each) for each in pairs])
        np.testing.assert_allclose(got, want, rtol=0, atol=0, err_msg=name)


SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e308, -1e308, 1e-310, 710.0, -746.0] + [0.5] * 4)


@pytest.mark.parametrize(
    "name", ["exp", "log", "sqrt", "tanh", "sin", "cos", "atan", "cbrt", "expm1", "log1p", "asinh", "sinh", "cosh"]
)
def test_infinities_and_nans(name: str) -> None:
    got = mapped(f"o = {name}(a);", SPECIAL, out=np.float64, also=DOUBLES).astype(np.float64)
    with np.errstate(all="ignore"):
        want = getattr(np, {"atan": "arctan", "asinh": "arcsinh"}.get(name, name))(SPECIAL)
    huge = (np.abs(SPECIAL) > 1e300) & np.isfinite(SPECIAL) & np.isin(name, ["sin", "cos"])  # see the header
    np.testing.assert_allclose(got[~huge], want[~huge], rtol=1e-13, atol=0)
    np.testing.assert_array_equal(np.signbit(got[:2]), np.signbit(want[:2]))


def test_powers_of_special_numbers() -> None:
    x = np.array([0.0, -0.0, -8.0, -8.0, -2.0, np.inf, -np.inf, np.nan, 1.0, 5.0, 0.0, -1.0, 2.0, 0.5, 2.0, -2.0])
    y = np.array([-1.0, 3.0, 3.0, 1 / 3, -2.0, -1.0, 3.0, 0.0, np.nan, 0.0, 2.5, np.inf, 1024, 1100, -1100, 1023])
    with np.errstate(all="ignore"):
        want = np.power(x, y)
    np.testing.assert_allclose(
        mapped("o = pow(a, b);", x, y, out=np.float64, also=PAIRS).astype(float), want, rtol=1e-12
    )


def _next_up(x: float) -> float:
    return math.nextafter(x, 100.0)


OTHERS: list[tuple[str, Callable[[float], float], float]] = [
    # body, what it gives, absolute and relative error
    ("o = sinpi(a);", lambda x: math.sin(math.pi * math.remainder(x, 2)), 1e-14),
    ("o = cospi(a);", lambda x: math.cos(math.pi * math.remainder(x, 2)), 1e-14),
    ("o = normcdf(a);", lambda x: 0.5 * math.erfc(-x / math.sqrt(2)), 1e-12),
    ("o = rcbrt(a);", lambda x: 1 / math.cbrt(x), 1e-14),
    ("o = ldexp(a, 5);", lambda x: math.ldexp(x, 5), 0),
    ("o = scalbn(a, -1000);", lambda x: math.ldexp(x, -1000), 0),
    ("int e; double m = frexp(a, &e); o = m + 100 * e;", lambda x: math.frexp(x)[0] + 100 * math.frexp(x)[1], 1e-13),
    ("double w, f = modf(a, &w); o = w * 1000 + f;", lambda x: math.modf(x)[1] * 1000 + math.modf(x)[0], 1e-13),
    ("o = nextafter(a, 100.0);", _next_up, 0),
    ("o = ilogb(a);", lambda x: math.frexp(x)[1] - 1, 0),
    ("o = logb(a);", lambda x: math.frexp(x)[1] - 1, 0),
    ("o = lrint(a);", round, 0),
    ("o = lround(a);", lambda x: math.copysign(math.floor(abs(x) + 0.5), x), 0),
    ("o = round(a);", lambda x: math.copysign(math.floor(abs(x) + 0.5), x), 0),
    ("double s, c; sincos(a, &s, &c); o = s + 2 * c;", lambda x: math.sin(x) + 2 * math.cos(x), 1e-14),
    ("o = fdim(a, 1.0);", lambda x: max(x - 1, 0), 0),
    ("o = powi(a, 3);", lambda x: x**3, 1e-14),
]


@pytest.mark.parametrize(("body", "python", "error"), OTHERS, ids=[each[0] for each in OTHERS])
def test_other_functions(body: str, python: Callable[[float], float], error: float) -> None:
    x = np.concatenate([RNG.uniform(-8, 8, 240), np.array([1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 4.0, -0.75] * 2)])
    got = mapped(body, x, out=np.float64, also=tuple(each[0] for each in OTHERS)).astype(np.float64)
    np.testing.assert_allclose(got, [python(each) for each in x.tolist()], rtol=error, atol=error)


def test_functions_of_halves() -> None:
    x = RNG.uniform(0.1, 4, 256).astype(np.float16)
    head = "#include <hip/hip_fp16.h>\n#include <hip/hip_bfloat16.h>\n"
    names = ("exp", "exp2", "log", "log2", "sqrt", "sin", "cos", "floor", "ceil", "rint")
    also = tuple(f"o = __half_as_ushort(h{name}(__ushort_as_half(a)));" for name in names)
    for name, body in zip(names, also, strict=True):
        got = mapped(body, x.view(np.uint16), out=np.uint16, head=head, also=also).view(np.float16).astype(float)
        want = getattr(np, name)(x.astype(np.float64))
        np.testing.assert_allclose(got, want, rtol=2**-11 * 1.01, atol=2**-24, err_msg=name)


def test_hardware_approximations() -> None:
    x = RNG.uniform(0.1, 8, 256).astype(np.float32)
    for name, python in (("__expf", np.exp), ("__logf", np.log), ("__log2f", np.log2), ("__sinf", np.sin)):
        got = mapped(f"o = {name}(a);", x, out=np.float32, also=FAST).astype(np.float64)
        np.testing.assert_allclose(got, python(x.astype(float)), rtol=3e-6, atol=3e-6, err_msg=name)
    got = mapped("o = __powf(a, 2.5f);", x, out=np.float32).astype(np.float64)
    np.testing.assert_allclose(got, x.astype(float) ** 2.5, rtol=1e-5)


def test_names_of_the_standard_library_in_device_code() -> None:
    x = RNG.uniform(0.1, 3, 256).astype(np.float32)
    got = mapped(
        "o = std::max(a, 1.f) + std::sin(a) + std::tanh(a) + std::pow(a, 2) + std::abs(-a) + std::min(3, i) + "
        "std::erf(a) + std::fma(a, a, 1.f) + std::log1p(a) + std::floor(a) + (std::isnan(a) ? 100 : 0);",
        x,
        out=np.float32,
        head="#include <cmath>\n#include <algorithm>\n#include <iostream>\n#include <vector>\n#include <limits>\n",
    )
    wide = x.astype(float)
    want = np.maximum(wide, 1) + np.sin(wide) + np.tanh(wide) + wide**2 + wide + np.minimum(3, np.arange(256))
    want += [math.erf(each) for each in wide.tolist()] + wide * wide + 1 + np.log1p(wide) + np.floor(wide)
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=1e-5)


FLOATS = np.concatenate(
    [
        RNG.uniform(-70000, 70000, 64), RNG.uniform(-4, 4, 64), RNG.uniform(-1e-4, 1e-4, 64),
        [0.0, -0.0, np.inf, -np.inf, np.nan, 65504, 65519.996, 65520, -65520, 1e9, -1e9, 6e-8, 2.98e-8, 2.9802322e-8],
        [1 + 2**-11, 1 + 3 * 2**-11, 1 + 2**-8, 1 + 3 * 2**-8, 3.4e38, 2147483648.0, 4294967296.0, -2147483649.0],
        [0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 1e20, -1e20, 1e-40, -1e-40],
    ]
)  # fmt: skip
FLOATS = np.concatenate([FLOATS, np.zeros(256 - len(FLOATS))]).astype(np.float32)


def test_half_conversions_round_ties_to_even() -> None:
    head = "#include <hip/hip_fp16.h>"
    with np.errstate(all="ignore"):
        want = FLOATS.astype(np.float16)
    got = mapped("o = __half_as_ushort(__float2half(a));", FLOATS, out=np.uint16, head=head).view(np.float16)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))
    back = mapped("o = __half2float(__ushort_as_half(a));", want.view(np.uint16), out=np.float32, head=head)
    np.testing.assert_array_equal(back, want.astype(np.float32))
    cut = mapped("o = __half_as_ushort(__float2half_rz(a));", FLOATS, out=np.uint16, head=head).view(np.float16)
    finite = np.isfinite(FLOATS) & (np.abs(FLOATS) < 65536)
    assert (np.abs(cut[finite].astype(np.float64)) <= np.abs(FLOATS[finite].astype(np.float64))).all()
    assert (np.abs(cut[finite].astype(float) - FLOATS[finite]) <= 2.0**-10 * np.abs(FLOATS[finite]) + 2**-24).all()


def _bf16_bits(value: float) -> int:
    """Rounded to nearest even, on the exact value."""
    if math.isnan(value):
        return 0x7FC0
    if math.isinf(value):
        return 0x7F80 | (0x8000 if value < 0 else 0)
    bits = int(np.float64(value).astype(np.float32).view(np.uint32))
    candidates = {((bits >> 16) + step) & 0xFFFF for step in (-1, 0, 1)}
    at = {
        each: Fraction(float(np.uint32(each << 16).view(np.float32))) for each in candidates if each & 0x7FFF < 0x7F80
    }
    if abs(Fraction(value)) >= Fraction(float(np.uint32(0x7F7F << 16).view(np.float32))) + Fraction(2) ** 119:
        return 0x7F80 | (0x8000 if value < 0 else 0)
    same = {each: place for each, place in at.items() if (each >> 15) == (math.copysign(1, value) < 0)}
    return min(same, key=lambda each: (abs(same[each] - Fraction(value)), each & 1))


def test_bf16_conversions_round_ties_to_even() -> None:
    head = "#include <hip/hip_bf16.h>"
    want = np.array([_bf16_bits(each) for each in FLOATS.astype(float).tolist()], np.uint16)
    got = mapped("o = __bfloat16_as_ushort(__float2bfloat16(a));", FLOATS, out=np.uint16, head=head)
    numbers = ~np.isnan(FLOATS)
    np.testing.assert_array_equal(got[numbers], want[numbers])
    assert ((got[~numbers].astype(int) & 0x7FFF) > 0x7F80).all()
    back = mapped("o = __bfloat162float(__ushort_as_bfloat16(a));", want, out=np.float32, head=head)
    np.testing.assert_array_equal(back.view(np.uint32), want.astype(np.uint32) << 16)
    ties = np.array([1 + 2**-8 + 2**-40, 1 + 2**-8 - 2**-40, 1 + 2**-8, -1 - 3 * 2**-8] * 16)  # rounded once, not twice
    once = mapped("o = __bfloat16_as_ushort(__double2bfloat16(a));", ties, out=np.uint16, head=head)
    np.testing.assert_array_equal(once, [_bf16_bits(each) for each in ties.tolist()])


def test_half_and_bf16_arithmetic() -> None:
    x, y = (RNG.uniform(-8, 8, 256).astype(np.float16) for _ in range(2))
    head = "#include <hip/hip_fp16.h>\n#include <hip/hip_bf16.h>\n"
    half = "o = __half_as_ushort(__ushort_as_half(a) {} __ushort_as_half(b));"
    bf16 = "o = __bfloat16_as_ushort(__ushort_as_bfloat16(a) {} __ushort_as_bfloat16(b));"
    for op, python in (("+", np.add), ("-", np.subtract), ("*", np.multiply), ("/", np.divide)):
        body, *also = (half.format(each) for each in (op, *"+-*/"))
        got = mapped(body, x.view(np.uint16), y.view(np.uint16), out=np.uint16, head=head, also=tuple(also))
        np.testing.assert_array_equal(got.view(np.float16), python(x, y), err_msg=op)
    u, v = ((RNG.uniform(-8, 8, 256).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16) for _ in range(2))
    wide = [(each.astype(np.uint32) << 16).view(np.float32).astype(float) for each in (u, v)]
    for op, exact in (("+", np.add), ("-", np.subtract), ("*", np.multiply)):
        body, *also = (bf16.format(each) for each in (op, *"+-*"))
        got = mapped(body, u, v, out=np.uint16, head=head, also=tuple(also))
        want = [_bf16_bits(float(np.float32(each))) for each in exact(*wide).tolist()]
        np.testing.assert_array_equal(got, want, err_msg=op)
    body = "auto x = __ushort_as_half(a), y = __ushort_as_half(b); __half2 h = __hfma2({x, x}, {y, y}, {1.0f, 2.0f});"
    got = mapped(
        f"{body} o = __low2float(h) * 1000 + __high2float(h);", x.view(np.uint16), y.view(np.uint16), out=np.float32,
        head=head,
    )  # fmt: skip
    product = x.astype(float) * y.astype(float)
    low, high = (product + 1).astype(np.float16), (product + 2).astype(np.float16)
    want_float = low.astype(np.float32) * np.float32(1000) + high.astype(np.float32)
    np.testing.assert_allclose(got.astype(float), want_float.astype(float), rtol=1e-6, atol=1e-3)


@pytest.mark.parametrize(("suffix", "rounded"), [("rn", np.rint), ("rz", np.trunc), ("rd", np.floor), ("ru", np.ceil)])
def test_integers_of_floats_saturate(suffix: str, rounded: Callable[[Reals], Reals]) -> None:
    for name, out in (("int", np.int32), ("uint", np.uint32), ("ll", np.int64), ("ull", np.uint64)):
        also = tuple(f"o = __float2{name}_{each}(a);" for each in ("rn", "rz", "rd", "ru"))
        got = mapped(f"o = __float2{name}_{suffix}(a);", FLOATS, out=out, also=also)
        ends = np.iinfo(out)
        exact = [0.0 if math.isnan(each) else each for each in rounded(FLOATS.astype(float)).tolist()]
        want = [ends.max if e >= ends.max else ends.min if e <= ends.min else int(e) for e in exact]
        np.testing.assert_array_equal(got, np.array(want, out), err_msg=name)


def test_halves_and_bf16_become_any_integer() -> None:
    """By a cast, truncated; conversions to float and _Float16 don't compete with it."""
    x = np.arange(-60, 68, 0.5).astype(np.float16)
    head = "#include <hip/hip_fp16.h>\n#include <hip/hip_bf16.h>"
    kinds = ("char", "signed char", "short", "int", "long", "long long")
    half = tuple(f"o = (int)static_cast<{kind}>(__ushort_as_half(a));" for kind in kinds)
    bf16 = tuple(
        f"o = (int)static_cast<{kind}>(__float2bfloat16(__half2float(__ushort_as_half(a))));" for kind in kinds
    )
    for body in (*half, *bf16):
        got = mapped(body, x.view(np.uint16), out=np.int32, head=head, also=(*half, *bf16))
        np.testing.assert_array_equal(got, np.trunc(x.astype(float)).astype(np.int32), err_msg=body)
