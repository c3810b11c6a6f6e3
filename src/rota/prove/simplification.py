"""Arithmetic on unknowns: takes an operation and values, gives what can still be said of the result.

A sum stays linear, a mask keeps the low bits that a multiple leaves alone, a shift by a constant is a product.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from rota.prove.symbol import M32, Linear, Plain, Symbols, Value, bits_of, highest, linear, plus, simple, times


class Computes(Protocol):
    """What makes symbols, and computes."""

    symbols: Symbols

    def compute(self, op: str, *values: Value) -> Value:
        """A result of 32 bits."""


def narrow(value: Any) -> Plain:  # noqa: ANN401
    """A result cut to 32 bits."""
    if isinstance(value, (int, np.integer)):
        return int(value) & M32
    return simple(value & M32) if value.shape[1] == 1 else value & M32


def result_bits(op: str, values: tuple[Value, ...]) -> int:
    """The bits of a result that may be one."""
    if op == "and":
        return bits_of(values[0]) & bits_of(values[1])
    if op in {"or", "xor"}:
        return bits_of(values[0]) | bits_of(values[1])
    if op in {"min_u", "max_u"}:
        most = [highest(each) for each in values]
        known = [each for each in most if each is not None]
        if known and (op == "min_u" or len(known) == len(most)):
            return (1 << (min(known) if op == "min_u" else max(known)).bit_length()) - 1
    if op == "shr" and isinstance(values[1], int):
        return bits_of(values[0]) >> (values[1] & 31)
    return M32


def _sum(one: Computes, a: Value, b: Value) -> Value:
    return plus(one.symbols, a, b)


def _difference(one: Computes, a: Value, b: Value) -> Value:
    return plus(one.symbols, a, times(b, M32))


def _product(_: Computes, a: Value, b: Value) -> Value | None:
    if isinstance(a, int):
        a, b = b, a
    return times(a, b) if isinstance(b, int) else None


def _product24(one: Computes, a: Value, b: Value) -> Value | None:
    high = [highest(each) for each in (a, b)]
    return _product(one, a, b) if all(each is not None and each < 1 << 23 for each in high) else None


def _left(_: Computes, a: Value, b: Value) -> Value | None:
    return times(a, 1 << (b & 31)) if isinstance(b, int) else None


def _right(_: Computes, a: Value, b: Value) -> Value | None:
    if not isinstance(b, int) or not isinstance(a, Linear):
        return None
    unit = 1 << (b & 31)
    if highest(a) is not None and not a.scale % unit and not np.any(np.asarray(a.offset) % unit):
        return linear(a.base, a.scale // unit, a.offset // unit)
    left = bits_of(a) >> (b & 31)
    return 0 if not left else None


def _common(one: Computes, a: Value, b: Value) -> Value | None:
    if isinstance(a, int):
        a, b = b, a
    if not isinstance(b, int) or not isinstance(a, Linear):
        return None
    may = bits_of(a)
    if may & ~b & M32 == 0:
        return a
    if may & b == 0:
        return 0
    low = a.scale & -a.scale
    if b < low:
        return simple(a.offset & b)
    unit = b & -b
    if unit > 1:
        made = one.symbols.opaque("and", (a, b), bits=(may & b) // unit)
        return linear(made.base, unit, 0)
    return None


def _either(one: Computes, a: Value, b: Value) -> Value | None:
    return plus(one.symbols, a, b) if bits_of(a) & bits_of(b) == 0 else None


def _field(one: Computes, a: Value, b: Value, c: Value) -> Value | None:
    if isinstance(b, int) and isinstance(c, int):
        return one.compute("and", one.compute("shr", a, b & 31), (1 << (c & 31)) - 1)
    return None


SIMPLER: dict[str, Callable[..., Value | None]] = {
    "add": _sum,
    "sub": _difference,
    "mul": _product,
    "mul24": _product24,
    "mul24i": _product24,
    "shl": _left,
    "shr": _right,
    "and": _common,
    "or": _either,
    "xor": _either,
    "bfe_u": _field,
}
