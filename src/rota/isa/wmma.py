"""Matrix instructions of waves of 32 lanes (WMMA), in the register layout of gfx1250.

EXEC is ignored. Products are added in float64, one after the other, and rounded once to the format of the result, as
`matrix` does for MFMA; 32-bit integers wrap around.

Layouts are those of Triton 3.9 (AMDWMMALayout, version 3, as linear layouts) and of AMD's CK Tile, which agree. Lane l
holds row l % 16 of A, or column l % 16 of B. Its elements come in runs along K, in turns with those of lane l + 16 or
l - 16: runs of 8 for 16-bit factors and for 8-bit ones of K = 64, of 16 for other 8-bit factors, and of 32 for 6-bit
and 4-bit ones. Without scales, whether hardware has runs of 8 or 16 for 8-bit factors is open: Triton takes both. It
changes nothing but the order of the sum, since A and B have the same. Register r of a result holds row
r + 8 * (l // 16) of column l % 16; a register of 16-bit results holds two such rows, the lower one in its low half. In
forms of 32 rows the second half of A's and the result's registers is for rows 16 to 31 (Triton; AMD's Comgr, which
splits them so).

Scales: lane r, or r + 16 if MATRIX_SCALE_ROW1 is chosen, holds those of row or column r, a byte for 32 elements of K,
or for 16 in scale16 forms; all lanes hold those of 32 rows, whatever is chosen (Comgr; AMD's emulator rocJITsu). E5M3
has no sign, and a NaN in its last code; E4M3 is OCP's. Comgr says that they go with FP4 only, so that others are
refused.

Refused, since sources contradict each other or are missing: sparse forms (rocJITsu departs from the ISA manual's index
layout), 8-bit factors times narrower ones without scales (rocJITsu orders the narrow ones otherwise than CK Tile), and
clamped integers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rota.isa.disassembly import Instruction
from rota.isa.matrix_elements import BITS, BY_FIELD, Values, elements_of, multiply
from rota.isa.valu.convert import BF16, F16, encode, float_values
from rota.isa.wave.operand import File, Operand, constant_bits, parse_operand, unknown
from rota.isa.wave.wave import Step, Wave, make_step
from rota.targets.architecture import Architecture, Float8, MatrixForm

_SIDE = 16  # rows or columns that the lanes of half a wave hold
_HALF_ROWS = 8  # of a result, in half a wave
_LANES = 2 * _SIDE
_NAMES = frozenset({"wmma", "swmmac"})
_ANY, _INTEGERS, _HALVES = "f8f6f4", "iu8", frozenset({"f16", "bf16"})
_HINTS = frozenset({"matrix_a_reuse", "matrix_b_reuse"})
_FORMATS = {f"MATRIX_FMT_{name.upper()}": name for name in BY_FIELD}
_E8 = "MATRIX_SCALE_FMT_E8"
_ROWS = {"MATRIX_SCALE_ROW0": 0, "MATRIX_SCALE_ROW1": 1}

Read = Callable[[Wave], Values]


def _decode_e8(codes: NDArray[np.int64]) -> Values:
    """Powers of two."""
    return np.where(codes == 0xFF, np.nan, np.ldexp(1.0, codes - 127))


def _decode_e5m3(codes: NDArray[np.int64]) -> Values:
    power, fraction = codes >> 3, codes & 7
    size = np.ldexp(np.where(power > 0, fraction + 8, fraction).astype(np.float64), np.maximum(power, 1) - 18)
    return np.where(codes == 0xFF, np.nan, size)


_CODES = np.arange(256)
_SCALES: dict[str, Values] = {
    _E8: _decode_e8(_CODES),
    "MATRIX_SCALE_FMT_E5M3": _decode_e5m3(_CODES),
    "MATRIX_SCALE_FMT_E4M3": float_values("fp8", Float8.OCP),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Factor:
    """A or B: its format, what is negated in the low and high halves of registers, and how its scales are read."""

    kind: str
    side: int
    depth: int
    negate: tuple[bool, bool]
    scale: str
    row: int | None  # None if it isn't known

    @property
    def run(self) -> int:
        """How many elements of K follow each other in a lane."""
        if BITS[self.kind] < 8:
            return 32
        return 16 if self.depth == 128 else 8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fields:
    left: _Factor
    right: _Factor
    negate: bool  # C, after `absolute`
    absolute: bool


def decode_wmma(instruction: Instruction, architecture: Architecture) -> Step | None:
    """The step of a WMMA; None for other instructions, and I102 for forms and modifiers that aren't known."""
    if _NAMES.isdisjoint(instruction.spec.words[:1]):
        return None
    form = next((each for each in architecture.matrix_forms if each.name == instruction.opcode), None)
    if form is None or form.sparse:
        raise unknown(instruction, "" if form is None else "layout of sparse factors")
    fields = _fields_of(instruction, form)
    target, left, right, addend, *scales = (parse_operand(text, instruction) for text in instruction.operands)
    _check_widths(instruction, form, fields, (target, left, right, addend, *scales))
    read_left, read_right = (
        _read_factor(operand, factor, architecture.float8)
        for operand, factor in ((left, fields.left), (right, fields.right))
    )
    if form.scaled:
        read_left = _apply_scales(fields.left, read_left, scales[0], _block_of(form))
        read_right = _apply_scales(fields.right, read_right, scales[1], _block_of(form))
    read_addend, write = _read_addend(instruction, form, addend, fields), _write_result(form, target)

    def act(wave: Wave) -> None:
        product = multiply(read_left(wave)[None], read_right(wave)[None])[0]
        write(wave, _by_lane(product) + read_addend(wave))

    return make_step(instruction, act)


def _fields_of(instruction: Instruction, form: MatrixForm) -> _Fields:
    given = {name: value for name, value in instruction.fields.items() if name not in _HINTS}
    low, high = (_bits(given.pop(name, "[0,0,0]")) for name in ("neg_lo", "neg_hi"))
    if form.left == _INTEGERS:  # neg_lo says that a factor is signed
        left, right = (_take_factor(given, form, place, "i8" if low[place] else "u8") for place in range(2))
        legal = not (low[2] or any(high))
    elif form.left in _HALVES:
        left, right = (_take_factor(given, form, place, form.left, (low[place], high[place])) for place in range(2))
        legal = True
    else:
        left, right = (_take_factor(given, form, place, (form.left, form.right)[place]) for place in range(2))
        legal = not any((*low[:2], *high[:2]))
    known = all(each.kind in BITS and each.scale in _SCALES and each.row is not None for each in (left, right))
    if given or not (legal and known) or not _go_together(form, left, right):
        raise unknown(instruction, f"modifiers {' '.join(instruction.modifiers)!r}")
    return _Fields(left=left, right=right, negate=low[2], absolute=high[2])


def _bits(text: str) -> tuple[bool, ...]:
    return tuple(bit == "1" for bit in text.strip("[]").split(","))


def _take_factor(
    given: dict[str, str], form: MatrixForm, place: int, kind: str, negate: tuple[bool, bool] = (False, False)
) -> _Factor:
    letter, side = (("a", form.rows), ("b", form.columns))[place]
    if kind == _ANY:
        kind = _FORMATS.get(given.pop(f"matrix_{letter}_fmt", "MATRIX_FMT_FP8"), "")
    scale, row = _E8, "MATRIX_SCALE_ROW0"
    if form.scaled:
        scale, row = given.pop(f"matrix_{letter}_scale_fmt", scale), given.pop(f"matrix_{letter}_scale", row)
    kind = "fp4" if kind == "f4" else kind
    return _Factor(kind=kind, side=side, negate=negate, scale=scale, row=_ROWS.get(row), depth=form.depth)


def _go_together(form: MatrixForm, left: _Factor, right: _Factor) -> bool:
    """True if sources agree on the formats: of scales with those of factors, and of both factors without scales."""
    fits = all(each.scale == _E8 or each.kind == "fp4" for each in (left, right))
    return fits and (form.scaled or left.run == right.run)


def _check_widths(instruction: Instruction, form: MatrixForm, fields: _Fields, operands: tuple[Operand, ...]) -> None:
    target, left, right, addend, *scales = operands
    factors = tuple(each.side * form.depth * BITS[each.kind] // (32 * _LANES) for each in (fields.left, fields.right))
    area = form.rows * form.columns // _LANES
    result, added = {"f16": (2, 2), "bf16": (2, 2), "bf16f32": (2, 1)}.get(form.total, (1, 1))  # elements of a register
    fits = (left.count, right.count, target.count) == (*factors, area // result)
    fits = fits and (addend.file is File.LITERAL or addend.count == area // added)
    vectors = (target, left, right, *(() if addend.file is File.LITERAL else (addend,)))
    width = form.depth // _block_of(form) // 4
    fits = fits and len(scales) == 2 * form.scaled and all(_is_scale(each, width) for each in scales)
    if not fits or any(each.file is not File.VECTOR for each in vectors) or any(each.signed for each in operands):
        raise unknown(instruction, "operand width")


def _block_of(form: MatrixForm) -> int:
    return 16 if form.name.startswith("v_wmma_scale16_") else 32


def _is_scale(operand: Operand, width: int) -> bool:
    if operand.file is File.LITERAL:
        return operand.floating is None
    return operand.file in {File.VECTOR, File.SCALAR} and operand.count == width


def _read_factor(operand: Operand, factor: _Factor, float8: Float8) -> Read:
    """A factor as rows, or columns, by K."""
    first, last = operand.first, operand.first + operand.count
    elements, (low, high) = elements_of(factor.kind, float8), factor.negate
    signs = np.tile([-1.0 if low else 1.0, -1.0 if high else 1.0], operand.count)[:, None]
    changes = low or high

    def read(wave: Wave) -> Values:
        held = elements(wave.v[first:last])
        if changes:
            held = held * signs
        parts = held.reshape(factor.side // _SIDE, -1, factor.run, 2, _SIDE)
        return parts.transpose(0, 4, 1, 3, 2).reshape(factor.side, factor.depth)

    return read


def _apply_scales(factor: _Factor, read: Read, operand: Operand, block: int) -> Read:
    """`block` elements of K share a scale."""
    table, words = _SCALES[factor.scale], factor.depth // block // 4
    first = (factor.row or 0) * _SIDE if factor.side == _SIDE else 0
    whole = [operand.literal >> 32 * word & 0xFFFF_FFFF for word in range(words)]

    def scaled(wave: Wave) -> Values:
        if operand.file is File.VECTOR:
            held = wave.v[operand.first : operand.first + words]
        else:  # all lanes have the same
            uniform = wave.s[operand.first : operand.first + words] if operand.file is File.SCALAR else whole
            held = np.repeat(np.array(uniform, np.uint32)[:, None], wave.lanes, axis=1)
        scales: Values = table[np.ascontiguousarray(held.T).view(np.uint8)[first : first + factor.side]]
        return read(wave) * scales.repeat(block, axis=1)

    return scaled


def _by_lane(rows: Values) -> Values:
    """The elements of a result as registers of one element, by lanes."""
    parts = rows.reshape(-1, 2, _HALF_ROWS, _SIDE)
    return parts.transpose(0, 2, 1, 3).reshape(-1, _LANES)


def _read_addend(instruction: Instruction, form: MatrixForm, operand: Operand, fields: _Fields) -> Read:
    kind = "f32" if form.total == "bf16f32" else form.total
    read = _constant(instruction, operand, kind) if operand.file is File.LITERAL else _registers(operand, kind)
    if not (fields.negate or fields.absolute):
        return read
    sign = -1.0 if fields.negate else 1.0
    return lambda wave: sign * (np.abs(read(wave)) if fields.absolute else read(wave))


def _registers(operand: Operand, kind: str) -> Read:
    first, last = operand.first, operand.first + operand.count
    if kind == "i32":
        return lambda wave: wave.i[first:last].astype(np.float64)
    elements = elements_of(kind, Float8.OCP)
    return lambda wave: elements(wave.v[first:last])


def _constant(instruction: Instruction, operand: Operand, kind: str) -> Read:
    """An inline constant, which every element of C is; how an integer fills pairs of halves isn't known."""
    whole = operand.floating is None
    if operand.written or (kind in _HALVES and whole and operand.literal):
        raise unknown(instruction, f"operand {operand.text!r}")
    bits = np.array([constant_bits(operand, "h" if kind == "f16" else "u")], np.uint32)
    if kind == "bf16":
        bits &= np.uint32(0xFFFF_0000)
    if kind == "i32":
        value = bits.view(np.int32).astype(np.float64)
    elif kind == "f16":
        value = bits.astype(np.uint16).view(np.float16).astype(np.float64)
    else:
        value = bits.view(np.float32).astype(np.float64)
    return lambda _: value


def _write_result(form: MatrixForm, target: Operand) -> Callable[[Wave, Values], None]:
    first, last = target.first, target.first + target.count

    def write(wave: Wave, sums: Any) -> None:  # noqa: ANN401  # rows by lanes
        if form.total == "i32":
            wave.v[first:last] = sums.astype(np.int64).astype(np.uint32)
        elif form.total == "f32":
            wave.f[first:last] = sums.astype(np.float32)
        else:
            codes = encode(sums, F16 if form.total == "f16" else BF16)
            wave.v[first:last] = codes[0::2] | codes[1::2] << np.uint32(16)

    return write
