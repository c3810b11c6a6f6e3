"""Memory instructions a second time, in plain Python: takes lanes as lists of integers and memory as a bytearray.

Nothing here comes from the interpreter: numbers go through `struct` and `fractions`, and lanes are visited one by one.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from fractions import Fraction

LANES = 64
Rows = list[list[int]]  # register rows by lanes


def unpack(octets: bytes, kind: str) -> int:
    """Bytes as the number of that struct letter."""
    return int(struct.unpack(f"<{kind}", octets)[0])


def extended(octets: bytes, *, signed: bool) -> int:
    """A byte or two as the bits of a register."""
    letter = {1: "b", 2: "h"}[len(octets)]
    return unpack(octets, letter if signed else letter.upper()) % 2**32


def half(octets: bytes, *, signed: bool, high: bool) -> int:
    """A register of which one half was loaded, on a machine with SRAM-ECC: the other one is poison."""
    new, lost = extended(octets, signed=signed) % 2**16, 2**16 - 1
    return lost + new * 2**16 if high else lost * 2**16 + new


def rounded(value: Fraction, precision: int, lowest: int, highest: int) -> Fraction | None:
    """To nearest even, with so many bits; None is an infinity.  Exponents are those of the leading bit."""
    if value == 0:
        return value
    exponent = lowest
    while abs(value) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    unit = Fraction(2) ** (exponent - precision + 1)
    result = round(value / unit) * unit  # Python rounds a Fraction to even
    return None if abs(result) >= Fraction(2) ** (highest + 1) else result


def _sum32(old: int, data: int) -> int:
    one, two = (struct.unpack("<f", struct.pack("<I", each))[0] for each in (old, data))
    total = Fraction(one) + Fraction(two)
    kept = rounded(total, 24, -126, 127)
    if kept is None:
        return 0x7F80_0000 if total > 0 else 0xFF80_0000
    if kept == 0:
        return 0x8000_0000 if old >> 31 and data >> 31 else 0
    return int(struct.unpack("<I", struct.pack("<f", float(kept)))[0])


def _sum64(old: int, data: int) -> int:
    one, two = (struct.unpack("<d", struct.pack("<Q", each))[0] for each in (old, data))
    return int(struct.unpack("<Q", struct.pack("<d", one + two))[0])


def _sum16(old: int, data: int) -> int:
    one, two = (struct.unpack("<e", struct.pack("<H", each))[0] for each in (old, data))
    try:
        return int(struct.unpack("<H", struct.pack("<e", one + two))[0])  # exact as a double, rounded once
    except OverflowError:
        return 0x7C00 if one + two > 0 else 0xFC00


def _sum_bf16(old: int, data: int) -> int:
    one, two = (struct.unpack("<f", struct.pack("<I", each << 16))[0] for each in (old, data))
    total = Fraction(one) + Fraction(two)
    kept = rounded(total, 8, -126, 127)
    if kept is None:
        return 0x7F80 if total > 0 else 0xFF80
    if kept == 0:
        return 0x8000 if old >> 15 and data >> 15 else 0
    return int(struct.unpack("<I", struct.pack("<f", float(kept)))[0]) >> 16


def _both(one: Callable[[int, int], int]) -> Callable[[int, int], int]:
    return lambda old, data: one(old % 2**16, data % 2**16) + one(old >> 16, data >> 16) * 2**16


def _as_signed(bits: int) -> Callable[[int], int]:
    letter = {32: "i", 64: "q"}[bits]
    return lambda value: unpack(value.to_bytes(bits // 8, "little"), letter)


def _as_float(bits: int) -> Callable[[int], float]:
    letters = {32: "If", 64: "Qd"}[bits]
    return lambda value: float(struct.unpack(f"<{letters[1]}", struct.pack(f"<{letters[0]}", value))[0])


def combination(verb: str, bits: int) -> Callable[..., int]:
    """What an atomic makes of the old value and its data (and of a second number, if it takes one)."""
    size, signed = 2**bits, _as_signed(bits)

    def increment(old: int, data: int) -> int:
        return old + 1 if old < data else 0

    def decrement(old: int, data: int) -> int:
        return old - 1 if 0 < old <= data else data

    def bitwise(name: str) -> Callable[[int, int], int]:
        def each(old: int, data: int) -> int:
            total = 0
            for place in range(bits):
                a, b = old >> place & 1, data >> place & 1
                total += {"and": a * b, "or": max(a, b), "xor": (a + b) % 2}[name] << place
            return total

        return each

    table: dict[str, Callable[..., int]] = {
        "add": lambda old, data: (old + data) % size,
        "sub": lambda old, data: (old - data) % size,
        "rsub": lambda old, data: (data - old) % size,
        "inc": increment,
        "dec": decrement,
        "umin": lambda old, data: min(data, old),
        "umax": lambda old, data: max(data, old),
        "smin": lambda old, data: old if signed(old) < signed(data) else data,
        "smax": lambda old, data: old if signed(old) > signed(data) else data,
        "and": bitwise("and"),
        "or": bitwise("or"),
        "xor": bitwise("xor"),
        "swap": lambda old, data: data if old >= 0 else old,
        "cmpswap": lambda old, data, expected: {True: data, False: old}[expected == old],
        "mskor": lambda old, clear, data: sum(
            1 << place for place in range(bits) if data >> place & 1 or (old >> place & 1 and not clear >> place & 1)
        ),
        "add_f32": _sum32,
        "add_f64": _sum64,
        "pk_add_f16": _both(_sum16),
        "pk_add_bf16": _both(_sum_bf16),
    }
    if verb in {"min_f32", "max_f32", "min_f64", "max_f64"}:
        value, sign = _as_float(bits), 1 if verb.startswith("max") else -1
        return lambda old, data: data if sign * value(data) > sign * value(old) else old
    return table[verb]
