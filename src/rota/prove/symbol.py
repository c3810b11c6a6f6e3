"""Symbolic values of registers, and the arithmetic on them.

A value is an int (the same in all lanes and waves), an array of int64 with a row per wave and one column or as many as
a wave has lanes, or a `Linear`: a symbol times a constant, plus one of these.  All are unsigned numbers of 32 bits.  A
symbol is an unknown number with an identity: the same operation on the same values gives the same symbol.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

M32 = 0xFFFF_FFFF
GROUP, WAVE, LANE = 0, 1, 2
"""The spread of a value: the same in the whole workgroup, in all lanes of a wave, or in no two lanes."""
LOADED, FROM_LDS = "loaded", "from LDS"  # ops of symbols: words from global memory, and what LDS or another lane gives
_STABLE_DEPTH = 6  # most operations inside loops that a symbol may be made by and keep its name at checkpoints

Lanes = NDArray[np.int64]
Plain = int | Lanes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Symbol:
    """An unknown number: the operation and operands that made it, its spread, and the bits that may be one."""

    op: str
    args: tuple[Hashable, ...]
    spread: int
    bits: int
    depth: int
    number: int
    row_waves: tuple[int, ...] = ()  # the waves whose rows its operands have, where the rows differ

    def __repr__(self) -> str:
        return f"<{self.op} {self.number}>"

    @property
    def stable(self) -> bool:
        """True if it is made of launch arguments by few operations in loops: then it keeps its name at checkpoints."""
        return self.depth <= _STABLE_DEPTH


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    base: Symbol
    scale: int
    offset: Plain


Value = int | Lanes | Linear


class Symbols:
    """All symbols of a proof, hash-consed.

    `row_waves` are the waves that run now: the rows of arrays and masks are theirs.  Other waves may have the same rows
    in another order, so a symbol made of rows that differ belongs to these waves alone.
    """

    def __init__(self) -> None:
        self.row_waves: tuple[int, ...] = ()
        self._known: dict[tuple[Hashable, ...], Symbol] = {}
        self.looping = 1  # 0 outside of loops, where symbols can't grow without end
        self.keeps_parity = False  # of values that are joined: waves poll phases of barriers in LDS
        self.has_rings = False  # some unknown keeps remainders by a number that is no power of two

    def make(self, op: str, args: tuple[Hashable, ...], *, spread: int, bits: int = M32, depth: int = 0) -> Symbol:
        row_waves = self.row_waves if spread and len(self.row_waves) > 1 and any(map(_rows_differ, args)) else ()
        key = (op, args, spread, bits, row_waves)
        found = self._known.get(key)
        if found is None:
            number = len(self._known)
            found = Symbol(op=op, args=args, spread=spread, bits=bits, depth=depth, number=number, row_waves=row_waves)
            self._known[key] = found
        return found

    def every(self) -> tuple[Symbol, ...]:
        return tuple(self._known.values())

    def argument(self, name: str, *key: Hashable, bits: int = M32) -> Linear:
        return Linear(self.make(name, key, spread=GROUP, bits=bits), 1, 0)

    def fresh(self, op: str, spread: int, bits: int = M32, *more: Hashable) -> Linear:
        args = (len(self._known), *more)
        return Linear(self.make(op, args, spread=spread, bits=bits, depth=_STABLE_DEPTH + 1), 1, 0)

    def opaque(
        self, op: str, values: tuple[Value, ...], extra: Hashable = None, *, bits: int = M32, spread: int = -1
    ) -> Linear:
        """The symbol of an operation on values; `extra` says what else decides its result, such as a lane mask."""
        keys = tuple(map(key_of, values))
        inside = (*(each.base for each in values if isinstance(each, Linear)), *_atoms_in(extra))
        depth = self.looping + max((each.depth for each in inside), default=0)
        wide = spread if spread >= 0 else max(map(spread_of, values), default=GROUP)
        return Linear(self.make(op, (*keys, extra), spread=wide, bits=bits, depth=depth), 1, 0)


def key_of(value: Value) -> Hashable:
    if isinstance(value, int):
        return value
    if isinstance(value, Linear):
        return (value.base, value.scale, key_of(value.offset))
    return (value.shape, value.tobytes())


def _atoms_in(extra: Hashable) -> frozenset[Symbol]:
    """The atoms of masks: a symbol that is made of an unknown mask doesn't keep its name at checkpoints either."""
    if isinstance(extra, tuple):
        return frozenset[Symbol]().union(*map(_atoms_in, extra))
    return getattr(extra, "atoms", frozenset())


def _rows_differ(key: Hashable) -> bool:
    if not isinstance(key, tuple):
        return bool(getattr(key, "rows_differ", False))
    if len(key) == 2 and isinstance(key[1], bytes):
        shape, octets = key
        size = len(octets) // shape[0]
        return any(octets[size * row : size * (row + 1)] != octets[:size] for row in range(1, shape[0]))
    return any(map(_rows_differ, key))


def spread_of(value: Value) -> int:
    if isinstance(value, int):
        return GROUP
    if isinstance(value, Linear):
        return max(value.base.spread, spread_of(value.offset))
    return LANE if value.shape[1] > 1 else WAVE


def simplify(value: Plain) -> Plain:
    if isinstance(value, int):
        return value
    if value.size and bool((value == value.flat[0]).all()):
        return int(value.flat[0])
    return value


def bits_of(value: Value) -> int:
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
    """The largest number that a value can be; None if its sum may wrap."""
    if isinstance(value, int):
        return value
    if isinstance(value, Linear):
        offset = upper_bound(value.offset)
        most = value.scale * value.base.bits + (offset or 0)
        return most if most <= M32 else None
    return int(value.max())


def linear(base: Symbol, scale: int, offset: Plain) -> Value:
    """`scale * base + offset`, which is only the offset if the scale wraps to 0."""
    scale &= M32
    offset = offset & M32
    return Linear(base, scale, offset) if scale else simplify(offset)


def plus(symbols: Symbols, one: Value, other: Value) -> Value:
    if isinstance(one, Linear):
        if isinstance(other, Linear):
            if one.base is other.base:
                return linear(one.base, one.scale + other.scale, one.offset + other.offset)
            if one.base.number > other.base.number:
                one, other = other, one
            offset = (one.offset + other.offset) & M32
            total = symbols.opaque("+", (Linear(one.base, one.scale, 0), Linear(other.base, other.scale, 0)))
            low = min(one.scale & -one.scale, other.scale & -other.scale)
            if low == 1:
                return Linear(total.base, 1, offset)
            # Both are multiples of a power of two, and so is the sum: its low bits stay known.
            base = total.base
            quotient = symbols.make("/", (base, low), spread=base.spread, bits=M32 // low, depth=base.depth)
            return linear(quotient, low, offset)
        return linear(one.base, one.scale, one.offset + other)
    if isinstance(other, Linear):
        return linear(other.base, other.scale, other.offset + one)
    return simplify((one + other) & M32)


def times(value: Value, factor: int) -> Value:
    if isinstance(value, Linear):
        return linear(value.base, value.scale * factor, value.offset * factor)
    return simplify((value * factor) & M32)


def divide(value: Value, by: int) -> Value | None:
    """The value divided by a power of two; None if it may not be a multiple."""
    if by == 1:
        return value
    scale, offset = (value.scale, value.offset) if isinstance(value, Linear) else (0, value)
    if by & (by - 1) or scale % by or np.any(np.asarray(offset) % by):
        return None
    return linear(value.base, scale // by, offset // by) if isinstance(value, Linear) else offset // by


def select_waves(value: Value, rows: list[int]) -> Value:
    if isinstance(value, int):
        return value
    if isinstance(value, Linear):
        offset = select_waves(value.offset, rows)
        return value if isinstance(value.offset, int) else Linear(value.base, value.scale, offset)  # type: ignore[arg-type]
    return simplify(value[rows]) if value.shape[1] == 1 else value[rows]


class Parts:
    """The chooser and both values of a `select` or a `pick`, carried along outside of its identity."""

    __slots__ = ("parts",)

    def __init__(self, parts: tuple[Any, Any, Any]) -> None:
        self.parts = parts

    def __hash__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Parts)


def parts_of(base: Symbol) -> tuple[Any, Any, Any]:
    held = base.args[3]
    return held.parts if isinstance(held, Parts) else (None, 0, 0)


Number = Any  # an int or an array: the same expression serves both


def signed(a: Number) -> Number:
    return (a ^ 0x8000_0000) - 0x8000_0000


def _signed24(a: Number) -> Number:
    return ((a & 0xFF_FFFF) ^ 0x80_0000) - 0x80_0000


def multiply_high(a: Number, b: Number) -> Number:
    # In two steps, since an int64 can't hold the whole product.
    return (((a & 0xFFFF) * b >> 16) + (a >> 16) * b) >> 16


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


def _reverse_bits(a: Number) -> Number:
    for shift, mask in ((1, 0x5555_5555), (2, 0x3333_3333), (4, 0x0F0F_0F0F), (8, 0x00FF_00FF)):
        a = (a >> shift & mask) | (a & mask) << shift
    return (a >> 16 | a << 16) & M32


def _permute(a: Number, b: Number, selector: Number) -> Number:
    """v_perm_b32 for selectors that pick bytes or zero; raises ValueError for others."""
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
    "mulhi_i": lambda a, b: signed(a) * signed(b) >> 32 & M32,
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
    "brev": _reverse_bits,
    "pack_ll": lambda a, b: a & 0xFFFF | (b & 0xFFFF) << 16,
    "pack_lh": lambda a, b: a & 0xFFFF | b & 0xFFFF_0000,
    "pack_hh": lambda a, b: a >> 16 | b & 0xFFFF_0000,
    "sext8": lambda a: ((a & 0xFF) ^ 0x80) - 0x80 & M32,
    "sext16": lambda a: ((a & 0xFFFF) ^ 0x8000) - 0x8000 & M32,
    "perm": _permute,
    "alignbit": lambda a, b, c: (b >> (c & 31) | a << (32 - (c & 31))) & M32,
    "alignbyte": lambda a, b, c: (b >> 8 * (c & 3) | a << (32 - 8 * (c & 3))) & M32,
}
"""Operations on numbers of 32 bits, by name; ints and arrays alike."""

COMPARISONS: dict[str, Callable[[Number, Number], Number]] = {
    "eq": lambda a, b: a == b,
    "lt_u": lambda a, b: a < b,
    "lt_i": lambda a, b: signed(a) < signed(b),
}
"""The three basic comparisons: all others swap the operands or negate the result of one of them."""


class Computes(Protocol):
    symbols: Symbols

    def compute(self, op: str, *values: Value) -> Value: ...


def narrow(value: Any) -> Plain:  # noqa: ANN401
    if isinstance(value, (int, np.integer)):
        return int(value) & M32
    return simplify(value & M32) if value.shape[1] == 1 else value & M32


def result_bits(op: str, values: tuple[Value, ...]) -> int:
    if op == "and":
        return bits_of(values[0]) & bits_of(values[1])
    if op == "andn2":
        return bits_of(values[0])
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


# Simplifications of operations on symbols; None where there is none.


def _multiply(_: Computes, a: Value, b: Value) -> Value | None:
    if isinstance(a, int):
        a, b = b, a
    return times(a, b) if isinstance(b, int) else None


def _multiply24(evaluator: Computes, a: Value, b: Value) -> Value | None:
    high = [upper_bound(each) for each in (a, b)]
    return _multiply(evaluator, a, b) if all(each is not None and each < 1 << 23 for each in high) else None


def _shift_right(evaluator: Computes, a: Value, b: Value) -> Value | None:
    if not isinstance(b, int) or not isinstance(a, Linear):
        return None
    if not b & 31:
        return a
    unit = 1 << (b & 31)
    if upper_bound(a) is not None and not a.scale % unit:  # the sum doesn't wrap, and only numbers leave a remainder
        return linear(a.base, a.scale // unit, a.offset // unit)
    return _keep_low_bits(evaluator, a, b & 31) if bits_of(a) >> (b & 31) else 0


def _keep_low_bits(evaluator: Computes, value: Linear, by: int) -> Value | None:
    """A value shifted right, where bits of it are known that stay low ones."""
    base, offset = value.base, value.offset
    if not evaluator.symbols.keeps_parity:
        return None
    if value.scale == 1 and _has_hole(base.bits) and isinstance(offset, int) and not base.bits & offset:
        rest = evaluator.symbols.opaque("shr", (Linear(base, 1, 0), by), bits=base.bits >> by)
        return plus(evaluator.symbols, rest, offset >> by)  # bits that don't overlap don't carry
    bit = evaluator.compute("and", value, 1 << by)
    if not isinstance(bit, int):
        return None
    made = evaluator.symbols.opaque("shr", (value, by), bits=result_bits("shr", (value, by))).base
    half = evaluator.symbols.make("/", (made, 2), spread=made.spread, bits=made.bits // 2, depth=made.depth)
    return linear(half, 2, bit >> by)


def _has_hole(bits: int) -> bool:
    return bits & bits + 1 != 0 and bool(bits & 1)


def _multiply_high(_: Computes, a: Value, b: Value) -> Value | None:
    """The high word of a product with a constant, where what the unknown adds to the low word never carries."""
    if isinstance(a, int):
        a, b = b, a
    if not isinstance(a, Linear) or not isinstance(b, int) or upper_bound(a) is None:
        return None
    whole, rest = divmod(a.scale * b, M32 + 1)
    low = a.offset * b & M32 if isinstance(a.offset, int) else M32
    return linear(a.base, whole, multiply_high(a.offset, b)) if low + rest * a.base.bits <= M32 else None


def _multiply_high_signed(evaluator: Computes, a: Value, b: Value) -> Value | None:
    high = [upper_bound(each) for each in (a, b)]
    return _multiply_high(evaluator, a, b) if all(each is not None and each < 1 << 31 for each in high) else None


def _find_lowest_bit(evaluator: Computes, value: Linear) -> int | None:
    """The lowest bit of a sum or of exclusive bits, if that of each part is known."""
    base, offset = value.base, value.offset
    if base.op not in {"xor", "+"} or base.args[-1] is not None or value.scale != 1 or not isinstance(offset, int):
        return None
    parts = [_value_of(each) for each in base.args[:2]]
    bits = [None if each is None else evaluator.compute("and", each, 1) for each in parts]
    one, other = bits
    return (one ^ other ^ offset) & 1 if isinstance(one, int) and isinstance(other, int) else None


def _value_of(key: Hashable) -> Value | None:
    """The value with that key, unless it differs by wave or lane."""
    if isinstance(key, int):
        return key
    if isinstance(key, tuple) and len(key) == 3 and isinstance(key[0], Symbol) and isinstance(key[2], int):
        return Linear(key[0], key[1], key[2])
    return None


def _and(evaluator: Computes, a: Value, b: Value) -> Value | None:
    if isinstance(a, int):
        a, b = b, a
    if not isinstance(b, int) or not isinstance(a, Linear):
        return None
    may = bits_of(a)
    if may & ~b & M32 == 0 or may & b == 0:
        return a if may & b else 0
    if b == 1 and evaluator.symbols.keeps_parity and (bit := _find_lowest_bit(evaluator, a)) is not None:
        return bit
    low = a.scale & -a.scale
    own = a.base.bits * a.scale  # bits of the unknown part, if the scale is a power of two
    if b < low or (a.scale == low and not own & b and not np.any(a.offset & own)):
        return simplify(a.offset & b)
    unit = b & -b
    if unit > 1:
        # Count the result in units of its mask's lowest bit, so that its low bits stay known.
        made = evaluator.symbols.opaque("and", (a, b), bits=(may & b) // unit)
        return linear(made.base, unit, 0)
    return None


def _or(evaluator: Computes, a: Value, b: Value) -> Value | None:
    return plus(evaluator.symbols, a, b) if bits_of(a) & bits_of(b) == 0 else None


def _xor(evaluator: Computes, a: Value, b: Value) -> Value | None:
    found = _or(evaluator, a, b)
    if found is not None or b != 1 or not evaluator.symbols.keeps_parity:
        return found
    bit = evaluator.compute("and", a, 1)
    return plus(evaluator.symbols, a, 1 - 2 * bit & M32) if isinstance(bit, int) else None


def _extract_field(evaluator: Computes, a: Value, b: Value, c: Value) -> Value | None:
    if isinstance(b, int) and isinstance(c, int):
        return evaluator.compute("and", evaluator.compute("shr", a, b & 31), (1 << (c & 31)) - 1)
    return None


SIMPLIFIERS: dict[str, Callable[..., Value | None]] = {
    "add": lambda evaluator, a, b: plus(evaluator.symbols, a, b),
    "sub": lambda evaluator, a, b: plus(evaluator.symbols, a, times(b, M32)),
    "mul": _multiply,
    "mul24": _multiply24,
    "mul24i": _multiply24,
    "mulhi_u": _multiply_high,
    "mulhi_i": _multiply_high_signed,
    "shl": lambda _, a, b: times(a, 1 << (b & 31)) if isinstance(b, int) else None,
    "shr": _shift_right,
    "and": _and,
    "or": _or,
    "xor": _xor,
    "bfe_u": _extract_field,
}
