"""Arguments of a launch, guessed: thousands of them at once, before z3 is asked.

Most conditions of a path hold for some ordinary launch, with sizes that are multiples of 64 and flags that are 0 or 1.
Such a launch is found in milliseconds, and says more to a reader than the numbers that z3 comes upon.  A guess is only
proposed: z3 is asked whether the conditions hold with its numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rota.prove.symbol import ARITHMETIC, COMPARISONS, M32, signed

_COUNT = 4_096
_SIZES = np.array([64 << shift for shift in range(8)] + [64 * factor for factor in range(1, 40)])
_FLAGS = np.array([0, 0, 1, 1, 2, 3, 4, 8])
_ODD = 1 << 16  # less ordinary numbers are below this
Numbers = Any  # an int64, or an array of them: one for each guess


def _carry(sign: int) -> Callable[..., Numbers]:
    def over(a: Numbers, b: Numbers, c: Numbers) -> Numbers:
        return (a + sign * (b + c) >> 32 & 1).astype(np.int64)

    return over


def _overflow(sign: int) -> Callable[..., Numbers]:
    def over(a: Numbers, b: Numbers, _: Numbers) -> Numbers:
        exact = signed(a) + sign * signed(b)
        return (exact != signed(exact & M32)).astype(np.int64)

    return over


_OPS: dict[str, Callable[..., Numbers]] = {
    **ARITHMETIC,
    **dict.fromkeys(("s_add_u32", "s_addc_u32"), _carry(1)),
    **dict.fromkeys(("s_sub_u32", "s_subb_u32"), _carry(-1)),
    "s_add_i32": _overflow(1),
    "s_sub_i32": _overflow(-1),
    "choose": lambda flag, a, b: np.where(flag != 0, a, b),
}
_NOT_VECTORS = frozenset({"perm"})
_CONDITIONS: dict[str, Callable[[Numbers, Numbers], Numbers]] = {
    **COMPARISONS,
    "ne": lambda a, b: a != b,
    "le_u": lambda a, b: a <= b,
}


class Guesses:
    """Builds terms as `BitVectors` does, of numbers instead of unknowns."""

    def __init__(self) -> None:
        self.drawn: dict[str, NDArray[np.int64]] = {}
        self._draw = np.random.default_rng(36)  # a verdict is the same each time

    def constant(self, number: int) -> Numbers:  # as the others
        return np.int64(number)

    def unknown(self, name: str, bits: int = M32) -> Numbers:
        if name not in self.drawn:
            self.drawn[name] = self._guess(small=name.startswith("workgroup")) & bits
        return self.drawn[name]

    def _guess(self, *, small: bool) -> NDArray[np.int64]:
        """The ordinary ones first: sizes and flags, then any number below a bound, then any."""
        draw = self._draw
        kind = draw.random(_COUNT)
        kind[_COUNT // 2 :] *= 2  # the other half are less ordinary
        flags, sizes = draw.choice(_FLAGS, _COUNT), draw.choice(_SIZES, _COUNT)
        least = np.where(kind < 1.6, draw.integers(0, _ODD, _COUNT), draw.integers(0, 1 << 32, _COUNT))
        ordinary = np.where(kind < 0.4, flags, np.where(kind < 1, sizes, least))
        return draw.integers(0, 8, _COUNT) * (kind > 0.5) if small else ordinary

    def knows(self, op: str) -> bool:
        return op in _OPS and op not in _NOT_VECTORS

    def apply(self, op: str, *terms: Numbers) -> Numbers:
        with np.errstate(over="ignore"):  # the low 32 bits of a product are right all the same
            return _OPS[op](*terms)

    def compare(self, op: str, one: Numbers, other: Numbers) -> Numbers:
        return _CONDITIONS[op](one, other)

    def flag(self, condition: Numbers) -> Numbers:
        return np.asarray(condition).astype(np.int64)

    def choose(self, condition: Numbers, one: Numbers, other: Numbers) -> Numbers:
        return np.where(condition, one, other)

    def quotient(self, product: Numbers, factor: int) -> Numbers:
        """A number whose product with the factor, modulo 2**32, is the given one, if there is one."""
        shift = (factor & -factor).bit_length() - 1
        inverse = pow(factor >> shift, -1, 1 << 32)
        return (product >> shift) * inverse & M32

    def find(self, conditions: Sequence[Numbers]) -> dict[str, int] | None:
        """The first guess for which all conditions hold."""
        holds = np.ones(_COUNT, bool)
        for each in conditions:
            holds &= each
        if not holds.any():
            return None
        first = int(holds.argmax())
        return {name: int(values[first]) for name, values in self.drawn.items()}
