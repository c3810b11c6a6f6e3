"""What integer VALU opcodes compute: a table from opcode to operand kinds and a function of arrays.

The semantics are those of the CDNA3 ISA, "VALU Instructions"; the kinds are the letters of `operand.reader`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Function(NamedTuple):
    """A pure VALU function: the kind of its result, the kinds of its sources, and what it computes."""

    result: str
    sources: str
    compute: Callable[..., Any]


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


def _signed_wide(a: Any) -> Any:  # noqa: ANN401
    return np.asarray(a).astype(np.int64)


def _narrow(a: Any) -> Any:  # noqa: ANN401
    return np.asarray(a).astype(np.uint32)


def _align(a: Any, b: Any, shift: Any) -> Any:  # noqa: ANN401
    return _narrow((_wide(a) << np.uint64(32) | _wide(b)) >> _wide(shift))


def _permute(a: Any, b: Any, selector: Any) -> Any:  # noqa: ANN401
    """Any four of the eight bytes of a (4 to 7) and b (0 to 3); 8 to 11 signs, 12 zero, above that ones."""
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
    """How many bits of each number are set."""
    bits = np.unpackbits(np.ascontiguousarray(a, np.uint32).reshape(-1, 1).view(np.uint8), axis=1)
    return bits.sum(axis=1, dtype=np.uint32)


def _reversed_bits(a: Any) -> Any:  # noqa: ANN401
    octets = np.unpackbits(np.asarray(a).reshape(-1, 1).view(np.uint8), axis=1)
    return np.packbits(octets, axis=1, bitorder="little")[:, ::-1].copy().view(np.uint32)[:, 0]


INTEGER: dict[str, Function] = {
    "v_mov_b32": Function("u", "u", lambda a: a),
    "v_mov_b64": Function("U", "U", lambda a: a),
    "v_accvgpr_read_b32": Function("u", "u", lambda a: a),
    "v_accvgpr_write_b32": Function("u", "u", lambda a: a),
    "v_accvgpr_mov_b32": Function("u", "u", lambda a: a),
    "v_not_b32": Function("u", "u", lambda a: ~a),
    "v_bfrev_b32": Function("u", "u", _reversed_bits),
    "v_bcnt_u32_b32": Function("u", "uu", lambda a, b: population(a) + b),
    "v_add_u16": Function("u", "uu", lambda a, b: _low(a + b, 16)),
    "v_sub_u16": Function("u", "uu", lambda a, b: _low(a - b, 16)),
    "v_mul_lo_u16": Function("u", "uu", lambda a, b: _low(a * b, 16)),
    "v_lshlrev_b16": Function("u", "uu", lambda a, b: _low(b << _low(a, 4), 16)),
    "v_lshrrev_b16": Function("u", "uu", lambda a, b: _low(b, 16) >> _low(a, 4)),
    "v_add_u32": Function("u", "uu", lambda a, b: a + b),
    "v_sub_u32": Function("u", "uu", lambda a, b: a - b),
    "v_subrev_u32": Function("u", "uu", lambda a, b: b - a),
    "v_mul_lo_u32": Function("u", "uu", lambda a, b: a * b),
    "v_mul_hi_u32": Function("u", "uu", lambda a, b: _narrow(_wide(a) * _wide(b) >> np.uint64(32))),
    "v_mul_hi_i32": Function("u", "ii", lambda a, b: _narrow(_signed_wide(a) * _signed_wide(b) >> np.int64(32))),
    "v_mul_u32_u24": Function("u", "uu", lambda a, b: _low(a, 24) * _low(b, 24)),
    "v_mul_i32_i24": Function("i", "ii", lambda a, b: _signed24(a) * _signed24(b)),
    "v_mad_u32_u24": Function("u", "uuu", lambda a, b, c: _low(a, 24) * _low(b, 24) + c),
    "v_mad_i32_i24": Function("i", "iii", lambda a, b, c: _signed24(a) * _signed24(b) + c),
    "v_lshlrev_b32": Function("u", "uu", lambda a, b: b << _low(a, 5)),
    "v_lshrrev_b32": Function("u", "uu", lambda a, b: b >> _low(a, 5)),
    "v_ashrrev_i32": Function("i", "ui", lambda a, b: b >> _low(a, 5).astype(np.int32)),
    "v_lshlrev_b64": Function("U", "uU", lambda a, b: b << _wide(_low(a, 6))),
    "v_lshrrev_b64": Function("U", "uU", lambda a, b: b >> _wide(_low(a, 6))),
    "v_ashrrev_i64": Function("I", "uI", lambda a, b: b >> _signed_wide(_low(a, 6))),
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
    "v_or3_b32": Function("u", "uuu", lambda a, b, c: a | b | c),
    "v_xad_u32": Function("u", "uuu", lambda a, b, c: (a ^ b) + c),
    "v_lshl_add_u64": Function("U", "UuU", lambda a, b, c: (a << _wide(_low(b, 6))) + c),
    "v_bfe_u32": Function("u", "uuu", _field),
    "v_bfe_i32": Function("u", "uuu", _signed_field),
    "v_bfi_b32": Function("u", "uuu", lambda a, b, c: a & b | ~a & c),
    "v_alignbit_b32": Function("u", "uuu", lambda a, b, c: _align(a, b, _low(c, 5))),
    "v_alignbyte_b32": Function("u", "uuu", lambda a, b, c: _align(a, b, _low(c, 2) * np.uint32(8))),
    "v_perm_b32": Function("u", "uuu", _permute),
}
