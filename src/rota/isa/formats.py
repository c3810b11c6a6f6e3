"""Number formats of matrix operands: takes registers, gives their elements as float32 or int32, K by lanes.

Which k an element belongs to follows from its register and its half or byte.  The order of k in the result differs from
the machine's, in the same way for both operands: a sum over k doesn't depend on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rota.targets.architecture import Float8

Registers = NDArray[np.uint32]
Elements = Callable[[Registers], NDArray[Any]]


def _from_bf16(registers: Registers) -> NDArray[np.float32]:
    out = np.empty((2, *registers.shape), np.uint32)
    np.left_shift(registers, 16, out=out[0])
    np.bitwise_and(registers, np.uint32(0xFFFF0000), out=out[1])
    return out.view(np.float32)


def _from_f16(registers: Registers) -> NDArray[np.float32]:
    out = np.empty((2, *registers.shape), np.float32)
    halves = registers.view(np.uint16).reshape(*registers.shape, 2).view(np.float16)
    out[0], out[1] = halves[..., 0], halves[..., 1]
    return out


def _from_table(table: NDArray[np.float32]) -> Elements:
    def elements(registers: Registers) -> NDArray[np.float32]:
        octets = registers.view(np.uint8).reshape(*registers.shape, 4)
        return np.ascontiguousarray(np.moveaxis(table[octets], -1, 0))

    return elements


def _from_i8(registers: Registers) -> NDArray[np.int32]:
    octets = registers.view(np.int8).reshape(*registers.shape, 4)
    return np.ascontiguousarray(np.moveaxis(octets, -1, 0)).astype(np.int32)


def _from_f32(registers: Registers) -> NDArray[np.float32]:
    return registers.view(np.float32)


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


_OCP = {
    "fp8": _from_table(float8_table(exponent=4, bias=7, fnuz=False)),
    "bf8": _from_table(float8_table(exponent=5, bias=15, fnuz=False)),
}
_FNUZ = {
    "fp8": _from_table(float8_table(exponent=4, bias=8, fnuz=True)),
    "bf8": _from_table(float8_table(exponent=5, bias=16, fnuz=True)),
}
_FLOAT8 = {Float8.OCP: _OCP, Float8.FNUZ: _FNUZ}
_COMMON: dict[str, Elements] = {"bf16": _from_bf16, "f16": _from_f16, "i8": _from_i8, "f32": _from_f32}
BITS = {"bf16": 16, "f16": 16, "i8": 8, "f32": 32, "fp8": 8, "bf8": 8}


def elements_of(name: str, float8: Float8) -> Elements:
    """The reader of a format; what 8-bit floats mean is the architecture's choice."""
    return {**_COMMON, **_FLOAT8[float8]}[name]
