"""Numbers without NumPy: takes bits, gives exact values and back, by fractions and integers.

The second definition of what the interpreter computes with arrays; nothing here is shared with it.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

# exponent bits, mantissa bits
FORMATS = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}
BITS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}


class Num(NamedTuple):
    """A value of sign and magnitude: finite, "inf", "nan" or "snan"."""

    negative: bool
    size: Fraction
    kind: str = "finite"

    @property
    def nan(self) -> bool:
        return self.kind in {"nan", "snan"}

    @property
    def inf(self) -> bool:
        return self.kind == "inf"

    @property
    def zero(self) -> bool:
        return self.kind == "finite" and self.size == 0

    @property
    def value(self) -> Fraction:
        assert self.kind == "finite"
        return -self.size if self.negative else self.size


NAN = Num(negative=False, size=Fraction(0), kind="nan")
ZERO = Num(negative=False, size=Fraction(0))


def number(value: Fraction | int, *, negative_zero: bool = False) -> Num:
    exact = Fraction(value)
    return Num(negative=exact < 0 or (exact == 0 and negative_zero), size=abs(exact))


def infinite(*, negative: bool) -> Num:
    return Num(negative=negative, size=Fraction(0), kind="inf")


def unpack(bits: int, form: str) -> Num:
    exponent_bits, mantissa_bits = FORMATS[form]
    negative = bool(bits >> (exponent_bits + mantissa_bits) & 1)
    exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1)
    mantissa = bits & ((1 << mantissa_bits) - 1)
    if exponent == (1 << exponent_bits) - 1:
        kind = "inf" if mantissa == 0 else "nan" if mantissa >> (mantissa_bits - 1) else "snan"
        return Num(negative=negative, size=Fraction(0), kind=kind)
    bias = (1 << exponent_bits - 1) - 1
    if exponent:
        mantissa += 1 << mantissa_bits
    power = max(exponent, 1) - bias - mantissa_bits
    size = Fraction(mantissa << power) if power >= 0 else Fraction(mantissa, 1 << -power)
    return Num(negative=negative, size=size)


def log2_floor(size: Fraction) -> int:
    guess = size.numerator.bit_length() - size.denominator.bit_length()
    return guess if power_of_two(guess) <= size else guess - 1


def power_of_two(exponent: int) -> Fraction:
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


def nearest(value: Fraction) -> int:
    """The nearest integer, the even one of two."""
    low = value.numerator // value.denominator
    rest = value - low
    return low + (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and low % 2 == 1))


def pack(num: Num, form: str) -> int:
    """The bits of the nearest value of a format; NaN is one of the quiet ones."""
    exponent_bits, mantissa_bits = FORMATS[form]
    sign = int(num.negative) << (exponent_bits + mantissa_bits)
    top = ((1 << exponent_bits) - 1) << mantissa_bits
    if num.nan:
        return top | 1 << (mantissa_bits - 1)
    if num.inf:
        return sign | top
    if num.size == 0:
        return sign
    lowest = 2 - (1 << exponent_bits - 1)
    exponent = max(log2_floor(num.size), lowest)
    steps = nearest(num.size / power_of_two(exponent - mantissa_bits))
    code = ((exponent - lowest) << mantissa_bits) + steps
    return sign | min(code, top)


def is_nan(bits: int, form: str) -> bool:
    return unpack(bits, form).nan


def minus(a: Num) -> Num:
    return a._replace(negative=not a.negative)


def plus(a: Num, b: Num) -> Num:
    if a.nan or b.nan or (a.inf and b.inf and a.negative != b.negative):
        return NAN
    if a.inf or b.inf:
        return a if a.inf else b
    total = a.value + b.value
    return number(total, negative_zero=total == 0 and a.negative and b.negative)


def times(a: Num, b: Num) -> Num:
    negative = a.negative != b.negative
    if a.nan or b.nan or (a.inf and b.zero) or (a.zero and b.inf):
        return NAN
    if a.inf or b.inf:
        return infinite(negative=negative)
    return Num(negative=negative, size=a.size * b.size)


def multiply_add(a: Num, b: Num, c: Num) -> Num:
    return plus(times(a, b), c)


def below(a: Num, b: Num) -> bool:
    """Is a < b?  With a NaN nothing is."""
    if a.nan or b.nan:
        return False
    if a.inf or b.inf:
        if a.inf and b.inf:
            return a.negative and not b.negative
        return a.negative if a.inf else not b.negative
    return a.value < b.value


def same(a: Num, b: Num) -> bool:
    return not (a.nan or b.nan) and not below(a, b) and not below(b, a)


def smaller(a: Num, b: Num, *, ieee: bool = True) -> Num:
    return _one_of(a, b, ieee, a_first=below(a, b) or (same(a, b) and a.negative))


def larger(a: Num, b: Num, *, ieee: bool = True) -> Num:
    return _one_of(a, b, ieee, a_first=below(b, a) or (same(a, b) and not a.negative))


def _one_of(a: Num, b: Num, ieee: bool, *, a_first: bool) -> Num:
    if ieee and "snan" in {a.kind, b.kind}:
        return NAN
    if a.nan or b.nan:
        return b if a.nan else a
    return a if a_first else b


def root(a: Num) -> Num:
    """The square root, to 150 bits more than any format has."""
    if a.nan or (a.negative and not a.zero):
        return NAN
    if a.inf or a.zero:
        return a
    shift = 2000
    scaled = (a.size.numerator << 2 * shift) // a.size.denominator
    found = math.isqrt(scaled)
    exact = found * found == scaled and (a.size.numerator << 2 * shift) % a.size.denominator == 0
    return number(Fraction(found * 2 + (not exact), 1 << shift + 1))


def inverse(a: Num) -> Num:
    if a.nan:
        return NAN
    if a.inf or a.zero:
        return Num(negative=a.negative, size=Fraction(0), kind="finite" if a.inf else "inf")
    return Num(negative=a.negative, size=1 / a.size)


def to_float(a: Num) -> float:
    if a.nan:
        return math.nan
    size = math.inf if a.inf else float(a.size)
    return -size if a.negative else size


def from_float(value: float) -> Num:
    if math.isnan(value):
        return NAN
    negative = math.copysign(1, value) < 0
    return infinite(negative=negative) if math.isinf(value) else Num(negative=negative, size=abs(Fraction(value)))


def signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) & 1 else value
