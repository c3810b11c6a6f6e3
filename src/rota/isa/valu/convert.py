"""Conversions between number formats: a table like that of `integer`, and those that write a part of a register.

Integers saturate and a NaN becomes zero.  Codes of 8 bits and below are those of `minifloat`; out of range they become
what the format has for it, because MODE's FP16_OVFL is not set.  Stochastic rounding adds the random number's high
bits right below the last bit kept and truncates, as AMD's host emulation does (amd_hip_ocp_host.hpp); the pseudocode in
the ISA, which lets the mantissa wrap and rounds once more, contradicts that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rota.isa.valu.integer import Function
from rota.isa.valu.minifloat import MiniFloat, decode_code, encode, format_named
from rota.targets.architecture import Float8


def _to_integer(low: float, high: float, kind: Any, whole: Callable[[Any], Any] = np.trunc) -> Callable[[Any], Any]:  # noqa: ANN401
    def compute(a: Any) -> Any:  # noqa: ANN401
        value = whole(np.asarray(a, np.float64))
        return np.clip(np.where(np.isnan(value), 0, value), low, high).astype(np.int64).astype(kind)

    return compute


def _nearest_half(a: Any) -> Any:  # noqa: ANN401
    """Rounded to nearest even; a NaN becomes a quiet one, which a cast of NumPy's leaves signalling."""
    half = np.asarray(a).astype(np.float16)
    return (half.view(np.uint16) | np.where(np.isnan(half), np.uint16(0x200), np.uint16(0))).view(np.float16)


def _half(a: Any) -> Any:  # noqa: ANN401
    return _nearest_half(a).view(np.uint16).astype(np.uint32)


def _half_towards_zero(a: Any) -> Any:  # noqa: ANN401
    """The largest half that is not larger; a finite number that is too large stays finite."""
    nearest = _nearest_half(a)
    over = np.abs(nearest.astype(np.float64)) > np.abs(np.asarray(a, np.float64))
    return np.where(over, nearest.view(np.uint16) - np.uint16(1), nearest.view(np.uint16)).astype(np.uint32)


def _both(convert: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: convert(a) | convert(b) << np.uint32(16)


def _bf16(a: Any) -> Any:  # noqa: ANN401
    bits = np.asarray(a, np.float32).view(np.uint32)
    rounded = bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))
    return np.where(np.isnan(a), bits >> np.uint32(16) | np.uint32(0x40), rounded >> np.uint32(16))


def _byte_of(a: Any, place: int) -> Any:  # noqa: ANN401
    return (np.asarray(a) >> np.uint32(8 * place) & np.uint32(0xFF)).astype(np.float32)


def _ubyte(place: int) -> Function:
    return Function("f", "u", lambda a: _byte_of(a, place))


def _insert_byte(a: Any, b: Any, c: Any) -> Any:  # noqa: ANN401
    """Rounds to nearest even: measured by a third party (shadPS4), the ISA doesn't say it."""
    shift = (np.asarray(b) & np.uint32(3)) * np.uint32(8)
    value = np.asarray(_to_integer(0, 255, np.uint32, np.rint)(a))
    return c & ~(np.uint32(0xFF) << shift) | value << shift


def _undefined_above(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What becomes of the high half no source says, LLVM included, so that it is what undefined registers hold."""
    return lambda a: convert(a) | np.uint32(0xFFFF_0000)


_I32, _U32 = (-(2.0**31), 2.0**31 - 1, np.int32), (0.0, 2.0**32 - 1, np.uint32)
CONVERSIONS: dict[str, Function] = {
    "v_cvt_f32_u32": Function("f", "u", lambda a: np.asarray(a).astype(np.float32)),
    "v_cvt_f32_i32": Function("f", "i", lambda a: np.asarray(a).astype(np.float32)),
    "v_cvt_f64_u32": Function("d", "u", lambda a: np.asarray(a).astype(np.float64)),
    "v_cvt_f64_i32": Function("d", "i", lambda a: np.asarray(a).astype(np.float64)),
    "v_cvt_u32_f32": Function("u", "f", _to_integer(*_U32)),
    "v_cvt_i32_f32": Function("i", "f", _to_integer(*_I32)),
    "v_cvt_u32_f64": Function("u", "d", _to_integer(*_U32)),
    "v_cvt_i32_f64": Function("i", "d", _to_integer(*_I32)),
    "v_cvt_flr_i32_f32": Function("i", "f", _to_integer(*_I32, np.floor)),
    "v_cvt_f32_f64": Function("f", "d", lambda a: np.asarray(a).astype(np.float32)),
    "v_cvt_f64_f32": Function("d", "f", lambda a: np.asarray(a).astype(np.float64)),
    "v_cvt_f32_f16": Function("f", "h", lambda a: np.asarray(a).astype(np.float32)),
    "v_cvt_f16_f32": Function("h", "f", _nearest_half),
    "v_cvt_f16_u16": Function("h", "w", lambda a: np.asarray(a).astype(np.float16)),
    "v_cvt_f16_i16": Function("h", "s", lambda a: np.asarray(a).astype(np.float16)),
    "v_cvt_u16_f16": Function("u", "h", _undefined_above(_to_integer(0.0, 2.0**16 - 1, np.uint32))),
    "v_cvt_i16_f16": Function("u", "h", _undefined_above(_to_integer(-(2.0**15), 2.0**15 - 1, np.uint32))),
    "v_cvt_f32_bf16": Function("f", "w", lambda a: (np.asarray(a).astype(np.uint32) << np.uint32(16)).view(np.float32)),
    "v_cvt_off_f32_i4": Function("f", "u", lambda a: ((_low4(a) ^ 8) - 8).astype(np.float32) / np.float32(16)),
    **{f"v_cvt_f32_ubyte{place}": _ubyte(place) for place in range(4)},
    "v_cvt_pkrtz_f16_f32": Function("u", "ff", _both(_half_towards_zero)),
    "v_cvt_pk_bf16_f32": Function("u", "ff", _both(_bf16)),
    "v_cvt_pk_f16_f32": Function("u", "ff", _both(_half)),
    "v_pack_b32_f16": Function("u", "hh", _both(lambda a: np.asarray(a).view(np.uint16).astype(np.uint32))),
    "v_cvt_pk_u8_f32": Function("u", "fuu", _insert_byte),
}


def _low4(a: Any) -> Any:  # noqa: ANN401
    return np.asarray(a).astype(np.int64) & 15


class Placed:
    """A conversion whose result is so many bits, put where op_sel says; the rest of the destination stays."""

    __slots__ = ("bits", "compute", "sources")

    def __init__(self, bits: int, sources: str, compute: Callable[..., Any]) -> None:
        self.bits, self.sources, self.compute = bits, sources, compute


def _pair(form: MiniFloat) -> Placed:
    return Placed(16, "ff", lambda a, b: encode(a, form) | encode(b, form) << np.uint32(form.bits))


def _noisy(form: MiniFloat) -> Placed:
    """Stochastic: the high bits of the second source are added below the last bit kept."""
    spare = 23 - form.mantissa
    return Placed(form.bits, "fu", lambda a, b: encode(a, form, noise(b, spare), spare))


def noise(bits: Any, count: int) -> Any:  # noqa: ANN401
    """The high bits of a random number."""
    return (np.asarray(bits) >> np.uint32(32 - count)).astype(np.int64)


def placed_conversions(float8: Float8) -> dict[str, Placed]:
    """The conversions to 8 and 16 bits that write a part of a register."""
    table = {}
    for name in ("fp8", "bf8"):
        form = format_named(name, float8)
        table[f"v_cvt_pk_{name}_f32"] = _pair(form)
        table[f"v_cvt_sr_{name}_f32"] = _noisy(form)
    for name in ("f16", "bf16"):
        table[f"v_cvt_sr_{name}_f32"] = _noisy(format_named(name, float8))
    return table


def float8_readers(float8: Float8) -> dict[str, Function]:
    """The conversions from 8 bits; SDWA chooses the byte, or the two of them."""
    table = {}
    for name in ("fp8", "bf8"):
        form = format_named(name, float8)
        table[f"v_cvt_f32_{name}"] = Function("f", "u", _one_of(form))
        table[f"v_cvt_pk_f32_{name}"] = Function("U", "u", _two_of(form))
    return table


def _one_of(form: MiniFloat) -> Callable[[Any], Any]:
    return lambda a: decode_code(np.asarray(a) & np.uint32(0xFF), form).astype(np.float32)


def _two_of(form: MiniFloat) -> Callable[[Any], Any]:
    def compute(a: Any) -> Any:  # noqa: ANN401
        one, two = (_one_of(form)(np.asarray(a) >> np.uint32(shift)).view(np.uint32) for shift in (0, 8))
        return one.astype(np.uint64) | two.astype(np.uint64) << np.uint64(32)

    return compute
