"""Integers of 32 bits: takes numbers or lanes, gives what an instruction makes of them.

Numbers are ints or arrays of int64, unsigned.  This is written from the ISA's documents for the proof alone: the
interpreter has its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rota.prove.symbol import M32

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
