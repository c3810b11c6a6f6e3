"""VALU instructions.

Most compute a pure function per lane (`integer`, `floating`, `convert`); those that carry, compare, divide, work on
pairs or cross lanes are below.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from rota.isa.binary.kernel_facts import LANES
from rota.isa.disassembly import Instruction, pair_halves
from rota.isa.opcodes import PAIRED, IsaUnit
from rota.isa.registers import M0, VCC, vector_rows
from rota.isa.valu.access import access, check_modifiers, flags, half_reader, has_halves, op_sel, parse_operands
from rota.isa.valu.convert import (
    BF16,
    CONVERSIONS,
    PACKED_BF16,
    Placed,
    decode_code,
    decode_scaled,
    encode,
    float8_readers,
    placed_conversions,
    widen_bf16,
)
from rota.isa.valu.floating import FLOATING, ORDERS, PACKED_HALF, multiply_add, signalling
from rota.isa.valu.integer import DOT, HALFWORD, INTEGER, PACKED_HALFWORD, Function, population, saturate
from rota.isa.wave.operand import (
    File,
    Operand,
    Reader,
    Writer,
    as_bits,
    named_register,
    parse_operand,
    reader,
    scalar_reader,
    scalar_writer,
    unknown,
    writer,
)
from rota.isa.wave.wave import DENORM32, IEEE, Step, Wave, clamp_float, flush_denormals, make_step, obey_mode
from rota.targets.architecture import Architecture, Float8

_KINDS = {
    "u16": "w", "i16": "s", "f16": "h", "u32": "u", "i32": "i", "f32": "f", "u64": "U", "i64": "I", "f64": "d",
}  # fmt: skip
_BIT = np.uint64(1) << np.arange(64, dtype=np.uint64)


def lane_bits(lanes: Any) -> int:  # noqa: ANN401
    return int(np.bitwise_or.reduce(np.where(lanes, _BIT[: len(lanes)], np.uint64(0))))


def _lanes_of(wave: Wave, bits: int) -> Any:  # noqa: ANN401
    return np.uint64(bits) & _BIT[: wave.lanes] != 0


def _mask_reader(operand: Operand) -> Callable[[Wave], int]:
    """Reads a bit per lane: from two registers, or one where waves have 32 lanes."""
    return scalar_reader(operand, wide=operand.count > 1)


def _mask_writer(operand: Operand) -> Callable[[Wave, int], None]:
    return scalar_writer(operand, wide=operand.count > 1)


def decode_compare(instruction: Instruction, _: str) -> Step | None:
    words, types = instruction.spec.words, instruction.spec.types
    if len(words) != 2 or words[0] not in {"cmp", "cmpx"} or types[0] not in _KINDS:
        return None
    (verb, name), kind = words, _KINDS[types[0]]
    is_class = name == "class"
    operands = parse_operands(instruction)
    target, sources = (None, operands) if len(operands) == 2 else (operands[0], operands[1:])
    form = access(instruction, None, "u", sources, kind + ("u" if is_class else kind))
    if form.clamp or ("op_sel" in instruction.text and not has_halves(sources)):
        raise unknown(instruction, f"modifiers {' '.join(instruction.modifiers)!r}")
    left, right = map(obey_mode, form.readers) if kind == "f" and not is_class else form.readers
    order = _of_class if is_class else ORDERS[name]
    put = None if target is None else _mask_writer(target)
    new_exec = scalar_writer(named_register("exec"), wide=target is not None and target.count > 1)

    def act(wave: Wave) -> None:
        bits = lane_bits(np.broadcast_to(order(left(wave), right(wave)), wave.lanes) & wave.active)
        if put is not None:
            put(wave, bits)
        if verb == "cmpx":
            new_exec(wave, bits)

    return make_step(instruction, act)


def _of_class(a: Any, wanted: Any) -> Any:  # noqa: ANN401
    """True if a number is of one of the wanted classes.

    Bit 0 is for signalling NaNs, 1 for quiet ones, 2 to 5 for negative numbers from infinity to zero, and 6 to 9 for
    positive ones from zero to infinity.
    """
    values = np.asarray(a)
    tiny = np.finfo(values.dtype).tiny
    size = np.abs(values)
    rank = np.where(np.isinf(values), 3, np.where(size >= tiny, 2, np.where(size > 0, 1, 0)))
    place = np.where(np.signbit(values), 5 - rank, 6 + rank)
    place = np.where(np.isnan(values), np.where(signalling(values), 0, 1), place)
    return np.asarray(wanted).astype(np.int64) >> place & 1 == 1


_SUMS: dict[str, Callable[[Any, Any, Any], Any]] = {
    **dict.fromkeys(("v_add_co_u32", "v_addc_co_u32"), lambda a, b, c: a + b + c),
    **dict.fromkeys(("v_sub_co_u32", "v_subb_co_u32"), lambda a, b, c: a - b - c),
    **dict.fromkeys(("v_subrev_co_u32", "v_subbrev_co_u32"), lambda a, b, c: b - a - c),
}


def decode_carry(instruction: Instruction, opcode: str) -> Step | None:
    if opcode in _SUMS:
        return _decode_sum(instruction, _SUMS[opcode])
    if opcode in {"v_mad_u64_u32", "v_mad_i64_i32"}:
        return _multiply_add(instruction, signed=opcode == "v_mad_i64_i32")
    return _decode_select(instruction, _SELECTS[opcode]) if opcode in _SELECTS else None


_SELECTS = {"v_cndmask_b32": "b", "v_cndmask_b16": "h"}  # what they read: floats, which may have signs


def _decode_sum(instruction: Instruction, compute: Callable[[Any, Any, Any], Any]) -> Step:
    target, carry, *rest = parse_operands(instruction)
    form = access(instruction, target, "u", tuple(rest[:2]), "uu", first=2)
    if form.clamp or form.crossing is not None or "op_sel" in instruction.text:
        raise unknown(instruction, f"modifiers {' '.join(instruction.modifiers)!r}")
    first, second = form.readers
    into = _mask_reader(rest[2]) if len(rest) > 2 else None
    out = _mask_writer(carry)

    def act(wave: Wave) -> None:
        more = _lanes_of(wave, into(wave)).astype(np.int64) if into is not None else np.int64(0)
        total = compute(np.asarray(first(wave), np.int64), np.asarray(second(wave), np.int64), more)
        form.put(wave, np.broadcast_to(total, wave.lanes).astype(np.uint32))
        out(wave, lane_bits(np.broadcast_to((total < 0) | (total >> 32 != 0), wave.lanes) & wave.active))

    return make_step(instruction, act)


def _multiply_add(instruction: Instruction, *, signed: bool) -> Step:
    """The 64-bit sum of a 32-bit product; the carry is bit 64 of the sum of 65-bit numbers."""
    check_modifiers(instruction, ())
    target, carry, left, right, addend = parse_operands(instruction)
    narrow, wide, kind = ("i", "I", np.int64) if signed else ("u", "U", np.uint64)
    first, second, third = reader(left, narrow), reader(right, narrow), reader(addend, wide)
    put, out = writer(target, wide), _mask_writer(carry)

    def act(wave: Wave) -> None:
        product = np.broadcast_to(np.asarray(first(wave), kind) * np.asarray(second(wave), kind), wave.lanes)
        more = np.broadcast_to(third(wave), wave.lanes)
        total = product + more
        if signed:
            over = (product ^ total) & (more ^ total) < 0
            top = (total < 0) ^ over
        else:
            top = total < product
        put(wave, total)
        out(wave, lane_bits(top & wave.active))

    return make_step(instruction, act)


def _decode_select(instruction: Instruction, kind: str) -> Step:
    target, no, yes, which = parse_operands(instruction)
    form = access(instruction, target, "u" if kind == "b" else kind, (no, yes), 2 * kind)
    if form.clamp or ("op_sel" in instruction.text and not has_halves((target, no, yes))):
        raise unknown(instruction, f"modifiers {' '.join(instruction.modifiers)!r}")
    when_clear, when_set = form.readers
    bits = _mask_reader(which)

    def act(wave: Wave) -> None:
        form.put(wave, np.where(_lanes_of(wave, bits(wave)), when_set(wave), when_clear(wave)))

    return make_step(instruction, act)


def decode_crosslane(instruction: Instruction, opcode: str) -> Step | None:
    if opcode not in _CROSSLANE or instruction.is_dpp or instruction.is_sdwa:
        return None
    check_modifiers(instruction, ("op_sel",) if _CROSSLANE[opcode] is _pick_lanes else ())
    return _CROSSLANE[opcode](instruction, parse_operands(instruction))


def _read_lane(instruction: Instruction, operands: tuple[Operand, ...]) -> Step:
    """Reads the named lane, or the first active one (lane 0 if there is none)."""
    target, source, *lane = operands
    take, put = reader(source, "u"), scalar_writer(target)
    which = scalar_reader(lane[0]) if lane else lambda wave: 0 if wave.mask is None else int(wave.mask.argmax())

    def act(wave: Wave) -> None:
        put(wave, int(np.broadcast_to(take(wave), wave.lanes)[which(wave) & wave.lanes - 1]))
        if target.first == M0:
            wave.m0_at = wave.now

    return make_step(instruction, act)


def _write_lane(instruction: Instruction, operands: tuple[Operand, ...]) -> Step:
    target, source, lane = operands
    value, which = scalar_reader(source), scalar_reader(lane)
    if target.file is not File.VECTOR:
        raise unknown(instruction, f"operand {target.text!r}")

    def act(wave: Wave) -> None:
        wave.v[target.first, which(wave) & wave.lanes - 1] = value(wave)

    return make_step(instruction, act)


def _count_below(instruction: Instruction, operands: tuple[Operand, ...]) -> Step:
    """Counts the bits of a mask below each lane's own number, in the low or the high half of the wave."""
    target, mask, addend = operands
    take, more, put = reader(mask, "u"), reader(addend, "u"), writer(target, "u")
    base = 32 if instruction.spec.words[-1] == "hi" else 0
    width = np.clip(np.arange(LANES) - base, 0, 32).astype(np.uint64)
    below = ((np.uint64(1) << width) - np.uint64(1)).astype(np.uint32)

    def act(wave: Wave) -> None:
        put(wave, population(take(wave) & below[: wave.lanes]) + more(wave))

    return make_step(instruction, act)


def _decode_swap(instruction: Instruction, operands: tuple[Operand, ...]) -> Step:
    kind = "u" if instruction.spec.type == "b32" else "w"
    takes, puts = [reader(each, kind) for each in operands], [writer(each, kind) for each in operands]

    def act(wave: Wave) -> None:
        first, second = (take(wave).copy() for take in takes)
        puts[0](wave, second)
        puts[1](wave, first)

    return make_step(instruction, act)


def _decode_lane_swap(instruction: Instruction, operands: tuple[Operand, ...]) -> Step:
    """Exchanges the odd rows of the first register with the even rows of the second (rows of 16 or 32 lanes)."""
    left, right = operands
    if left.file is not File.VECTOR or right.file is not File.VECTOR:
        raise unknown(instruction, "operand")
    rows = 32 if instruction.spec.words[0] == "permlane32" else 16

    def act(wave: Wave) -> None:
        lanes = np.arange(wave.lanes)
        even = lanes[lanes // rows % 2 == 0]
        odd = even + rows
        if wave.mask is not None:
            message = f"the effect of {instruction.opcode} with inactive lanes is not known"
            wave.faults.add("I102", instruction, message, ("wave", wave.number))
        above, below = wave.v[left.first, odd].copy(), wave.v[right.first, even].copy()
        wave.v[left.first, odd], wave.v[right.first, even] = below, above

    return make_step(instruction, act)


def _pick_lanes(instruction: Instruction, operands: tuple[Operand, ...]) -> Step:
    """Reads the lane of its own row, or of the other one of the pair, that four bits of two scalars name."""
    target, source, *selects = operands
    inactive, zero = flags(instruction.fields.get("op_sel", ""), 0, 2)[:2]
    take, other = reader(source, "u"), 16 if instruction.spec.words[0] == "permlanex16" else 0
    pick = _picked_lanes(instruction, selects)

    def act(wave: Wave) -> None:
        lane, chosen = np.arange(wave.lanes), pick(wave)
        origin = (lane & ~15 ^ other) | chosen
        found = bool(inactive) | wave.active[origin]
        moved = np.where(found, np.broadcast_to(take(wave), wave.lanes)[origin], np.uint32(0))
        np.copyto(wave.v[target.first], moved, where=wave.active & (found | bool(zero)))

    return make_step(instruction, act)


def _picked_lanes(instruction: Instruction, selects: list[Operand]) -> Callable[[Wave], Any]:
    """For each lane the place in a row that it reads: by four bits of two scalars, or of a register of its own."""
    if instruction.spec.words[-1] == "var":
        (select,) = selects
        own = reader(select, "u")
        return lambda wave: (np.broadcast_to(own(wave), wave.lanes) & np.uint32(15)).astype(np.int64)
    low, high = (scalar_reader(each) for each in selects)

    def shared(wave: Wave) -> Any:  # noqa: ANN401
        picks = low(wave) | high(wave) << 32
        return np.array([picks >> 4 * place & 15 for place in range(16)])[np.arange(wave.lanes) % 16]

    return shared


_CROSSLANE: dict[str, Callable[[Instruction, tuple[Operand, ...]], Step]] = {
    **dict.fromkeys(("v_readfirstlane_b32", "v_readlane_b32"), _read_lane),
    "v_writelane_b32": _write_lane,
    **dict.fromkeys(("v_mbcnt_lo_u32_b32", "v_mbcnt_hi_u32_b32"), _count_below),
    **dict.fromkeys(("v_swap_b32", "v_swap_b16"), _decode_swap),
    **{f"v_permlane{name}_b32": _pick_lanes for name in ("16", "x16", "16_var", "x16_var")},
    **dict.fromkeys(("v_permlane16_swap_b32", "v_permlane32_swap_b32"), _decode_lane_swap),
}


# Division. Compilers divide by Newton's iteration between three instructions: v_div_scale brings numerator and
# denominator into the middle of the exponent range and says in VCC whether to scale the quotient back, v_div_fmas does
# that, and v_div_fixup handles zeros, infinities and NaNs. The ISA leaves three points open. They are chosen so that
# compiled divisions give correct quotients, which tests check: a denominator with a denormal inverse is scaled down,
# the scale of v_div_fmas undoes that of v_div_scale, and a quotient that overflows on the way is infinite.


class _Format(NamedTuple):
    letter: str
    kind: Any
    bias: int
    mantissa: int
    scale: int  # by which power of two operands move
    far: int  # from which difference of exponents on a quotient may overflow
    tiny: int  # up to which exponent a numerator is tiny
    nothing: int  # below which difference a quotient is zero

    def exponent(self, values: Any) -> Any:  # noqa: ANN401
        bits = np.asarray(values).view({"h": np.uint16, "f": np.uint32, "d": np.uint64}[self.letter])
        return (bits.astype(np.int64) >> self.mantissa) & (2 * self.bias + 1)


_FORMATS = {
    "f16": _Format("h", np.float16, 15, 10, 0, 99, -1, -99),
    "f32": _Format("f", np.float32, 127, 23, 64, 96, 23, -150),
    "f64": _Format("d", np.float64, 1023, 52, 128, 768, 53, -1075),
}


def decode_division(instruction: Instruction, _: str) -> Step | None:
    part, types = instruction.spec.root, instruction.spec.types
    if part not in {"div_scale", "div_fmas", "div_fixup", "div_fixup_legacy"} or types[0] not in _FORMATS:
        return None
    form = _FORMATS[types[0]]
    if part == "div_scale":
        return _scale(instruction, form)
    if part == "div_fmas":
        return _fmas(instruction, form)
    return _fixup(instruction, form, halves=form.letter == "h" and part == "div_fixup")


def _scale(instruction: Instruction, form: _Format) -> Step:
    target, flag, *sources = parse_operands(instruction)
    if instruction.modifiers or any(each.absolute for each in sources):
        raise unknown(instruction, f"modifiers {' '.join(instruction.modifiers)!r}")
    reached = access(instruction, target, form.letter, tuple(sources), 3 * form.letter)
    out = _mask_writer(flag)

    def act(wave: Wave) -> None:
        chosen, below, above = (np.broadcast_to(take(wave), wave.lanes) for take in reached.readers)
        scaled, back = _scale_operand(form, chosen, below, above)
        reached.put(wave, scaled)
        out(wave, lane_bits(back & wave.active))

    return make_step(instruction, act)


def _scale_operand(form: _Format, chosen: Any, below: Any, above: Any) -> tuple[Any, Any]:  # noqa: ANN401
    """Scales `chosen`, which is `above` or `below`; also says whether the quotient is scaled back."""
    smallest = np.finfo(form.kind).tiny
    quotient, inverse = np.abs(above / below), np.abs(form.kind(1) / below)
    up, down = np.ldexp(chosen, form.scale), np.ldexp(chosen, -form.scale)
    is_below, is_above = chosen == below, chosen == above
    cases = (
        ((above == 0) | (below == 0), form.kind(np.nan), False),
        (form.exponent(above) - form.exponent(below) >= form.far, np.where(is_below, up, chosen), True),
        (np.abs(below) < smallest, up, False),
        ((inverse < smallest) & (quotient < smallest), np.where(is_below, down, chosen), True),
        (inverse < smallest, down, False),
        (quotient < smallest, np.where(is_above, up, chosen), True),
        (form.exponent(above) <= form.tiny, up, False),
    )
    conditions = [case[0] for case in cases]
    values = np.select(conditions, [np.broadcast_to(case[1], chosen.shape) for case in cases], chosen)
    return values.astype(form.kind), np.select(
        conditions, [np.full(chosen.shape, case[2]) for case in cases], np.False_
    )


def _fmas(instruction: Instruction, form: _Format) -> Step:
    target, *sources = parse_operands(instruction)
    reached = access(instruction, target, form.letter, tuple(sources), 3 * form.letter)
    readers = tuple(map(obey_mode, reached.readers)) if form.letter == "f" else reached.readers

    def act(wave: Wave) -> None:
        a, b, c = (np.broadcast_to(take(wave), wave.lanes) for take in readers)
        total = multiply_add(a, b, c, form.kind)
        back = _lanes_of(wave, wave.mask_at(VCC))
        power = np.where(form.exponent(c) > form.bias, form.scale, -form.scale)
        result = np.where(back, np.ldexp(total, power.astype(np.int32)), total)
        reached.put(wave, clamp_float(wave, result) if reached.clamp else result)

    return make_step(instruction, act)


def _fixup(instruction: Instruction, form: _Format, *, halves: bool) -> Step:
    target, *sources = parse_operands(instruction)
    reached = access(instruction, target, form.letter, tuple(sources), 3 * form.letter, halves=halves)

    def act(wave: Wave) -> None:
        result = _fix_quotient(form, *(np.broadcast_to(take(wave), wave.lanes) for take in reached.readers))
        reached.put(wave, clamp_float(wave, result) if reached.clamp else result)

    return make_step(instruction, act)


def _fix_quotient(form: _Format, quotient: Any, below: Any, above: Any) -> Any:  # noqa: ANN401
    sign = np.where(np.signbit(below) ^ np.signbit(above), form.kind(-1), form.kind(1))
    infinite, nothing, none = form.kind(np.inf), form.kind(0), form.kind(-np.nan)  # a NaN whose sign is set
    vanishes = form.exponent(above) - form.exponent(below) < form.nothing
    cases = (
        (np.isnan(above), above),
        (np.isnan(below), below),
        ((above == 0) & (below == 0), none),
        (np.isinf(above) & np.isinf(below), none),
        ((below == 0) | np.isinf(above), sign * infinite),
        ((above == 0) | np.isinf(below) | vanishes, sign * nothing),
        (np.isnan(quotient) & (form.scale > 0), sign * infinite),
    )
    values = [np.broadcast_to(value, quotient.shape) for _, value in cases]
    return np.select([case for case, _ in cases], values, np.copysign(quotient, sign)).astype(form.kind)


# Packed and mixed math. op_sel chooses the half of each source for the low result, op_sel_hi for the high one; neg_lo
# and neg_hi flip signs. A constant has 32 bits, so only the low half of a pair of float32 is known.

_CHOICES = ("op_sel", "op_sel_hi", "neg_lo", "neg_hi", "clamp")
_HALVES = {**PACKED_HALF, **PACKED_HALFWORD, **PACKED_BF16, "v_pk_fmac_f16": FLOATING["v_fma_f16"]}
_SINGLES = {f"v_pk_{name}_f32": FLOATING[f"v_{name}_f32"] for name in ("add", "mul", "fma")}
DOT2 = {"v_dot2_f32_f16": "h", "v_dot2c_f32_f16": "h", "v_dot2_f32_bf16": "e", "v_dot2c_f32_bf16": "e"}
"""Sums of two products: the ISA leaves order and inner rounding open, so they are exact and rounded once."""


def decode_packed(instruction: Instruction, opcode: str, architecture: Architecture) -> Step | None:
    operands = tuple(parse_operand(text, instruction) for text in instruction.operands)
    if instruction.is_dpp or instruction.is_sdwa:
        return None
    if opcode in _HALVES:
        return _halves(instruction, operands, _HALVES[opcode], accumulates=instruction.spec.tied)
    if opcode in _SINGLES:
        return _singles(instruction, operands, _SINGLES[opcode], repeats=architecture.pairs_repeat_scalars)
    if opcode == "v_pk_mov_b32":
        return _decode_move(instruction, operands)
    if opcode in _MIXES:
        return _decode_mix(instruction, operands, opcode)
    return (
        _decode_dot(instruction, operands, DOT2[opcode], accumulates=instruction.spec.tied) if opcode in DOT2 else None
    )


def _choices(instruction: Instruction, count: int, high: int = 1) -> tuple[list[list[int]], bool]:
    fields = check_modifiers(instruction, _CHOICES)
    lists = [flags(fields.get(name, ""), high * (name == "op_sel_hi"), count) for name in _CHOICES[:4]]
    if any(len(each) != count for each in lists):
        raise unknown(instruction, "op_sel")
    return lists, "clamp" in fields


def _halves(instruction: Instruction, operands: tuple[Operand, ...], function: Function, *, accumulates: bool) -> Step:
    target, sources = operands[0], operands[1:] + (operands[:1] if accumulates else ())
    (low, high, flip_low, flip_high), clamp = _choices(instruction, len(sources))
    floats = function.result == "h"
    if any(flip_low + flip_high) and not floats:
        raise unknown(instruction, "sign of an integer")
    takes = [
        [_half(instruction, *each) for each in zip(sources, function.sources, picks, flips, strict=True)]
        for picks, flips in ((low, flip_low), (high, flip_high))
    ]
    put, finish = writer(target, "u"), _finish(instruction, function, clamp=clamp)

    def act(wave: Wave) -> None:
        low, high = (as_bits(finish(wave, [take(wave) for take in half]), function.result) for half in takes)
        put(wave, low | high << np.uint32(16))

    return make_step(instruction, act)


def _finish(instruction: Instruction, function: Function, *, clamp: bool) -> Callable[[Wave, list[Any]], Any]:
    compute, plain = function.compute, function.plain or function.compute
    if function.result not in "hfd":
        return saturate(instruction, function) if clamp else lambda _, values: compute(*values)

    def finish(wave: Wave, values: list[Any]) -> Any:  # noqa: ANN401
        result = (compute if wave.mode & IEEE else plain)(*values)
        if function.result == "f" and wave.mode & DENORM32 != DENORM32:
            result = flush_denormals(result)
        return clamp_float(wave, result) if clamp else result

    return finish


def _half(instruction: Instruction, source: Operand, kind: str, high: int, flip: int) -> Reader:
    if source.signed or (source.floating is not None and kind != "h"):
        raise unknown(instruction, f"operand {source.text!r}")
    whole = reader(source, "p" if kind == "h" else "u")
    return half_reader(whole, high, replace(source, negate=bool(flip)), kind)


def _singles(instruction: Instruction, operands: tuple[Operand, ...], function: Function, *, repeats: bool) -> Step:
    target, sources = operands[0], operands[1:]
    (low, high, flip_low, flip_high), clamp = _choices(instruction, len(sources))
    halves = [
        [_one_of_pair(instruction, *each, repeats=repeats) for each in zip(sources, picks, flips, strict=True)]
        for picks, flips in ((low, flip_low), (high, flip_high))
    ]
    puts = [writer(Operand(text="", file=target.file, first=target.first + part), "f") for part in (0, 1)]
    finish = _finish(instruction, function, clamp=clamp)

    def act(wave: Wave) -> None:
        results = [np.array(finish(wave, [take(wave) for take in takes])) for takes in halves]
        for put, result in zip(puts, results, strict=True):
            put(wave, result)

    return make_step(instruction, act)


def _one_of_pair(instruction: Instruction, source: Operand, chosen: int, negate: int, *, repeats: bool) -> Reader:
    """The half of a pair that is chosen; of a scalar the low one, where that `repeats`."""
    if repeats and source.file is not File.VECTOR and not source.signed:
        return obey_mode(reader(replace(source, count=1, negate=bool(negate)), "f"))
    if source.signed or (source.file is File.LITERAL and chosen and source.literal):
        raise unknown(instruction, f"high half of {source.text!r}")
    if source.rows and source.count != 2:
        raise unknown(instruction, f"operand {source.text!r}")
    first = source.first + chosen if source.rows else 0
    return obey_mode(reader(replace(source, first=first, count=1, negate=bool(negate)), "f"))


def _decode_move(instruction: Instruction, operands: tuple[Operand, ...]) -> Step:
    """The low result comes from the first source, the high one from the second; op_sel_hi has no effect."""
    target, *sources = operands
    (low, _, *flips), clamp = _choices(instruction, 2)
    if clamp or any(any(each) for each in flips) or any(each.signed or each.floating for each in sources):
        raise unknown(instruction, "form")
    takes = [
        reader(Operand(text=each.text, file=each.file, first=each.first + chosen, literal=each.literal), "u")
        for each, chosen in zip(sources, low, strict=True)
    ]
    puts = [writer(Operand(text="", file=target.file, first=target.first + part), "u") for part in (0, 1)]
    if any(chosen and not each.rows and each.literal for each, chosen in zip(sources, low, strict=True)):
        raise unknown(instruction, "high half of a constant")

    def act(wave: Wave) -> None:
        values = [np.array(take(wave)) for take in takes]
        for put, value in zip(puts, values, strict=True):
            put(wave, value)

    return make_step(instruction, act)


_MIXES: dict[str, int | None] = {  # which half of the target they write; None is all of it
    f"v_fma_{name}{suffix}": place
    for suffixes, name, place in (
        (("", "_bf16"), "mix_f32", None), (("_f16", "_bf16"), "mixlo", 0), (("_f16", "_bf16"), "mixhi", 1),
    )
    for suffix in suffixes
}  # fmt: skip


def _decode_mix(instruction: Instruction, operands: tuple[Operand, ...], opcode: str) -> Step:
    target, *sources = operands
    (high, halved, *flips), clamp = _choices(instruction, 3, 0)
    if any(any(each) for each in flips):
        raise unknown(instruction, "neg_lo")
    short = "bf16" in instruction.spec.types
    takes = [_single_or_half(instruction, *each, bf16=short) for each in zip(sources, halved, high, strict=True)]
    put: Writer = writer(target, "u")
    old = reader(target, "u")
    place = _MIXES[opcode]

    def act(wave: Wave) -> None:
        a, b, c = (np.broadcast_to(take(wave), wave.lanes) for take in takes)
        value = multiply_add(a, b, c, np.float32)
        value = value if wave.mode & DENORM32 == DENORM32 else flush_denormals(value)
        if place is None:
            put(wave, as_bits(clamp_float(wave, value) if clamp else value, "f"))
            return
        rounded = value if short else value.astype(np.float16)
        rounded = clamp_float(wave, rounded) if clamp else rounded
        code = encode(rounded, BF16) if short else as_bits(rounded, "h")
        bits = code << np.uint32(16 * place)
        put(wave, bits | old(wave) & np.uint32(0xFFFF if place else 0xFFFF_0000))

    return make_step(instruction, act)


def _single_or_half(instruction: Instruction, source: Operand, halved: int, high: int, *, bf16: bool) -> Reader:
    if not halved:
        if high:
            raise unknown(instruction, "op_sel")
        return obey_mode(reader(source, "f"))
    if source.file is File.LITERAL:
        raise unknown(instruction, f"half of {source.text!r}")
    whole = reader(Operand(text=source.text, file=source.file, first=source.first), "u")
    half = half_reader(whole, high, source, "w" if bf16 else "h")
    return lambda wave: widen_bf16(half(wave)) if bf16 else half(wave).astype(np.float32)


def _decode_dot(instruction: Instruction, operands: tuple[Operand, ...], kind: str, *, accumulates: bool) -> Step:
    target, sources = operands[0], operands[1:] + (operands[:1] if accumulates else ())
    check_modifiers(instruction, ())
    if any(each.signed or each.file is File.LITERAL for each in sources[:2]):
        raise unknown(instruction, "operand")
    a, b, addend, put = *(reader(each, "u") for each in sources[:2]), reader(sources[2], "f"), writer(target, "f")

    def half(values: Any, high: int) -> Any:  # noqa: ANN401
        part = (np.asarray(values) >> np.uint32(16 * high)).astype(np.uint16)
        return decode_code(part, BF16) if kind == "e" else part.view(np.float16).astype(np.float64)

    def act(wave: Wave) -> None:
        left, right = a(wave), b(wave)
        products = half(left, 0) * half(right, 0) + half(left, 1) * half(right, 1)
        total = products + np.asarray(addend(wave), np.float64)
        put(wave, total.astype(np.float32))

    return make_step(instruction, act)


__all__ = ["decode_vector", "lane_bits"]

_FUNCTIONS = {**INTEGER, **HALFWORD, **DOT, **FLOATING, **CONVERSIONS}
_ON_ITSELF = {
    **{f"v_fmac_{kind}": f"v_fma_{kind}" for kind in ("f16", "f32", "f64", "dx9_zero_f32")},
    "v_dot2c_i32_i16": "v_dot2_i32_i16",
    "v_dot4c_i32_i8": "v_dot4_i32_i8", "v_dot8c_i32_i4": "v_dot8_i32_i4",
}  # fmt: skip
_WITH_CONSTANT = {f"v_{name}_{kind}": f"v_fma_{kind}" for name in ("fmamk", "fmaak") for kind in ("f16", "f32", "f64")}
_FAMILIES = (decode_compare, decode_carry, decode_division, decode_crosslane)


def decode_vector(instruction: Instruction, architecture: Architecture) -> Step | None:  # noqa: PLR0911
    if instruction.spec.unit is not IsaUnit.VALU:
        return None
    opcode = instruction.mnemonic
    if PAIRED in instruction.opcode:
        return _decode_pair(instruction, architecture)
    if opcode == "v_nop":
        return make_step(instruction, lambda _: None)
    operands = parse_operands(instruction)
    if opcode in _BYTE_READS and "byte_sel" in instruction.fields:
        shift, others = 8 * int(instruction.fields["byte_sel"]), _without(instruction, "byte_sel")
        plain = _by_format(architecture.float8)[opcode]
        return _pure(others, operands, _of_byte(plain, shift)) if isinstance(plain, Function) else None
    if opcode in _ON_ITSELF:
        return _pure(instruction, (*operands, operands[0]), _FUNCTIONS[_ON_ITSELF[opcode]])
    if opcode in {"v_bitop3_b32", "v_bitop3_b16"}:
        table = _truth_table(instruction, wide=instruction.spec.type == "b32")
        return _pure(_without(instruction, "bitop3"), operands, table)
    name = _WITH_CONSTANT.get(opcode, opcode)
    function = _FUNCTIONS.get(name) or _by_format(architecture.float8).get(name)
    if isinstance(function, Function):
        return _pure(instruction, operands, function)
    if isinstance(function, Placed):
        return _decode_placed(instruction, operands, function)
    steps = (decode(instruction, opcode) for decode in _FAMILIES)
    found = next((step for step in steps if step is not None), None)
    return found or decode_packed(instruction, opcode, architecture) or decode_scaled(instruction, architecture)


_BYTE_READS = frozenset({"v_cvt_f32_fp8", "v_cvt_f32_bf8"})


def _without(instruction: Instruction, name: str) -> Instruction:
    others = tuple(each for each in instruction.modifiers if each.partition(":")[0] != name)
    return replace(instruction, modifiers=others)


def _of_byte(function: Function, shift: int) -> Function:
    return function._replace(compute=lambda a: function.compute(np.asarray(a) >> np.uint32(shift)))


def _decode_pair(instruction: Instruction, architecture: Architecture) -> Step | None:
    """Two instructions, both of which read before either writes."""
    halves = [decode_vector(each, architecture) for each in pair_halves(instruction)]
    if any(each is None for each in halves):
        return None
    first, second = (each for each in halves if each is not None)
    rows = sorted(vector_rows(first.results))

    def act(wave: Wave) -> None:
        before = wave.v[rows]
        first.act(wave)
        after, wave.v[rows] = wave.v[rows], before
        second.act(wave)
        wave.v[rows] = after

    return make_step(instruction, act)


@cache
def _by_format(float8: Float8) -> dict[str, Function | Placed]:
    return {**float8_readers(float8), **placed_conversions(float8)}


def _pure(instruction: Instruction, operands: tuple[Operand, ...], function: Function) -> Step:
    target, sources = operands[0], operands[1:]
    form = access(instruction, target, function.result, sources, function.sources, halves=function.halves)
    readers = [
        obey_mode(take) if kind == "f" else take for take, kind in zip(form.readers, function.sources, strict=True)
    ]
    put, finish = form.put, _finish(instruction, function, clamp=form.clamp)

    def act(wave: Wave) -> None:
        put(wave, finish(wave, [take(wave) for take in readers]))

    return make_step(instruction, act)


def _truth_table(instruction: Instruction, *, wide: bool) -> Function:
    """Any function of three bits: bit 4a + 2b + c of the modifier is its value (gfx950)."""
    table = int(instruction.fields.get("bitop3", "0"), 0)
    terms = [number for number in range(8) if table >> number & 1]
    nothing = np.uint32(0) if wide else np.uint16(0)

    def compute(a: Any, b: Any, c: Any) -> Any:  # noqa: ANN401
        out = nothing
        for term in terms:
            out = out | ((a if term & 4 else ~a) & (b if term & 2 else ~b) & (c if term & 1 else ~c))
        return out

    return Function("u", "uuu", compute) if wide else Function("w", "www", compute, halves=True)


def _decode_placed(instruction: Instruction, operands: tuple[Operand, ...], conversion: Placed) -> Step:
    target, *sources = operands
    part = instruction.fields.get("byte_sel", "")
    chosen = op_sel(_without(instruction, "byte_sel"), len(sources))
    number = chosen[3] if conversion.bits == 16 else int(part) if part else chosen[2] + 2 * chosen[3]
    if (half := target.half) is not None:
        target, number = replace(target, half=None), half * (32 // conversion.bits // 2)
    if any(chosen[:2]) or (conversion.bits == 16 and chosen[2]):
        raise unknown(instruction, "op_sel")
    kinds = zip(sources, conversion.sources, strict=True)
    readers = [obey_mode(reader(each, kind)) if kind == "f" else reader(each, kind) for each, kind in kinds]
    shift, keep = np.uint32(conversion.bits * number), np.uint32((1 << conversion.bits) - 1)
    put, old, compute = writer(target, "u"), reader(target, "u"), conversion.compute

    def act(wave: Wave) -> None:
        code = compute(*(take(wave) for take in readers))
        put(wave, (code & keep) << shift | old(wave) & ~(keep << shift))

    return make_step(instruction, act)
