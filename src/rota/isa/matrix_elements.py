"""Elements of the matrices that matrix instructions multiply, as float64, and their product.

MFMA and WMMA share the formats, sparse factors, and a sum without BLAS. Arrays have as many columns as a wave lanes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rota.isa.valu.convert import float_values
from rota.targets.architecture import Float8

# Elements of operands. A lane's registers are one string of bits, the first register lowest, and elements follow each
# other in it. They become float64, which holds every value of every format, with a column per lane.

Registers = NDArray[np.uint32]
Values = NDArray[np.float64]
Elements = Callable[[Registers], Values]

BITS = {
    "bf16": 16, "f16": 16, "i8": 8, "u8": 8, "f32": 32, "xf32": 32, "f64": 64, "fp8": 8, "bf8": 8, "fp6": 6, "bf6": 6,
    "fp4": 4,
}  # fmt: skip
BY_FIELD = ("fp8", "bf8", "fp6", "bf6", "fp4")  # formats by the number that cbsz and blgp of an f8f6f4 instruction hold
_XF32_DROPPED = 13  # bits of a float32's fraction that xf32 hasn't


def _by_lane(registers: Registers, dtype: Any) -> NDArray[Any]:  # noqa: ANN401  # any of NumPy's element types
    lanes: NDArray[Any] = np.ascontiguousarray(registers.T).view(dtype)
    return lanes.T


def _plain(dtype: Any) -> Elements:  # noqa: ANN401
    return lambda registers: _by_lane(registers, dtype).astype(np.float64)


def _from_xf32(registers: Registers) -> Values:
    """Ten bits of fraction, rounded to nearest even: how hardware drops the rest isn't published."""
    half, odd = np.uint32((1 << _XF32_DROPPED - 1) - 1), registers >> np.uint32(_XF32_DROPPED) & np.uint32(1)
    rounded = (registers + half + odd) & np.uint32(~((1 << _XF32_DROPPED) - 1) & 0xFFFF_FFFF)
    special = registers & np.uint32(0x7F80_0000) == np.uint32(0x7F80_0000)
    return np.where(special, registers, rounded).astype(np.uint32).view(np.float32).astype(np.float64)


def _from_bits(bits: int, table: NDArray[np.float64]) -> Elements:
    def elements(registers: Registers) -> Values:
        if bits == 8:
            whole: Values = table[_by_lane(registers, np.uint8)]
            return whole
        string = np.unpackbits(_by_lane(registers, np.uint8), axis=0, bitorder="little")
        codes = string.reshape(-1, bits, string.shape[1]).astype(np.int64)
        numbers: NDArray[np.int64] = (codes << np.arange(bits)[:, None]).sum(axis=1)
        return table[numbers]

    return elements


_FLOAT8 = {float8: {name: _from_bits(8, float_values(name, float8)) for name in ("fp8", "bf8")} for float8 in Float8}
_COMMON: dict[str, Elements] = {
    "bf16": lambda registers: (
        (_by_lane(registers, np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    ),
    "f16": _plain(np.float16),
    "i8": _plain(np.int8),
    "u8": _plain(np.uint8),
    "f32": _plain(np.float32),
    "xf32": _from_xf32,
    "f64": _plain(np.float64),
    **{name: _from_bits(BITS[name], float_values(name, Float8.OCP)) for name in ("fp6", "bf6", "fp4")},
}


def elements_of(name: str, float8: Float8) -> Elements:
    return {**_COMMON, **_FLOAT8[float8]}[name]


def decompress(elements: Values, index: NDArray[np.uint32], start: int) -> Values:
    """Expands two of four elements to all of K: two bits of the index, from bit `start` on, place each."""
    count = len(elements)
    lanes = np.arange(elements.shape[1])
    whole = np.zeros((2 * count, len(lanes)))
    for item in range(count):
        place = (index >> np.uint32(start + 2 * item) & np.uint32(3)).astype(np.int64)
        whole[4 * (item // 2) + place, lanes] += elements[item]
    return whole


def multiply(left: Values, right: Values) -> Values:
    """Adds one product after the other as the native core does, so that no BLAS decides the last bit."""
    total = np.zeros((len(left), left.shape[1], right.shape[1]))
    for k in range(left.shape[2]):
        total += left[:, :, k, None] * right[:, None, :, k]
    return total
