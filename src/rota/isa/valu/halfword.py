"""What 16-bit integer opcodes compute, on single registers and on both halves: tables like that of `integer`.

Most clear the high half of their destination.  Those that came with GFX9 take op_sel and keep the half that they don't
write, as LLVM's `zeroesHigh16BitsOfDest` tells them apart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rota.isa.valu.integer import Function, middle, signed_wide, summed


def _product(a: Any, b: Any) -> Any:  # noqa: ANN401
    return (signed_wide(a) * signed_wide(b)).astype(np.uint16)


def _by(a: Any) -> Any:  # noqa: ANN401
    return a & np.uint16(15)


def _smallest(a: Any, b: Any, c: Any) -> Any:  # noqa: ANN401
    return np.minimum(np.minimum(a, b), c)


def _largest(a: Any, b: Any, c: Any) -> Any:  # noqa: ANN401
    return np.maximum(np.maximum(a, b), c)


_TWO: dict[str, Function] = {
    "add_u16": summed("w", "ww", lambda a, b: a + b),
    "sub_u16": summed("w", "ww", lambda a, b: a - b),
    "mul_lo_u16": Function("w", "ww", _product),
    "lshlrev_b16": Function("w", "ww", lambda a, b: b << _by(a)),
    "lshrrev_b16": Function("w", "ww", lambda a, b: b >> _by(a)),
    "ashrrev_i16": Function("s", "ws", lambda a, b: b >> _by(a).astype(np.int16)),
    "max_u16": Function("w", "ww", np.maximum),
    "max_i16": Function("s", "ss", np.maximum),
    "min_u16": Function("w", "ww", np.minimum),
    "min_i16": Function("s", "ss", np.minimum),
}
_NEW: dict[str, Function] = {
    "add_i16": summed("s", "ss", lambda a, b: a + b, halves=True),
    "sub_i16": summed("s", "ss", lambda a, b: a - b, halves=True),
    "mad_u16": summed("w", "www", lambda a, b, c: a * b + c, halves=True),
    "mad_i16": summed("s", "sss", lambda a, b, c: a * b + c, halves=True),
}
HALFWORD: dict[str, Function] = {
    **{f"v_{name}": function for name, function in {**_TWO, **_NEW}.items()},
    "v_subrev_u16": summed("w", "ww", lambda a, b: b - a),
    "v_mad_legacy_u16": summed("w", "www", lambda a, b, c: a * b + c),
    "v_mad_legacy_i16": summed("s", "sss", lambda a, b, c: a * b + c),
    "v_mad_u32_u16": summed("u", "wwu", lambda a, b, c: a * b + c),
    "v_mad_i32_i16": summed("i", "ssi", lambda a, b, c: a * b + c),
}
HALFWORD |= {
    f"v_{name}_{kind}16": Function(letter, 3 * letter, compute, halves=True)
    for name, compute in (("min3", _smallest), ("max3", _largest), ("med3", middle))
    for kind, letter in (("u", "w"), ("i", "s"))
}
PACKED_HALFWORD: dict[str, Function] = {f"v_pk_{name}": function for name, function in {**_TWO, **_NEW}.items()}
"""On both halves; the same functions, op_sel and op_sel_hi choose the sources' halves."""


def dot(a: Any, b: Any, *, count: int, signed: bool) -> Any:  # noqa: ANN401
    """The sum of products of the `count` parts of two registers, as int64."""
    bits = 32 // count
    total = np.int64(0)
    for place in range(count):
        one, two = (_part(each, place * bits, bits, signed=signed) for each in (a, b))
        total = total + one * two
    return total


def _part(a: Any, first: int, bits: int, *, signed: bool) -> Any:  # noqa: ANN401
    value = signed_wide(a) >> first & ((1 << bits) - 1)
    return (value ^ 1 << bits - 1) - (1 << bits - 1) if signed else value


def _dotted(count: int, *, signed: bool) -> Function:
    def exact(a: Any, b: Any, c: Any) -> Any:  # noqa: ANN401
        return dot(a, b, count=count, signed=signed) + signed_wide(c)

    kind: Any = np.int32 if signed else np.uint32
    wrap: Callable[..., Any] = lambda a, b, c: np.asarray(exact(a, b, c)).astype(kind)  # noqa: E731
    return Function("i" if signed else "u", "uui" if signed else "uuu", wrap, exact=exact)


DOT: dict[str, Function] = {
    "v_dot2_i32_i16": _dotted(2, signed=True),
    "v_dot2_u32_u16": _dotted(2, signed=False),
    "v_dot4_i32_i8": _dotted(4, signed=True),
    "v_dot4_u32_u8": _dotted(4, signed=False),
    "v_dot8_i32_i4": _dotted(8, signed=True),
    "v_dot8_u32_u4": _dotted(8, signed=False),
}
"""Dot products of integers; their sum clamps if asked to."""
