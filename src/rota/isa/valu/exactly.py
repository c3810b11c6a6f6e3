"""Multiplication and addition rounded once: takes floats of 16, 32 or 64 bits, gives a * b + c in their format."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

_LOW = np.uint64(0xFFFF)  # zero in every number that a shorter format holds, and halfway between two of them


def fused(a: Any, b: Any, c: Any, kind: Any) -> Any:  # noqa: ANN401
    """A fused multiply-add; `kind` is the format of the result, at most that of the sources."""
    if kind is np.float64:
        return _by_ratios(a, b, c)
    return to_odd(np.asarray(a, np.float64) * np.asarray(b, np.float64), np.asarray(c, np.float64)).astype(kind)


def to_odd(product: Any, addend: Any) -> Any:  # noqa: ANN401
    """A sum of two float64 rounded to odd, so that rounding it again to a format half as wide is rounding once."""
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
    """Float64 has nothing wider to compute in: integers, and the one rounding of Python's division."""
    rough = np.asarray(a, np.float64) * np.asarray(b, np.float64) + np.asarray(c, np.float64)
    shape = np.broadcast_shapes(np.shape(a), np.shape(b), np.shape(c))
    sources = [np.broadcast_to(np.asarray(each, np.float64), shape).ravel() for each in (a, b, c)]
    out = np.array(np.broadcast_to(rough, shape), np.float64).ravel()
    for place, (x, y, z) in enumerate(zip(*(each.tolist() for each in sources), strict=True)):
        if math.isfinite(x) and math.isfinite(y) and math.isfinite(z):
            out[place] = _one(x, y, z, out[place])
    return out.reshape(shape)


def _one(x: float, y: float, z: float, rough: float) -> float:
    (xn, xd), (yn, yd), (zn, zd) = x.as_integer_ratio(), y.as_integer_ratio(), z.as_integer_ratio()
    top = xn * yn * zd + zn * xd * yd
    if top == 0:
        return rough  # zero; its sign is the plain sum's
    try:
        return top / (xd * yd * zd)
    except OverflowError:
        return math.inf if top > 0 else -math.inf
