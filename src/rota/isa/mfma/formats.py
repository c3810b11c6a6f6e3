"""Number formats of matrix operands: takes registers, gives their elements, in the order in which a lane holds them.

A lane's registers are one string of bits, the first register lowest; an element is the next so many bits.  Elements
come as float64, which holds every value of every format, lane by lane in columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rota.targets.architecture import Float8

Registers = NDArray[np.uint32]
Values = NDArray[np.float64]
Elements = Callable[[Registers], Values]

BITS = {
    "bf16": 16, "f16": 16, "i8": 8, "f32": 32, "xf32": 32, "f64": 64, "fp8": 8, "bf8": 8, "fp6": 6, "bf6": 6, "fp4": 4,
}  # fmt: skip
BY_FIELD = ("fp8", "bf8", "fp6", "bf6", "fp4")
"""Formats by the number that cbsz and blgp of an f8f6f4 instruction hold."""
_XF32_DROPPED = 13  # bits of a float32's fraction that xf32 hasn't


def _by_lane(registers: Registers, dtype: Any) -> NDArray[Any]:  # noqa: ANN401  # any of NumPy's element types
    """Elements of whole bytes, elements by lanes."""
    lanes: NDArray[Any] = np.ascontiguousarray(registers.T).view(dtype)
    return lanes.T


def _plain(dtype: Any) -> Elements:  # noqa: ANN401
    return lambda registers: _by_lane(registers, dtype).astype(np.float64)


def _from_bf16(registers: Registers) -> Values:
    return (_by_lane(registers, np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)


def _from_xf32(registers: Registers) -> Values:
    """Ten bits of fraction; rounded to the nearest even one, since how the rest is dropped isn't published."""
    half, odd = np.uint32((1 << _XF32_DROPPED - 1) - 1), registers >> np.uint32(_XF32_DROPPED) & np.uint32(1)
    rounded = (registers + half + odd) & np.uint32(~((1 << _XF32_DROPPED) - 1) & 0xFFFF_FFFF)
    special = registers & np.uint32(0x7F80_0000) == np.uint32(0x7F80_0000)
    return np.where(special, registers, rounded).astype(np.uint32).view(np.float32).astype(np.float64)


def _from_table(table: NDArray[np.float64]) -> Elements:
    return lambda registers: table[_by_lane(registers, np.uint8)]


def _from_bits(bits: int, table: NDArray[np.float64]) -> Elements:
    """Elements that don't fill bytes."""

    def elements(registers: Registers) -> Values:
        string = np.unpackbits(_by_lane(registers, np.uint8), axis=0, bitorder="little")
        codes = string.reshape(-1, bits, string.shape[1]).astype(np.int64)
        numbers: NDArray[np.int64] = (codes << np.arange(bits)[:, None]).sum(axis=1)
        return table[numbers]

    return elements


def small_float_table(*, exponent: int, mantissa: int, bias: int) -> NDArray[np.float64]:
    """The values of a float of 6 or 4 bits (OCP microscaling formats specification): no infinities, no NaN."""
    values = []
    for code in range(1 << (1 + exponent + mantissa)):
        power, fraction = code >> mantissa & ((1 << exponent) - 1), code & ((1 << mantissa) - 1)
        value = 2.0 ** (max(power, 1) - bias - mantissa) * (fraction + (1 << mantissa) * (power > 0))
        values.append(-value if code >> (exponent + mantissa) else value)
    return np.array(values, np.float64)


def float8_table(*, exponent: int, bias: int, fnuz: bool) -> NDArray[np.float32]:
    """The 256 values of an 8-bit float (OCP 8-bit floating point specification; FNUZ as in the CDNA3 ISA).

    OCP's e5m2 has infinities and NaNs as IEEE does, e4m3 only the NaN with all bits set; FNUZ has neither negative zero
    nor infinity, and one NaN: 0x80.
    """
    mantissa = 7 - exponent
    values = []
    for code in range(256):
        sign = -1.0 if code & 0x80 else 1.0
        power, fraction = code >> mantissa & ((1 << exponent) - 1), code & ((1 << mantissa) - 1)
        scale = 2.0 ** (max(power, 1) - bias - mantissa)
        value = sign * scale * (fraction + (1 << mantissa) * (power > 0))
        if fnuz:
            value = float("nan") if code == 0x80 else value
        elif exponent == 5 and power == 31:
            value = sign * float("inf") if fraction == 0 else float("nan")
        elif exponent == 4 and code & 0x7F == 0x7F:
            value = float("nan")
        values.append(value)
    return np.array(values, np.float32)


def _float8(*, exponent: int, bias: int, fnuz: bool) -> Elements:
    return _from_table(float8_table(exponent=exponent, bias=bias, fnuz=fnuz).astype(np.float64))


_FLOAT8 = {
    Float8.OCP: {
        "fp8": _float8(exponent=4, bias=7, fnuz=False),
        "bf8": _float8(exponent=5, bias=15, fnuz=False),
    },
    Float8.FNUZ: {
        "fp8": _float8(exponent=4, bias=8, fnuz=True),
        "bf8": _float8(exponent=5, bias=16, fnuz=True),
    },
}
_COMMON: dict[str, Elements] = {
    "bf16": _from_bf16,
    "f16": _plain(np.float16),
    "i8": _plain(np.int8),
    "f32": _plain(np.float32),
    "xf32": _from_xf32,
    "f64": _plain(np.float64),
    "fp6": _from_bits(6, small_float_table(exponent=2, mantissa=3, bias=1)),
    "bf6": _from_bits(6, small_float_table(exponent=3, mantissa=2, bias=3)),
    "fp4": _from_bits(4, small_float_table(exponent=2, mantissa=1, bias=1)),
}


def elements_of(name: str, float8: Float8) -> Elements:
    """The reader of a format; what 8-bit floats mean is the architecture's choice."""
    return {**_COMMON, **_FLOAT8[float8]}[name]


def scale_values(registers: Registers, byte: int) -> Values:
    """Powers of two from one byte of a register (OCP's E8M0: biased by 127, 255 is NaN), one a lane."""
    codes = (registers >> np.uint32(8 * byte) & np.uint32(0xFF)).astype(np.int64)
    return np.where(codes == 0xFF, np.nan, np.ldexp(1.0, codes - 127))
