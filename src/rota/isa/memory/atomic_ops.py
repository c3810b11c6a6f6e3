"""What atomics do to a number in memory.

Numbers are bit patterns in Python integers. Float sums round to nearest even and keep denormals, as CDNA3 and CDNA4 do
in LDS and in L2 (LLVM, "memory-atomic-fadd-f32-denormal-support").
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

import numpy as np

Combine = Callable[..., int]

_LDS = re.compile(
    r"^ds_(?P<verb>add|sub|rsub|inc|dec|min|max|and|or|xor|mskor|wrxchg|cmpst|pk_add)(?P<rtn>_rtn)?_(?P<type>[uibf]\d+|bf16)$"
)
_VECTOR = re.compile(
    r"^(?P<space>buffer|global|flat)_atomic_(?P<verb>swap|cmpswap|add|sub|smin|umin|smax|umax|and|or|xor|inc|dec"
    r"|add_f32|pk_add_f16|pk_add_bf16|add_f64|min_f64|max_f64)(?P<wide>_x2)?$"
)
_SCALAR = re.compile(r"^s_atomic_(?P<verb>swap|add|sub|smin|umin|smax|umax|and|or|xor|inc|dec)(?P<wide>_x2)?$")


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


def integer(verb: str, bits: int) -> Combine:
    mask = (1 << bits) - 1

    def signed(pick: Callable[..., int]) -> Combine:
        return lambda old, data: pick(old, data, key=lambda each: _signed(each, bits))

    table: dict[str, Combine] = {
        "add": lambda old, data: (old + data) & mask,
        "sub": lambda old, data: (old - data) & mask,
        "rsub": lambda old, data: (data - old) & mask,
        "inc": lambda old, data: 0 if old >= data else old + 1,
        "dec": lambda old, data: data if old == 0 or old > data else old - 1,
        "umin": min,
        "umax": max,
        "smin": signed(min),
        "smax": signed(max),
        "and": lambda old, data: old & data,
        "or": lambda old, data: old | data,
        "xor": lambda old, data: old ^ data,
        "swap": lambda _, data: data,
        "mskor": lambda old, cleared, data: old & ~cleared & mask | data,
        "cmpswap": lambda old, data, expected: data if old == expected else old,
    }
    return table[verb]


def _halves(old: int, data: int, total: Callable[[int, int], int]) -> int:
    return total(old & 0xFFFF, data & 0xFFFF) | total(old >> 16, data >> 16) << 16


def _sum(kind: str, bits: str, old: int, data: int) -> int:
    dtype = np.dtype(kind)
    one, two = (np.frombuffer(struct.pack(bits, each), dtype)[0] for each in (old, data))
    with np.errstate(all="ignore"):
        return int(struct.unpack(bits, np.asarray(one + two, dtype).tobytes())[0])


def _sum_bf16(old: int, data: int) -> int:
    total = _sum("<f4", "<I", old << 16, data << 16)
    if total & 0x7FFF_FFFF > 0x7F80_0000:  # a NaN stays one, whatever the low bits were
        return total >> 16 | 0x40
    return total + 0x7FFF + (total >> 16 & 1) >> 16


def _extreme(old: int, data: int, bits: str, kind: str, *, less: bool) -> int:
    one, two = (struct.unpack(kind, struct.pack(bits, each))[0] for each in (old, data))
    return data if (two < one if less else two > one) else old


_FLOATS: dict[str, tuple[Combine, int]] = {
    "add_f32": (lambda old, data: _sum("<f4", "<I", old, data), 4),
    "add_f64": (lambda old, data: _sum("<f8", "<Q", old, data), 8),
    "pk_add_f16": (lambda old, data: _halves(old, data, lambda a, b: _sum("<f2", "<H", a, b)), 4),
    "pk_add_bf16": (lambda old, data: _halves(old, data, _sum_bf16), 4),
    "min_f32": (lambda old, data: _extreme(old, data, "<I", "<f", less=True), 4),
    "max_f32": (lambda old, data: _extreme(old, data, "<I", "<f", less=False), 4),
    "min_f64": (lambda old, data: _extreme(old, data, "<Q", "<d", less=True), 8),
    "max_f64": (lambda old, data: _extreme(old, data, "<Q", "<d", less=False), 8),
}
_LDS_INTEGERS = {
    "add": "u", "sub": "u", "rsub": "u", "inc": "u", "dec": "u", "min": "ui", "max": "ui",
    "and": "b", "or": "b", "xor": "b", "mskor": "b", "wrxchg": "b", "cmpst": "b",
}  # fmt: skip


def lds_atomic(opcode: str) -> tuple[Combine, int, bool] | None:
    """The function, its size in bytes and whether the old value returns; None for other opcodes."""
    found = _LDS.match(opcode)
    if found is None:
        return None
    verb, kind, returns = found["verb"], found["type"], bool(found["rtn"])
    if (known := _FLOATS.get(f"{verb}_{kind}")) is not None:
        return *known, returns
    bits = int(kind[1:]) if kind[1:].isdigit() else 0
    if bits not in {32, 64} or kind[0] not in _LDS_INTEGERS.get(verb, "") or (verb == "wrxchg" and not returns):
        return None
    if verb in {"min", "max"}:
        return integer(("s" if kind[0] == "i" else "u") + verb, bits), bits // 8, returns
    if verb == "cmpst":  # what is expected comes first, the new value second
        swap = integer("cmpswap", bits)
        return (lambda old, expected, data: swap(old, data, expected)), bits // 8, returns
    return integer("swap" if verb == "wrxchg" else verb, bits), bits // 8, returns


def memory_atomic(opcode: str) -> tuple[Combine, int, bool] | None:
    """The function, its size in bytes and whether the data holds an expected value too; None for other opcodes."""
    found = _VECTOR.match(opcode) or _SCALAR.match(opcode)
    if found is None:
        return None
    if found["verb"] in _FLOATS:
        return None if found["wide"] else (*_FLOATS[found["verb"]], False)
    bits = 64 if found["wide"] else 32
    return integer(found["verb"], bits), bits // 8, found["verb"] == "cmpswap"
