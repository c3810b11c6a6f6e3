"""Values of registers: takes numbers, lanes and unknowns, gives what can be known of them for every launch.

A value is an int (the same in all lanes and waves), an array of int64 with a row per wave and one or 64 columns, or a
`Linear`: an unknown number, times a constant, plus one of these.  All are of 32 bits, unsigned.  Unknown numbers are
symbols with identity: the same operation on the same values is the same symbol.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

M32 = 0xFFFF_FFFF
GROUP, WAVE, LANE = 0, 1, 2
"""How far an unknown is shared: by the whole workgroup, by the lanes of a wave, by none."""
_STABLE_DEPTH = 6  # operations of loops on arguments that are told apart by what they are made of, at checkpoints

Lanes = NDArray[np.int64]
Plain = int | Lanes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Symbol:
    """An unknown number: what it came from, how far it is shared, and the bits that may be one.

    A stable one is made of launch arguments alone, by few operations of loops: it is the same wherever it is met.
    `company` are the waves that the rows of what it is made of stand for, in their order, where it matters which is
    which.
    """

    op: str
    args: tuple[Hashable, ...]
    spread: int
    bits: int
    depth: int
    number: int
    company: tuple[int, ...] = ()

    def __repr__(self) -> str:
        return f"<{self.op} {self.number}>"

    @property
    def stable(self) -> bool:
        """Is it made of arguments alone?"""
        return self.depth <= _STABLE_DEPTH


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """`scale * base + offset`, in 32 bits."""

    base: Symbol
    scale: int
    offset: Plain


Value = int | Lanes | Linear


class Symbols:
    """All symbols of a proof; equal ones are one.

    `company` are the waves that are looked at now: rows of arrays and masks are theirs.  Others may have the same rows
    in another order, so what is made of rows that differ is theirs alone.
    """

    def __init__(self) -> None:
        self.company: tuple[int, ...] = ()
        self._known: dict[tuple[Hashable, ...], Symbol] = {}
        self.looping = 1  # is 0 outside of loops, where what operations make can't grow without end

    def make(self, op: str, args: tuple[Hashable, ...], *, spread: int, bits: int = M32, depth: int = 0) -> Symbol:
        """The symbol of that operation on those keys."""
        company = self.company if spread and len(self.company) > 1 and any(map(_rows_differ, args)) else ()
        key = (op, args, spread, bits, company)
        found = self._known.get(key)
        if found is None:
            number = len(self._known)
            found = Symbol(op=op, args=args, spread=spread, bits=bits, depth=depth, number=number, company=company)
            self._known[key] = found
        return found

    def every(self) -> tuple[Symbol, ...]:
        """All that were made so far."""
        return tuple(self._known.values())

    def argument(self, name: str, *key: Hashable, bits: int = M32) -> Linear:
        """What a launch passes, the same for all waves."""
        return Linear(self.make(name, key, spread=GROUP, bits=bits), 1, 0)

    def fresh(self, op: str, spread: int, bits: int = M32) -> Linear:
        """An unknown that is like no other."""
        return Linear(self.make(op, (len(self._known),), spread=spread, bits=bits, depth=_STABLE_DEPTH + 1), 1, 0)

    def opaque(
        self, op: str, values: tuple[Value, ...], extra: Hashable = None, *, bits: int = M32, spread: int = -1
    ) -> Linear:
        """What an operation gives of which nothing else is known."""
        keys = tuple(map(key_of, values))
        depth = self.looping + max((each.base.depth for each in values if isinstance(each, Linear)), default=0)
        wide = spread if spread >= 0 else max(map(spread_of, values), default=GROUP)
        return Linear(self.make(op, (*keys, extra), spread=wide, bits=bits, depth=depth), 1, 0)


def key_of(value: Value) -> Hashable:
    """A hashable stand-in that is equal for equal values."""
    if isinstance(value, int):
        return value
    if isinstance(value, Linear):
        return (value.base, value.scale, key_of(value.offset))
    return (value.shape, value.tobytes())


def _rows_differ(key: Hashable) -> bool:
    """Is it a key, or a mask, with rows for several waves that are not all the same?"""
    if not isinstance(key, tuple):
        return bool(getattr(key, "rows_differ", False))
    if len(key) == 2 and isinstance(key[1], bytes):
        shape, octets = key
        size = len(octets) // shape[0]
        return any(octets[size * row : size * (row + 1)] != octets[:size] for row in range(1, shape[0]))
    return any(map(_rows_differ, key))


def spread_of(value: Value) -> int:
    """How far a value is shared."""
    if isinstance(value, int):
        return GROUP
    if isinstance(value, Linear):
        return max(value.base.spread, spread_of(value.offset))
    return LANE if value.shape[1] > 1 else WAVE


def simple(value: Plain) -> Plain:
    """An int if all lanes and waves agree."""
    if isinstance(value, int):
        return value
    if value.size and bool((value == value.flat[0]).all()):
        return int(value.flat[0])
    return value


def bits_of(value: Value) -> int:
    """The bits that may be one."""
    if isinstance(value, int):
        return value
    if isinstance(value, Linear):
        most = highest(value)
        if most is None:
            return M32
        low = value.scale & -value.scale if isinstance(value.offset, int) and value.offset == 0 else 1
        return ((1 << most.bit_length()) - 1) & ~(low - 1)
    return int(np.bitwise_or.reduce(value, axis=None))


def highest(value: Value) -> int | None:
    """The most that a value can be, None if its sum may wrap."""
    if isinstance(value, int):
        return value
    if isinstance(value, Linear):
        offset = highest(value.offset)
        most = value.scale * value.base.bits + (offset or 0)
        return most if most <= M32 else None
    return int(value.max())


def lowest(value: Value) -> int:
    """The least that a value can be, if its sum doesn't wrap."""
    if isinstance(value, int):
        return value
    return lowest(value.offset) if isinstance(value, Linear) else int(value.min())


def linear(base: Symbol, scale: int, offset: Plain) -> Value:
    """A linear value, or its offset if nothing is left of the unknown."""
    scale &= M32
    offset = offset & M32
    return Linear(base, scale, offset) if scale else simple(offset)


def plus(symbols: Symbols, one: Value, other: Value) -> Value:
    """The sum in 32 bits."""
    if isinstance(one, Linear):
        if isinstance(other, Linear):
            if one.base is other.base:
                return linear(one.base, one.scale + other.scale, one.offset + other.offset)
            if one.base.number > other.base.number:
                one, other = other, one
            offset = (one.offset + other.offset) & M32
            total = symbols.opaque("+", (Linear(one.base, one.scale, 0), Linear(other.base, other.scale, 0)))
            low = min(one.scale & -one.scale, other.scale & -other.scale)
            if low > 1:  # both are multiples: so is the sum
                return _multiple(symbols, total, low, offset)
            return Linear(total.base, 1, offset)
        return linear(one.base, one.scale, one.offset + other)
    if isinstance(other, Linear):
        return linear(other.base, other.scale, other.offset + one)
    return simple((one + other) & M32)


def _multiple(symbols: Symbols, total: Linear, low: int, offset: Plain) -> Value:
    base = symbols.make("/", (total.base, low), spread=total.base.spread, bits=M32 // low, depth=total.base.depth)
    return linear(base, low, offset)


def times(value: Value, factor: int) -> Value:
    """The product with a constant, in 32 bits."""
    if isinstance(value, Linear):
        return linear(value.base, value.scale * factor, value.offset * factor)
    return simple((value * factor) & M32)


def of_waves(value: Value, rows: list[int]) -> Value:
    """The value for some of the waves."""
    if isinstance(value, int):
        return value
    if isinstance(value, Linear):
        offset = of_waves(value.offset, rows)
        return value if isinstance(value.offset, int) else Linear(value.base, value.scale, offset)  # type: ignore[arg-type]
    return simple(value[rows]) if value.shape[1] == 1 else value[rows]


class Parts:
    """What a joint value is made of; no part of its identity."""

    __slots__ = ("parts",)

    def __init__(self, parts: tuple[Any, Any, Any]) -> None:
        self.parts = parts

    def __hash__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Parts)


def parts_of(base: Symbol) -> tuple[Any, Any, Any]:
    """What chooses, and the two values, of a `select` or a `pick`."""
    held = base.args[3]
    return held.parts if isinstance(held, Parts) else (None, 0, 0)
