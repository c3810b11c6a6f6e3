"""What floating-point VALU opcodes compute: a table like that of `integer`, rounding to nearest even throughout."""

from __future__ import annotations

from typing import Any

import numpy as np

from rota.isa.integer import Function


def _fma(a: Any, b: Any, c: Any) -> Any:  # noqa: ANN401
    """A product of two float32 is exact in float64; the sum there rounds a second time in rare cases, by an ulp."""
    return (np.asarray(a, np.float64) * np.asarray(b, np.float64) + np.asarray(c, np.float64)).astype(np.float32)


def _bf16(a: Any) -> Any:  # noqa: ANN401
    bits = np.asarray(a, np.float32).view(np.uint32)
    rounded = bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))
    return np.where(np.isnan(a), bits >> np.uint32(16) | np.uint32(0x40), rounded >> np.uint32(16))


def _pack_bf16(a: Any, b: Any) -> Any:  # noqa: ANN401
    return _bf16(a) | _bf16(b) << np.uint32(16)


def _half(a: Any) -> Any:  # noqa: ANN401
    return np.asarray(a).astype(np.float16).view(np.uint16).astype(np.uint32)


def _half_towards_zero(a: Any) -> Any:  # noqa: ANN401
    nearest = np.asarray(a).astype(np.float16)
    over = np.abs(nearest.astype(np.float64)) > np.abs(np.asarray(a, np.float64))
    return np.where(over, nearest.view(np.uint16) - np.uint16(1), nearest.view(np.uint16)).astype(np.uint32)


def _to_unsigned(a: Any) -> Any:  # noqa: ANN401
    whole = np.trunc(np.nan_to_num(np.asarray(a, np.float64)))
    return np.clip(whole, 0, 2.0**32 - 1).astype(np.uint32)


def _to_signed(a: Any) -> Any:  # noqa: ANN401
    whole = np.trunc(np.nan_to_num(np.asarray(a, np.float64)))
    return np.clip(whole, -(2.0**31), 2.0**31 - 1).astype(np.int32)


FLOATING: dict[str, Function] = {
    "v_add_f32": Function("f", "ff", lambda a, b: a + b),
    "v_sub_f32": Function("f", "ff", lambda a, b: a - b),
    "v_subrev_f32": Function("f", "ff", lambda a, b: b - a),
    "v_mul_f32": Function("f", "ff", lambda a, b: a * b),
    "v_max_f32": Function("f", "ff", np.fmax),
    "v_min_f32": Function("f", "ff", np.fmin),
    "v_fma_f32": Function("f", "fff", _fma),
    "v_max3_f32": Function("f", "fff", lambda a, b, c: np.fmax(np.fmax(a, b), c)),
    "v_exp_f32": Function("f", "f", np.exp2),
    "v_log_f32": Function("f", "f", np.log2),
    "v_rcp_f32": Function("f", "f", lambda a: np.float32(1) / a),
    "v_rcp_iflag_f32": Function("f", "f", lambda a: np.float32(1) / a),
    "v_sqrt_f32": Function("f", "f", np.sqrt),
    "v_cvt_f32_u32": Function("f", "u", lambda a: np.asarray(a).astype(np.float32)),
    "v_cvt_f32_i32": Function("f", "i", lambda a: np.asarray(a).astype(np.float32)),
    "v_cvt_u32_f32": Function("u", "f", _to_unsigned),
    "v_cvt_i32_f32": Function("i", "f", _to_signed),
    "v_cvt_f32_f16": Function("f", "h", lambda a: np.asarray(a).astype(np.float32)),
    "v_cvt_f16_f32": Function("u", "f", _half),
    "v_cvt_pkrtz_f16_f32": Function(
        "u", "ff", lambda a, b: _half_towards_zero(a) | _half_towards_zero(b) << np.uint32(16)
    ),
    "v_cvt_pk_bf16_f32": Function("u", "ff", _pack_bf16),
    "v_cvt_pk_f16_f32": Function("u", "ff", lambda a, b: _half(a) | _half(b) << np.uint32(16)),
    "v_pack_b32_f16": Function("u", "hh", lambda a, b: _half(a) | _half(b) << np.uint32(16)),
}
