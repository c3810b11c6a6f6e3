"""What integer VALU opcodes compute: a table from opcode to operand kinds and a function of arrays.

The semantics are those of the CDNA3 ISA, "VALU Instructions"; the kinds are the letters of `operand.reader`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rota.isa.disassembly import Instruction
from rota.isa.wave.operand import unknown
from rota.isa.wave.wave import Wave


class Function(NamedTuple):
    """A pure VALU function: the kinds of its result and sources, and what it computes.

    `plain` replaces `compute` with MODE's IEEE bit off. `exact` gives the integer before it is cut to the result's
    kind, for the clamp modifier. With `halves`, op_sel chooses halves of the registers and keeps the other half of the
    destination.
    """

    result: str
    sources: str
    compute: Callable[..., Any]
    plain: Callable[..., Any] | None = None
    exact: Callable[..., Any] | None = None
    halves: bool = False


def signed_wide(a: Any) -> Any:  # noqa: ANN401
    """Integers of any kind as int64, by value."""
    return np.asarray(a).astype(np.int64)


def cut(kind: Any, exact: Callable[..., Any]) -> Callable[..., Any]:  # noqa: ANN401
    return lambda *sources: np.asarray(exact(*sources)).astype(kind)


_KINDS: dict[str, Any] = {"u": np.uint32, "i": np.int32, "w": np.uint16, "s": np.int16}


def sum_function(result: str, sources: str, exact: Callable[..., Any], *, halves: bool = False) -> Function:
    """A function that may clamp; of unsigned 32-bit kinds only, `exact` computes the wrapped result too."""
    function = wide_sum_function(result, sources, exact, halves=halves)
    return function._replace(compute=exact) if set(result + sources) == {"u"} else function


def wide_sum_function(result: str, sources: str, exact: Callable[..., Any], *, halves: bool = False) -> Function:
    """A function that may clamp: `exact` takes int64 and gives int64."""

    def widened(*values: Any) -> Any:  # noqa: ANN401
        return exact(*(signed_wide(value) for value in values))

    return Function(result, sources, cut(_KINDS[result], widened), exact=widened, halves=halves)


def _low(a: Any, bits: int) -> Any:  # noqa: ANN401
    return a & np.uint32((1 << bits) - 1)


def _signed24(a: Any) -> Any:  # noqa: ANN401
    return a << np.int32(8) >> np.int32(8)


def _field(a: Any, b: Any, c: Any) -> Any:  # noqa: ANN401
    return a >> _low(b, 5) & ((np.uint32(1) << _low(c, 5)) - np.uint32(1))


def _signed_field(a: Any, b: Any, c: Any) -> Any:  # noqa: ANN401
    size = _low(c, 5)
    value = _field(a, b, c)
    sign = np.where(size > 0, np.uint32(1) << (np.maximum(size, np.uint32(1)) - np.uint32(1)), np.uint32(0))
    return (value ^ sign) - sign


def _wide(a: Any) -> Any:  # noqa: ANN401
    return np.asarray(a).astype(np.uint64)


def _narrow(a: Any) -> Any:  # noqa: ANN401
    return np.asarray(a).astype(np.uint32)


def _first_set(a: Any) -> Any:  # noqa: ANN401
    places = 32 - np.frexp(np.asarray(a).astype(np.float64))[1]
    return np.where(np.asarray(a) == 0, np.uint32(0xFFFF_FFFF), places.astype(np.uint32))


def octets(a: Any) -> Any:  # noqa: ANN401
    """The four bytes of each number, lowest first, in a new last axis."""
    return np.ascontiguousarray(a, np.uint32).reshape(-1, 1).view(np.uint8).astype(np.int64)


def _differences(a: Any, b: Any, *, masked: bool = False) -> Any:  # noqa: ANN401
    first, second = octets(a), octets(b)
    distance = np.abs(first - second)
    return (np.where(second == 0, 0, distance) if masked else distance).sum(axis=1)


def _averages(a: Any, b: Any, c: Any) -> Any:  # noqa: ANN401
    mean = (octets(a) + octets(b) + (octets(c) & 1)) >> 1
    return (mean << np.arange(0, 32, 8)).sum(axis=1).astype(np.uint32)


def _half_differences(a: Any, b: Any) -> Any:  # noqa: ANN401
    low, high = np.uint32(0xFFFF), np.uint32(16)
    return np.abs(signed_wide(a & low) - signed_wide(b & low)) + np.abs(signed_wide(a >> high) - signed_wide(b >> high))


def middle(a: Any, b: Any, c: Any) -> Any:  # noqa: ANN401
    return np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))


def two_halves(low: Any, high: Any) -> Any:  # noqa: ANN401
    return np.asarray(low).astype(np.uint32) & np.uint32(0xFFFF) | np.asarray(high).astype(np.uint32) << np.uint32(16)


def _shift_bytes(low: int, high: int) -> Callable[..., Any]:
    def compute(a: Any, b: Any, c: Any) -> Any:  # noqa: ANN401
        first, second = (
            np.clip(each >> _low(c, 5).astype(np.int32), low, high).astype(np.int64) & 0xFF for each in (a, b)
        )
        return (first | second << 8).astype(np.uint16)

    return compute


def _saturate_bytes(a: Any) -> Any:  # noqa: ANN401
    low, high = (np.asarray(each).astype(np.uint16).view(np.int16) for each in (a, a >> np.uint32(16)))
    return np.clip(low, 0, 255).astype(np.uint16) | np.clip(high, 0, 255).astype(np.uint16) << np.uint16(8)


def _align(a: Any, b: Any, shift: Any) -> Any:  # noqa: ANN401
    return _narrow((_wide(a) << np.uint64(32) | _wide(b)) >> _wide(shift))


def _permute(a: Any, b: Any, selector: Any) -> Any:  # noqa: ANN401
    """Any four of the eight bytes of a (4 to 7) and b (0 to 3); 8 to 11 give signs, 12 zero, more all ones."""
    both = _wide(a) << np.uint64(32) | _wide(b)
    out = np.uint32(0)
    for place in range(4):
        chosen = np.asarray(selector) >> np.uint32(8 * place) & np.uint32(0xFF)
        octet = both >> (_wide(chosen & np.uint32(7)) * np.uint64(8)) & np.uint64(0xFF)
        signs = both >> (_wide(chosen & np.uint32(3)) * np.uint64(16) + np.uint64(15)) & np.uint64(1)
        octet = np.where(chosen < 8, octet, np.where(chosen < 12, signs * np.uint64(0xFF), np.uint64(0xFF)))
        octet = np.where(chosen == 12, np.uint64(0), octet)
        out = out | _narrow(octet) << np.uint32(8 * place)
    return out


def population(a: Any) -> Any:  # noqa: ANN401
    bits = np.unpackbits(np.ascontiguousarray(a, np.uint32).reshape(-1, 1).view(np.uint8), axis=1)
    return bits.sum(axis=1, dtype=np.uint32)


def _reverse_bits(a: Any) -> Any:  # noqa: ANN401
    octets = np.unpackbits(np.asarray(a).reshape(-1, 1).view(np.uint8), axis=1)
    return np.packbits(octets, axis=1, bitorder="little")[:, ::-1].copy().view(np.uint32)[:, 0]


_WIDE32 = np.uint64(32)
_MOVES = ("v_mov_b32", "v_accvgpr_read_b32", "v_accvgpr_write_b32", "v_accvgpr_mov_b32")
_OF_THREE: dict[str, Callable[..., Any]] = {
    "min3": lambda a, b, c: np.minimum(np.minimum(a, b), c),
    "max3": lambda a, b, c: np.maximum(np.maximum(a, b), c),
    "med3": middle,
    "minmax": lambda a, b, c: np.maximum(np.minimum(a, b), c),
    "maxmin": lambda a, b, c: np.minimum(np.maximum(a, b), c),
}
INTEGER: dict[str, Function] = {
    **dict.fromkeys(_MOVES, Function("u", "u", lambda a: a)),
    "v_mov_b64": Function("U", "U", lambda a: a),
    "v_not_b32": Function("u", "u", lambda a: ~a),
    "v_bfrev_b32": Function("u", "u", _reverse_bits),
    "v_bcnt_u32_b32": Function("u", "uu", lambda a, b: population(a) + b),
    "v_ffbh_u32": Function("u", "u", _first_set),
    "v_ffbl_b32": Function(
        "u", "u", lambda a: np.where(a == 0, ~np.uint32(0), np.uint32(31) - _first_set(a & (~a + np.uint32(1))))
    ),
    "v_ffbh_i32": Function("u", "i", lambda a: _first_set(np.where(a < 0, ~a, a).view(np.uint32))),
    "v_prng_b32": Function("u", "u", lambda a: (a << np.uint32(1)) ^ (a >> np.uint32(31)) * np.uint32(197)),
    "v_sat_pk_u8_i16": Function("w", "u", _saturate_bytes),
    "v_add_u32": sum_function("u", "uu", lambda a, b: a + b),
    "v_sub_u32": sum_function("u", "uu", lambda a, b: a - b),
    "v_subrev_u32": sum_function("u", "uu", lambda a, b: b - a),
    "v_add_i32": sum_function("i", "ii", lambda a, b: a + b),
    "v_sub_i32": sum_function("i", "ii", lambda a, b: a - b),
    "v_bfm_b32": Function("u", "uu", lambda a, b: ((np.uint32(1) << _low(a, 5)) - np.uint32(1)) << _low(b, 5)),
    "v_cvt_pk_u16_u32": Function(
        "u", "uu", lambda a, b: two_halves(np.minimum(a, np.uint32(0xFFFF)), np.minimum(b, np.uint32(0xFFFF)))
    ),
    "v_cvt_pk_i16_i32": Function(
        "u", "ii", lambda a, b: two_halves(np.clip(a, -(2**15), 2**15 - 1), np.clip(b, -(2**15), 2**15 - 1))
    ),
    "v_mul_lo_u32": Function("u", "uu", lambda a, b: a * b),
    "v_mad_u32": wide_sum_function("u", "uuu", lambda a, b, c: a * b + c),
    "v_add_nc_u64": Function("U", "UU", lambda a, b: a + b),
    "v_sub_nc_u64": Function("U", "UU", lambda a, b: a - b),
    "v_mul_u64": Function("U", "UU", lambda a, b: a * b),
    "v_mad_nc_u64_u32": Function("U", "uuU", lambda a, b, c: _wide(a) * _wide(b) + c),
    "v_mad_nc_i64_i32": Function("I", "iiI", lambda a, b, c: signed_wide(a) * signed_wide(b) + c),
    **{f"v_{name}_u64": Function("U", "UU", pick) for name, pick in (("min", np.minimum), ("max", np.maximum))},
    **{f"v_{name}_i64": Function("I", "II", pick) for name, pick in (("min", np.minimum), ("max", np.maximum))},
    "v_mul_hi_u32": Function("u", "uu", lambda a, b: _narrow(_wide(a) * _wide(b) >> np.uint64(32))),
    "v_mul_hi_i32": Function("u", "ii", lambda a, b: _narrow(signed_wide(a) * signed_wide(b) >> np.int64(32))),
    "v_mul_u32_u24": Function("u", "uu", lambda a, b: _low(a, 24) * _low(b, 24)),
    "v_mul_i32_i24": Function("i", "ii", lambda a, b: _signed24(a) * _signed24(b)),
    "v_mul_hi_u32_u24": Function("u", "uu", lambda a, b: _narrow(_wide(_low(a, 24)) * _wide(_low(b, 24)) >> _WIDE32)),
    "v_mul_hi_i32_i24": Function(
        "u", "ii", lambda a, b: _narrow(signed_wide(_signed24(a)) * signed_wide(_signed24(b)) >> np.int64(32))
    ),
    "v_mad_u32_u24": wide_sum_function("u", "uuu", lambda a, b, c: (a & 0xFFFFFF) * (b & 0xFFFFFF) + c),
    "v_mad_i32_i24": wide_sum_function("i", "iii", lambda a, b, c: (a << 40 >> 40) * (b << 40 >> 40) + c),
    **{f"v_{name}_{kind}32": Function(kind, 3 * kind, compute) for name, compute in _OF_THREE.items() for kind in "ui"},
    "v_sad_u8": wide_sum_function("u", "uuu", lambda a, b, c: _differences(a, b) + c),
    "v_sad_hi_u8": Function("u", "uuu", lambda a, b, c: (_differences(a, b) << 16).astype(np.uint32) + c),
    "v_msad_u8": wide_sum_function("u", "uuu", lambda a, b, c: _differences(a, b, masked=True) + c),
    "v_sad_u16": Function("u", "uuu", lambda a, b, c: _half_differences(a, b).astype(np.uint32) + c),
    "v_sad_u32": wide_sum_function("u", "uuu", lambda a, b, c: np.abs(a - b) + c),
    "v_lerp_u8": Function("u", "uuu", _averages),
    "v_ashr_pk_i8_i32": Function("w", "iiu", _shift_bytes(-128, 127)),
    "v_ashr_pk_u8_i32": Function("w", "iiu", _shift_bytes(0, 255)),
    "v_lshlrev_b32": Function("u", "uu", lambda a, b: b << _low(a, 5)),
    "v_lshrrev_b32": Function("u", "uu", lambda a, b: b >> _low(a, 5)),
    "v_ashrrev_i32": Function("i", "ui", lambda a, b: b >> _low(a, 5).astype(np.int32)),
    "v_lshlrev_b64": Function("U", "uU", lambda a, b: b << _wide(_low(a, 6))),
    "v_lshrrev_b64": Function("U", "uU", lambda a, b: b >> _wide(_low(a, 6))),
    "v_ashrrev_i64": Function("I", "uI", lambda a, b: b >> signed_wide(_low(a, 6))),
    "v_and_b32": Function("u", "uu", lambda a, b: a & b),
    "v_or_b32": Function("u", "uu", lambda a, b: a | b),
    "v_xor_b32": Function("u", "uu", lambda a, b: a ^ b),
    "v_xnor_b32": Function("u", "uu", lambda a, b: ~(a ^ b)),
    "v_min_u32": Function("u", "uu", np.minimum),
    "v_max_u32": Function("u", "uu", np.maximum),
    "v_min_i32": Function("i", "ii", np.minimum),
    "v_max_i32": Function("i", "ii", np.maximum),
    "v_add3_u32": Function("u", "uuu", lambda a, b, c: a + b + c),
    "v_lshl_add_u32": Function("u", "uuu", lambda a, b, c: (a << _low(b, 5)) + c),
    "v_add_lshl_u32": Function("u", "uuu", lambda a, b, c: (a + b) << _low(c, 5)),
    "v_lshl_or_b32": Function("u", "uuu", lambda a, b, c: a << _low(b, 5) | c),
    "v_and_or_b32": Function("u", "uuu", lambda a, b, c: a & b | c),
    "v_xor3_b32": Function("u", "uuu", lambda a, b, c: a ^ b ^ c),
    "v_or3_b32": Function("u", "uuu", lambda a, b, c: a | b | c),
    "v_xad_u32": Function("u", "uuu", lambda a, b, c: (a ^ b) + c),
    "v_lshl_add_u64": Function("U", "UuU", lambda a, b, c: (a << _wide(_low(b, 3))) + c),
    "v_bfe_u32": Function("u", "uuu", _field),
    "v_bfe_i32": Function("u", "uuu", _signed_field),
    "v_bfi_b32": Function("u", "uuu", lambda a, b, c: a & b | ~a & c),
    "v_alignbit_b32": Function("u", "uuu", lambda a, b, c: _align(a, b, _low(c, 5))),
    "v_alignbyte_b32": Function("u", "uuu", lambda a, b, c: _align(a, b, _low(c, 2) * np.uint32(8))),
    "v_perm_b32": Function("u", "uuu", _permute),
}


# 16-bit opcodes, on single registers and on both halves. Most clear the high half of their destination; those new in
# GFX9 take op_sel and keep the half that they don't write (LLVM, `zeroesHigh16BitsOfDest`).


def _by(a: Any) -> Any:  # noqa: ANN401
    return a & np.uint16(15)


_TWO: dict[str, Function] = {
    "add_u16": sum_function("w", "ww", lambda a, b: a + b),
    "sub_u16": sum_function("w", "ww", lambda a, b: a - b),
    "mul_lo_u16": Function("w", "ww", lambda a, b: (signed_wide(a) * signed_wide(b)).astype(np.uint16)),
    "lshlrev_b16": Function("w", "ww", lambda a, b: b << _by(a)),
    "lshrrev_b16": Function("w", "ww", lambda a, b: b >> _by(a)),
    "ashrrev_i16": Function("s", "ws", lambda a, b: b >> _by(a).astype(np.int16)),
    "max_u16": Function("w", "ww", np.maximum),
    "max_i16": Function("s", "ss", np.maximum),
    "min_u16": Function("w", "ww", np.minimum),
    "min_i16": Function("s", "ss", np.minimum),
}
_NEW: dict[str, Function] = {
    "add_i16": sum_function("s", "ss", lambda a, b: a + b, halves=True),
    "sub_i16": sum_function("s", "ss", lambda a, b: a - b, halves=True),
    "mad_u16": sum_function("w", "www", lambda a, b, c: a * b + c, halves=True),
    "mad_i16": sum_function("s", "sss", lambda a, b, c: a * b + c, halves=True),
}
HALFWORD: dict[str, Function] = {
    **{f"v_{name}": function for name, function in {**_TWO, **_NEW}.items()},
    "v_subrev_u16": sum_function("w", "ww", lambda a, b: b - a),
    "v_mad_legacy_u16": sum_function("w", "www", lambda a, b, c: a * b + c),
    "v_mad_legacy_i16": sum_function("s", "sss", lambda a, b, c: a * b + c),
    "v_mov_b16": Function("w", "w", lambda a: a),
    "v_not_b16": Function("w", "w", lambda a: ~a),
    "v_and_b16": Function("w", "ww", lambda a, b: a & b),
    "v_or_b16": Function("w", "ww", lambda a, b: a | b),
    "v_xor_b16": Function("w", "ww", lambda a, b: a ^ b),
    "v_cvt_i32_i16": Function("i", "s", lambda a: np.asarray(a).astype(np.int32)),
    "v_cvt_u32_u16": Function("u", "w", lambda a: np.asarray(a).astype(np.uint32)),
    "v_mad_u32_u16": sum_function("u", "wwu", lambda a, b, c: a * b + c),
    "v_mad_i32_i16": sum_function("i", "ssi", lambda a, b, c: a * b + c),
}
HALFWORD |= {
    f"v_{name}_{kind}16": Function(letter, 3 * letter, compute, halves=True)
    for name, compute in _OF_THREE.items()
    for kind, letter in (("u", "w"), ("i", "s"))
}
PACKED_HALFWORD: dict[str, Function] = {f"v_pk_{name}": function for name, function in {**_TWO, **_NEW}.items()}
"""The same functions on both halves; op_sel and op_sel_hi choose the halves of the sources."""


def dot(a: Any, b: Any, *, count: int, signed: bool) -> Any:  # noqa: ANN401
    """The sum of products of the `count` parts of two registers, as int64."""
    bits = 32 // count
    top = 1 << bits - 1 if signed else 0
    total = np.int64(0)
    for place in range(count):
        parts = (signed_wide(each) >> place * bits & ((1 << bits) - 1) for each in (a, b))
        left, right = ((part ^ top) - top for part in parts)
        total = total + left * right
    return total


def _dot_function(count: int, *, signed: bool) -> Function:
    def exact(a: Any, b: Any, c: Any) -> Any:  # noqa: ANN401
        return dot(a, b, count=count, signed=signed) + signed_wide(c)

    result = "i" if signed else "u"
    return Function(result, f"uu{result}", cut(_KINDS[result], exact), exact=exact)


DOT: dict[str, Function] = {
    f"v_dot{count}_{kind}32_{kind}{32 // count}": _dot_function(count, signed=kind == "i")
    for count in (2, 4, 8)
    for kind in "iu"
}
"""Dot products of integers, which may clamp."""


def saturate(instruction: Instruction, function: Function) -> Callable[[Wave, list[Any]], Any]:
    """Computes and clamps; raises I102 if the exact result isn't known."""
    exact, kind = function.exact, _KINDS.get(function.result)
    if exact is None or kind is None:
        raise unknown(instruction, "modifier clamp")
    limits = np.iinfo(kind)
    return lambda _, values: np.clip(exact(*values), limits.min, limits.max).astype(kind)
