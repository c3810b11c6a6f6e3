"""Values of registers: takes numbers, lanes and unknowns, gives what can be known of them for every launch.

A value is an int (the same in all lanes and waves), an array of int64 with a row per wave and one or 64 columns, or a
`Linear`: an unknown number, times a constant, plus one of these.  All are of 32 bits, unsigned.  Unknown numbers are
symbols with identity: the same operation on the same values is the same symbol.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Protocol

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
    `row_waves` are the waves that the rows of what it is made of stand for, in their order, where it matters which is
    which.
    """

    op: str
    args: tuple[Hashable, ...]
    spread: int
    bits: int
    depth: int
    number: int
    row_waves: tuple[int, ...] = ()

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

    `row_waves` are the waves that are looked at now: rows of arrays and masks are theirs.  Others may have the same rows
    in another order, so what is made of rows that differ is theirs alone.
    """

    def __init__(self) -> None:
        self.row_waves: tuple[int, ...] = ()
        self._known: dict[tuple[Hashable, ...], Symbol] = {}
        self.looping = 1  # is 0 outside of loops, where what operations make can't grow without end

    def make(self, op: str, args: tuple[Hashable, ...], *, spread: int, bits: int = M32, depth: int = 0) -> Symbol:
        """The symbol of that operation on those keys."""
        row_waves = self.row_waves if spread and len(self.row_waves) > 1 and any(map(_rows_differ, args)) else ()
        key = (op, args, spread, bits, row_waves)
        found = self._known.get(key)
        if found is None:
            number = len(self._known)
            found = Symbol(op=op, args=args, spread=spread, bits=bits, depth=depth, number=number, row_waves=row_waves)
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


def simplify(value: Plain) -> Plain:
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
        most = upper_bound(value)
        if most is None:
            return M32
        low = value.scale & -value.scale if isinstance(value.offset, int) and value.offset == 0 else 1
        return ((1 << most.bit_length()) - 1) & ~(low - 1)
    return int(np.bitwise_or.reduce(value, axis=None))


def upper_bound(value: Value) -> int | None:
    """The most that a value can be, None if its sum may wrap."""
    if isinstance(value, int):
        return value
    if isinstance(value, Linear):
        offset = upper_bound(value.offset)
        most = value.scale * value.base.bits + (offset or 0)
        return most if most <= M32 else None
    return int(value.max())


def lower_bound(value: Value) -> int:
    """The least that a value can be, if its sum doesn't wrap."""
    if isinstance(value, int):
        return value
    return lower_bound(value.offset) if isinstance(value, Linear) else int(value.min())


def linear(base: Symbol, scale: int, offset: Plain) -> Value:
    """A linear value, or its offset if nothing is left of the unknown."""
    scale &= M32
    offset = offset & M32
    return Linear(base, scale, offset) if scale else simplify(offset)


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
    return simplify((one + other) & M32)


def _multiple(symbols: Symbols, total: Linear, low: int, offset: Plain) -> Value:
    base = symbols.make("/", (total.base, low), spread=total.base.spread, bits=M32 // low, depth=total.base.depth)
    return linear(base, low, offset)


def times(value: Value, factor: int) -> Value:
    """The product with a constant, in 32 bits."""
    if isinstance(value, Linear):
        return linear(value.base, value.scale * factor, value.offset * factor)
    return simplify((value * factor) & M32)


def select_waves(value: Value, rows: list[int]) -> Value:
    """The value for some of the waves."""
    if isinstance(value, int):
        return value
    if isinstance(value, Linear):
        offset = select_waves(value.offset, rows)
        return value if isinstance(value.offset, int) else Linear(value.base, value.scale, offset)  # type: ignore[arg-type]
    return simplify(value[rows]) if value.shape[1] == 1 else value[rows]


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


Number = Any  # an int or an array: the same expression serves both


def signed(a: Number) -> Number:
    """Two's complement."""
    return (a ^ 0x8000_0000) - 0x8000_0000


def _signed24(a: Number) -> Number:
    return ((a & 0xFF_FFFF) ^ 0x80_0000) - 0x80_0000


def _wide(a: Number, b: Number) -> tuple[Number, Number]:
    """The 64 bits of a product, low and high, without leaving 63 bits on the way."""
    low = (a & 0xFFFF) * b
    high = (a >> 16) * b
    middle = (low >> 16) + high
    return (middle << 16 | low & 0xFFFF) & M32, middle >> 16


def multiply_high(a: Number, b: Number) -> Number:
    """Bits 63:32 of an unsigned product."""
    return _wide(a, b)[1]


def _multiply_high_signed(a: Number, b: Number) -> Number:
    return (signed(a) * signed(b)) >> 32 & M32


def _pick(test: Number, a: Number, b: Number) -> Number:
    if isinstance(test, (bool, int)):
        return a if test else b
    return np.where(test, a, b)


def _extract(a: Number, offset: Number, width: Number) -> Number:
    return a >> (offset & 31) & ((1 << (width & 31)) - 1)


def _extract_signed(a: Number, offset: Number, width: Number) -> Number:
    width = width & 31
    top = (1 << width) >> 1
    return (((_extract(a, offset, width)) ^ top) - top) & M32


def _reversed(a: Number) -> Number:
    for shift, mask in ((1, 0x5555_5555), (2, 0x3333_3333), (4, 0x0F0F_0F0F), (8, 0x00FF_00FF)):
        a = (a >> shift & mask) | (a & mask) << shift
    return (a >> 16 | a << 16) & M32


def _permute(a: Number, b: Number, selector: Number) -> Number:
    """v_perm_b32 for selectors that pick bytes or zero."""
    out = 0
    for place in range(4):
        chosen = selector >> 8 * place & 0xFF
        whole = a << 32 | b if isinstance(a, int) and isinstance(b, int) else None
        if not isinstance(chosen, int) or (chosen > 7 and chosen != 12):
            raise ValueError("selector")
        if chosen <= 7:
            octet = (
                whole >> 8 * chosen & 0xFF if whole is not None else (a if chosen > 3 else b) >> 8 * (chosen & 3) & 0xFF
            )
            out = out | octet << 8 * place
    return out


ARITHMETIC: dict[str, Callable[..., Number]] = {
    "add": lambda a, b: (a + b) & M32,
    "sub": lambda a, b: (a - b) & M32,
    "mul": lambda a, b: a * b & M32,
    "mulhi_u": multiply_high,
    "mulhi_i": _multiply_high_signed,
    "mul24": lambda a, b: (a & 0xFF_FFFF) * (b & 0xFF_FFFF) & M32,
    "mul24i": lambda a, b: _signed24(a) * _signed24(b) & M32,
    "shl": lambda a, b: a << (b & 31) & M32,
    "shr": lambda a, b: a >> (b & 31),
    "sar": lambda a, b: signed(a) >> (b & 31) & M32,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "andn2": lambda a, b: a & (b ^ M32),
    "orn2": lambda a, b: a | (b ^ M32),
    "nand": lambda a, b: (a & b) ^ M32,
    "nor": lambda a, b: (a | b) ^ M32,
    "xnor": lambda a, b: a ^ b ^ M32,
    "not": lambda a: a ^ M32,
    "min_u": lambda a, b: _pick(a < b, a, b),
    "max_u": lambda a, b: _pick(a > b, a, b),
    "min_i": lambda a, b: _pick(signed(a) < signed(b), a, b),
    "max_i": lambda a, b: _pick(signed(a) > signed(b), a, b),
    "abs": lambda a: abs(signed(a)) & M32,
    "bfe_u": _extract,
    "bfe_i": _extract_signed,
    "bfm": lambda a, b: ((1 << (a & 31)) - 1) << (b & 31) & M32,
    "bfi": lambda a, b, c: a & b | (a ^ M32) & c,
    "brev": _reversed,
    "pack_ll": lambda a, b: a & 0xFFFF | (b & 0xFFFF) << 16,
    "pack_lh": lambda a, b: a & 0xFFFF | b & 0xFFFF_0000,
    "pack_hh": lambda a, b: a >> 16 | b & 0xFFFF_0000,
    "sext8": lambda a: ((a & 0xFF) ^ 0x80) - 0x80 & M32,
    "sext16": lambda a: ((a & 0xFFFF) ^ 0x8000) - 0x8000 & M32,
    "perm": _permute,
    "alignbit": lambda a, b, c: (b >> (c & 31) | a << (32 - (c & 31))) & M32,
    "alignbyte": lambda a, b, c: (b >> 8 * (c & 3) | a << (32 - 8 * (c & 3))) & M32,
}
"""By a short name; more than two numbers where the instruction takes them."""

COMPARISONS: dict[str, Callable[[Number, Number], Number]] = {
    "eq": lambda a, b: a == b,
    "lt_u": lambda a, b: a < b,
    "lt_i": lambda a, b: signed(a) < signed(b),
}
"""The three that all others are made of, by turning operands and results round."""


class Computes(Protocol):
    """What makes symbols, and computes."""

    symbols: Symbols

    def compute(self, op: str, *values: Value) -> Value:
        """A result of 32 bits."""


def narrow(value: Any) -> Plain:  # noqa: ANN401
    """A result cut to 32 bits."""
    if isinstance(value, (int, np.integer)):
        return int(value) & M32
    return simplify(value & M32) if value.shape[1] == 1 else value & M32


def result_bits(op: str, values: tuple[Value, ...]) -> int:
    """The bits of a result that may be one."""
    if op == "and":
        return bits_of(values[0]) & bits_of(values[1])
    if op in {"or", "xor"}:
        return bits_of(values[0]) | bits_of(values[1])
    if op in {"min_u", "max_u"}:
        most = [upper_bound(each) for each in values]
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
    high = [upper_bound(each) for each in (a, b)]
    return _product(one, a, b) if all(each is not None and each < 1 << 23 for each in high) else None


def _left(_: Computes, a: Value, b: Value) -> Value | None:
    return times(a, 1 << (b & 31)) if isinstance(b, int) else None


def _right(_: Computes, a: Value, b: Value) -> Value | None:
    if not isinstance(b, int) or not isinstance(a, Linear):
        return None
    unit = 1 << (b & 31)
    if upper_bound(a) is not None and not a.scale % unit and not np.any(np.asarray(a.offset) % unit):
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
        return simplify(a.offset & b)
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


SIMPLIFIERS: dict[str, Callable[..., Value | None]] = {
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
