"""Floats of 4 to 16 bits: takes exact values, gives their codes and back.

A format is sign, exponent and mantissa with gradual underflow.  What its top codes mean differs, and so does what
becomes of a number that it can't hold: infinity, NaN, or the largest number (6 and 4 bits have nothing else).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rota.targets.architecture import Float8


class MiniFloat(NamedTuple):
    """A format: `lowest` is the exponent of its smallest normal number, `largest` the code of its largest number.

    `over` is the code of what is too large and `nan` that of NaN, both without the sign; `one_nan` formats have neither
    a negative zero nor a sign on NaN.
    """

    exponent: int
    mantissa: int
    lowest: int
    largest: int
    over: int
    nan: int
    one_nan: bool = False

    @property
    def bits(self) -> int:
        """How many bits a code has."""
        return 1 + self.exponent + self.mantissa


F16 = MiniFloat(5, 10, -14, 0x7BFF, 0x7C00, 0x7E00)
BF16 = MiniFloat(8, 7, -126, 0x7F7F, 0x7F80, 0x7FC0)
FP6 = MiniFloat(2, 3, 0, 0x1F, 0x1F, 0x1F)
BF6 = MiniFloat(3, 2, -2, 0x1F, 0x1F, 0x1F)
FP4 = MiniFloat(2, 1, 0, 7, 7, 7)
_OCP = {"fp8": MiniFloat(4, 3, -6, 0x7E, 0x7F, 0x7F), "bf8": MiniFloat(5, 2, -14, 0x7B, 0x7C, 0x7E)}
_FNUZ = {
    "fp8": MiniFloat(4, 3, -7, 0x7F, 0x80, 0x80, one_nan=True),
    "bf8": MiniFloat(5, 2, -15, 0x7F, 0x80, 0x80, one_nan=True),
}
_PLAIN = {"f16": F16, "bf16": BF16, "fp6": FP6, "bf6": BF6, "fp4": FP4}


def format_named(name: str, float8: Float8) -> MiniFloat:
    """The format of that name; what 8 bits stand for is the architecture's choice."""
    return {**_PLAIN, **(_OCP if float8 is Float8.OCP else _FNUZ)}[name]


def encode(values: Any, form: MiniFloat, noise: Any = None, noise_bits: int = 0) -> Any:  # noqa: ANN401
    """The codes of float64 values, as uint32: rounded to nearest even, or stochastically.

    Stochastic rounding adds `noise`, so many bits below the last one kept, and truncates; what lies below those bits is
    cut off before.
    """
    exact = np.asarray(values, np.float64)
    size = np.abs(np.where(np.isfinite(exact), exact, 0.0))
    power = np.where(size > 0, np.maximum(np.frexp(size)[1] - 1, form.lowest), form.lowest)
    steps = np.ldexp(size, form.mantissa - power)
    if noise is None:
        whole = np.rint(steps)
    else:
        whole = np.floor((np.floor(np.ldexp(steps, noise_bits)) + noise) * 2.0**-noise_bits)
    code = ((power - form.lowest) << form.mantissa) + whole.astype(np.int64)
    code = np.where((code > form.largest) | np.isinf(exact), form.over, code)
    code = np.where(np.isnan(exact), form.nan, code).astype(np.uint32)
    sign = np.signbit(exact).astype(np.uint32) << np.uint32(form.bits - 1)
    if form.one_nan:
        sign = np.where((code == form.nan) | (code == 0), np.uint32(0), sign)
    return code | sign


def decode_code(codes: Any, form: MiniFloat) -> Any:  # noqa: ANN401
    """The values of codes, as float64."""
    raw = np.asarray(codes).astype(np.int64) & ((1 << form.bits) - 1)
    code = raw & ((1 << form.bits - 1) - 1)
    power, fraction = code >> form.mantissa, code & ((1 << form.mantissa) - 1)
    whole = np.where(power > 0, fraction + (1 << form.mantissa), fraction).astype(np.float64)
    size = np.ldexp(whole, np.maximum(power, 1) - 1 + form.lowest - form.mantissa)
    size = np.where(code > form.largest, np.nan, size)
    if form.over != form.nan:  # there is an infinity
        size = np.where(code == form.over, np.inf, size)
    size = np.where(raw >> (form.bits - 1) == 1, -size, size)
    return np.where(raw == form.nan, np.nan, size) if form.one_nan else size
