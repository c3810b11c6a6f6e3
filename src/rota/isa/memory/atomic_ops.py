"""What atomics do to a number in memory.

Numbers are bit patterns in Python integers. Float sums round to nearest even and keep denormals, as CDNA3 and CDNA4 do
in LDS and in L2 (LLVM, "memory-atomic-fadd-f32-denormal-support").
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np

from rota.isa.opcodes import MemAccess, MemSpace

Combine = Callable[..., int]


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


def _integer(bits: int) -> dict[str, Combine]:
    mask = (1 << bits) - 1

    def signed(pick: Callable[..., int]) -> Combine:
        return lambda old, data: pick(old, data, key=lambda each: _signed(each, bits))

    return {
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


_FLOATS: dict[str, Combine] = {
    "add_f32": lambda old, data: _sum("<f4", "<I", old, data),
    "add_f64": lambda old, data: _sum("<f8", "<Q", old, data),
    "pk_add_f16": lambda old, data: _halves(old, data, lambda a, b: _sum("<f2", "<H", a, b)),
    "pk_add_bf16": lambda old, data: _halves(old, data, _sum_bf16),
    "min_f32": lambda old, data: _extreme(old, data, "<I", "<f", less=True),
    "max_f32": lambda old, data: _extreme(old, data, "<I", "<f", less=False),
    "min_f64": lambda old, data: _extreme(old, data, "<Q", "<d", less=True),
    "max_f64": lambda old, data: _extreme(old, data, "<Q", "<d", less=False),
}


def combine_of(access: MemAccess) -> Combine | None:
    """What an atomic makes of the old value and its data; None for one that isn't known."""
    if access.pieces > 1:
        return None
    if (known := _FLOATS.get(access.atomic)) is not None:
        return known
    combine = _integer(8 * access.size).get(access.atomic)
    if combine is not None and access.atomic == "cmpswap" and access.space is MemSpace.LDS:
        return lambda old, expected, data: combine(old, data, expected)  # there what is expected comes first
    return combine
