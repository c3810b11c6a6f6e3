"""One launch and what it must compute: takes arrays, gives a `Problem` that knows whether its outputs are right.

Whole numbers make every product and sum exact, so that the one right result can be demanded to the bit; where a kernel
rounds, the bound says from which roundings it comes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

HALF_ULP = {"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 2.0**-24, "f64": 2.0**-53}
"""The largest relative error of one rounding to the nearest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The value that one argument must have, and how far off each element may be."""

    argument: int
    value: Floats
    bound: Floats | float = 0.0
    read: Callable[[NDArray[Any]], Floats] = lambda array: array.astype(np.float64)

    def off(self, args: list[Any]) -> float:
        """How far the worst element is off, in units of its bound; 0 if all are exact, inf if any is not a number."""
        got = self.read(args[self.argument])
        apart = np.abs(got - self.value)
        exact = (got == self.value) | (np.isnan(got) & np.isnan(self.value))
        with np.errstate(all="ignore"):
            share = np.where(exact, 0.0, apart / self.bound)
        return float(np.where(np.isnan(share), np.inf, share).max(initial=0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Arguments, sizes and expectations of one launch."""

    args: list[Any]
    expected: tuple[Expected, ...] = ()
    grid: tuple[int, ...] = (1,)
    block: int = 256
    dynamic_lds: int = 0

    def off(self) -> float:
        """At most 1 if all is right."""
        return max((each.off(self.args) for each in self.expected), default=0.0)


def to_bf16(values: NDArray[Any]) -> NDArray[np.uint16]:
    """Rounded to the nearest, ties to even; by integers, since NumPy has no such type."""
    bits = np.asarray(values, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> np.uint64(16) & np.uint64(1))) >> np.uint64(16)).astype(np.uint16)


def from_bf16(bits: NDArray[np.uint16]) -> Floats:
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def to_f8(values: NDArray[Any], bias: int) -> NDArray[np.uint8]:
    """Whole numbers from -15 to 15 of at most 4 significant bits, as sign, 4 bits of exponent and 3 of mantissa."""
    size = np.abs(np.asarray(values, np.int64))
    exponent = np.where(size > 0, np.floor(np.log2(np.maximum(size, 1))), 0).astype(np.int64)
    mantissa = (size << 3 >> exponent) & 7
    code = np.where(size > 0, exponent + bias << 3 | mantissa, 0)
    return np.where(np.asarray(values) < 0, code | 0x80, code).astype(np.uint8)


def whole(rng: np.random.Generator, *shape: int, most: int = 4) -> Floats:
    """Whole numbers from -most to most."""
    return rng.integers(-most, most + 1, shape).astype(np.float64)
