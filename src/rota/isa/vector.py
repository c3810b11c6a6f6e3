"""VALU instructions: takes an instruction, gives a `Step` over 64 lanes.

Most compute a pure function per lane (`integer`, `floating`); those that carry, compare, select, cross lanes or work on
register pairs are written out here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rota.isa.floating import FLOATING
from rota.isa.integer import INTEGER, Function, population
from rota.isa.kernel_facts import LANES
from rota.isa.operand import (
    M0,
    Operand,
    Reader,
    Writer,
    named,
    parse_operand,
    reader,
    scalar_reader,
    scalar_writer,
    unknown,
    writer,
)  # fmt: skip
from rota.isa.step import Step, make_step

if TYPE_CHECKING:
    from rota.isa.disassembly import Instruction
    from rota.isa.wave import Wave

_FUNCTIONS = {**INTEGER, **FLOATING}
_ENCODING = re.compile(r"_(e32|e64|sdwa)$")
_CARRY = {
    "v_add_co_u32": lambda a, b, c: a + b + c,
    "v_addc_co_u32": lambda a, b, c: a + b + c,
    "v_sub_co_u32": lambda a, b, c: a - b - c,
    "v_subb_co_u32": lambda a, b, c: a - b - c,
    "v_subrev_co_u32": lambda a, b, c: b - a - c,
    "v_subbrev_co_u32": lambda a, b, c: b - a - c,
}
_COMPARE = re.compile(
    r"^v_cmp(?P<x>x?)_(?P<order>n?lt|n?le|n?eq|n?gt|n?ge|n?lg|ne|u|o)_(?P<kind>[uif])(?P<bits>16|32|64)$"
)
_ORDERS: dict[str, Callable[[Any, Any], Any]] = {
    "lt": np.less, "le": np.less_equal, "eq": np.equal, "gt": np.greater, "ge": np.greater_equal, "ne": np.not_equal,
    "lg": lambda a, b: (a < b) | (a > b), "nlt": lambda a, b: ~np.less(a, b), "nle": lambda a, b: ~np.less_equal(a, b),
    "neq": np.not_equal, "ngt": lambda a, b: ~np.greater(a, b), "nge": lambda a, b: ~np.greater_equal(a, b),
    "nlg": lambda a, b: ~((a < b) | (a > b)),
    "u": lambda a, b: np.isnan(a) | np.isnan(b), "o": lambda a, b: ~(np.isnan(a) | np.isnan(b)),
}  # fmt: skip
_PACKED: dict[str, Callable[..., Any]] = {
    "v_pk_add_f32": FLOATING["v_add_f32"].compute,
    "v_pk_mul_f32": FLOATING["v_mul_f32"].compute,
    "v_pk_fma_f32": FLOATING["v_fma_f32"].compute,
}
_BIT = np.uint64(1) << np.arange(LANES, dtype=np.uint64)


def decode_vector(instruction: Instruction) -> Step | None:  # noqa: PLR0911  # one line per family
    """The step of a VALU instruction, or None."""
    if not instruction.opcode.startswith("v_"):
        return None
    opcode = _ENCODING.sub("", instruction.opcode)
    operands = tuple(parse_operand(_bare(text), instruction) for text in instruction.operands)
    if opcode in _FUNCTIONS:
        return _pure(instruction, operands, _FUNCTIONS[opcode])
    if opcode == "v_fmac_f32":
        return _pure(instruction, (*operands, operands[0]), _FUNCTIONS["v_fma_f32"])
    if opcode == "v_bitop3_b32":
        return _pure(replace(instruction, modifiers=()), operands, _truth_table(instruction))
    if opcode in _PACKED:
        return _packed(instruction, operands, _PACKED[opcode])
    if instruction.modifiers:
        raise unknown(instruction, f"modifiers {' '.join(instruction.modifiers)!r}")
    if opcode in _CARRY:
        return _carried(instruction, operands, _CARRY[opcode])
    if (found := _COMPARE.match(opcode)) is not None:
        return _compared(instruction, operands, found)
    return _SPECIAL[opcode](instruction, operands) if opcode in _SPECIAL else None


def _bare(text: str) -> str:
    return text.removeprefix("sext(").removesuffix(")") if text.startswith("sext(") else text


def _pure(instruction: Instruction, operands: tuple[Operand, ...], function: Function) -> Step:
    target, sources = operands[0], operands[1 : 1 + len(function.sources)]
    readers = [reader(operand, kind) for operand, kind in zip(sources, function.sources, strict=True)]
    put, compute = writer(target, function.result), function.compute
    if instruction.modifiers:
        readers, put, compute = _modified(instruction, readers, put, function, operands)
    if len(readers) == 1:
        (one,) = readers
        return make_step(
            instruction, lambda wave: put(wave, compute(one(wave))), reads=sources, writes=(target,), valu=True
        )
    if len(readers) == 2:
        one, two = readers
        return make_step(
            instruction,
            lambda wave: put(wave, compute(one(wave), two(wave))),
            reads=sources,
            writes=(target,),
            valu=True,
        )
    one, two, three = readers
    return make_step(
        instruction,
        lambda wave: put(wave, compute(one(wave), two(wave), three(wave))),
        reads=sources,
        writes=(target,),
        valu=True,
    )


def _truth_table(instruction: Instruction) -> Function:
    """Any function of three bits: bit 4a + 2b + c of the modifier is its value (gfx950)."""
    fields = dict(modifier.partition(":")[::2] for modifier in instruction.modifiers)
    table = int(fields.pop("bitop3", "0"), 0)
    if fields:
        raise unknown(instruction, f"modifiers {' '.join(instruction.modifiers)!r}")
    terms = [number for number in range(8) if table >> number & 1]

    def compute(a: Any, b: Any, c: Any) -> Any:  # noqa: ANN401
        out = np.uint32(0)
        for term in terms:
            out = out | ((a if term & 4 else ~a) & (b if term & 2 else ~b) & (c if term & 1 else ~c))
        return out

    return Function("u", "uuu", compute)


def _modified(
    instruction: Instruction,
    readers: list[Reader],
    put: Writer,
    function: Function,
    operands: tuple[Operand, ...],
) -> tuple[list[Reader], Writer, Callable[..., Any]]:
    """Sub-dword addressing: which byte or half of a source is taken, and where the result goes."""
    fields = dict(modifier.partition(":")[::2] for modifier in instruction.modifiers)
    destination, unused = fields.pop("dst_sel", "DWORD"), fields.pop("dst_unused", "UNUSED_PAD")
    chosen = [fields.pop(f"src{number}_sel", "DWORD") for number in range(2)]
    clamp = fields.pop("clamp", None)
    if fields or (clamp is not None and function.result != "f") or (function.result not in "ui" and clamp is None):
        raise unknown(instruction, f"modifiers {' '.join(instruction.modifiers)!r}")
    if any(source.signed and part != "DWORD" for source, part in zip(operands[1:], chosen, strict=False)):
        raise unknown(instruction, "sign of a part of a register")
    compute = function.compute
    if clamp is not None:
        return readers, put, lambda *sources: np.clip(compute(*sources), np.float32(0), np.float32(1))
    picked = [
        _picked(take, selection, instruction.operands[1 + number].startswith("sext("))
        for number, (take, selection) in enumerate(zip(readers, chosen, strict=False))
    ]
    return picked, _placed(operands[0], destination, unused, instruction), compute


def _span(selection: str) -> tuple[np.uint32, np.uint32]:
    """Shift and mask of a selection such as WORD_1."""
    if selection == "DWORD":
        return np.uint32(0), np.uint32(0xFFFF_FFFF)
    unit, _, number = selection.partition("_")
    bits = 8 if unit == "BYTE" else 16
    return np.uint32(bits * int(number)), np.uint32((1 << bits) - 1)


def _picked(take: Reader, selection: str, sign: bool) -> Reader:
    shift, mask = _span(selection)
    top = np.uint32((int(mask) >> 1) + 1)

    def part(wave: Wave) -> Any:  # noqa: ANN401
        whole = take(wave)
        value = whole.view(np.uint32) >> shift & mask
        if sign:
            value = (value ^ top) - top
        return value.view(whole.dtype)

    return part


def _placed(target: Operand, selection: str, unused: str, instruction: Instruction) -> Writer:
    shift, mask = _span(selection)
    put, old = writer(target, "u"), reader(target, "u")
    keep = np.uint32(~(int(mask) << int(shift)) & 0xFFFF_FFFF)
    if unused == "UNUSED_SEXT":
        raise unknown(instruction, "modifier dst_unused:UNUSED_SEXT")

    def place(wave: Wave, value: Any) -> None:  # noqa: ANN401
        moved = (np.asarray(value).view(np.uint32) & mask) << shift
        put(wave, moved | old(wave) & keep if unused == "UNUSED_PRESERVE" else moved)

    return place


def _packed(instruction: Instruction, operands: tuple[Operand, ...], compute: Callable[..., Any]) -> Step:
    """Two float32 at once; op_sel and op_sel_hi choose which half of each source a result takes."""
    target, sources = operands[0], operands[1:]
    fields = dict(modifier.partition(":")[::2] for modifier in instruction.modifiers)
    low = _flags(fields.pop("op_sel", ""), 0, len(sources))
    high = _flags(fields.pop("op_sel_hi", ""), 1, len(sources))
    minus = [_flags(fields.pop(name, ""), 0, len(sources)) for name in ("neg_lo", "neg_hi")]
    if fields:
        raise unknown(instruction, f"modifiers {' '.join(instruction.modifiers)!r}")
    halves = [
        [_half(source, chosen, bool(negative)) for source, chosen, negative in zip(sources, picks, signs, strict=True)]
        for picks, signs in ((low, minus[0]), (high, minus[1]))
    ]
    puts = [writer(Operand(text="", file=target.file, first=target.first + part), "f") for part in (0, 1)]

    def act(wave: Wave) -> None:
        results = [np.array(compute(*(take(wave) for take in takes))) for takes in halves]
        for put, result in zip(puts, results, strict=True):
            put(wave, result)

    return make_step(instruction, act, reads=sources, writes=(target,), valu=True)


def _flags(text: str, default: int, count: int) -> list[int]:
    return [int(flag) for flag in text.strip("[]").split(",")] if text else [default] * count


def _half(source: Operand, chosen: int, negate: bool) -> Reader:
    first = source.first + chosen if source.rows else 0
    return reader(Operand(text=source.text, file=source.file, first=first, literal=source.literal, negate=negate), "f")


def lane_bits(lanes: Any) -> int:  # noqa: ANN401
    """A mask with a bit per lane."""
    return int(np.bitwise_or.reduce(np.where(lanes, _BIT, np.uint64(0))))


def _lanes(bits: int) -> Any:  # noqa: ANN401
    return np.uint64(bits) & _BIT != 0


def _carried(instruction: Instruction, operands: tuple[Operand, ...], compute: Callable[..., Any]) -> Step:
    """Adds or subtracts with a carry per lane, out of it and sometimes into it."""
    target, carry, *rest = operands
    first, second = reader(rest[0], "u"), reader(rest[1], "u")
    into = scalar_reader(rest[2], wide=True) if len(rest) > 2 else None
    put, out = writer(target, "u"), scalar_writer(carry, wide=True)

    def act(wave: Wave) -> None:
        more = _lanes(into(wave)).astype(np.int64) if into is not None else np.int64(0)
        total = compute(np.asarray(first(wave), np.int64), np.asarray(second(wave), np.int64), more)
        put(wave, np.broadcast_to(total, LANES).astype(np.uint32))
        out(wave, lane_bits(np.broadcast_to((total < 0) | (total >> 32 != 0), LANES) & wave.active))

    return make_step(instruction, act, reads=tuple(rest), writes=(target, carry), valu=True)


def _compared(instruction: Instruction, operands: tuple[Operand, ...], found: re.Match[str]) -> Step:
    kind = {"f16": "h", "u64": "U", "i64": "I"}.get(found["kind"] + found["bits"], found["kind"])
    if found["bits"] == "16" and kind != "h":
        raise unknown(instruction)
    target = operands[0]
    left, right = (reader(operand, kind) for operand in operands[1:])
    order, put = _ORDERS[found["order"]], scalar_writer(target, wide=True)
    new_exec = scalar_writer(named("exec"), wide=True)

    def act(wave: Wave) -> None:
        bits = lane_bits(np.broadcast_to(order(left(wave), right(wave)), LANES) & wave.active)
        put(wave, bits)
        if found["x"]:
            new_exec(wave, bits)

    written = (target, named("exec")) if found["x"] else (target,)
    return make_step(instruction, act, reads=operands[1:], writes=written, valu=True)


def _selected(instruction: Instruction, operands: tuple[Operand, ...]) -> Step:
    target, no, yes, which = operands
    put, when_clear, when_set = writer(target, "u"), reader(no, "b"), reader(yes, "b")
    bits = scalar_reader(which, wide=True)
    return make_step(
        instruction,
        lambda wave: put(wave, np.where(_lanes(bits(wave)), when_set(wave), when_clear(wave))),
        reads=operands[1:],
        writes=(target,),
        valu=True,
    )


def _multiply_add_wide(instruction: Instruction, operands: tuple[Operand, ...]) -> Step:
    """64-bit sum of a 32-bit product; the carry, which nobody reads here, is written as zero."""
    target, carry, left, right, addend = operands
    wide = np.int64 if "i64" in instruction.opcode else np.uint64
    kinds = ("i", "I") if wide is np.int64 else ("u", "U")
    first, second, third = reader(left, kinds[0]), reader(right, kinds[0]), reader(addend, kinds[1])
    put, out = writer(target, kinds[1]), scalar_writer(carry, wide=True)

    def act(wave: Wave) -> None:
        total = np.asarray(first(wave), wide) * np.asarray(second(wave), wide) + third(wave)
        put(wave, np.ascontiguousarray(np.broadcast_to(total, LANES)))
        out(wave, 0)

    return make_step(instruction, act, reads=(left, right, addend), writes=(target, carry), valu=True)


def _first_lane(instruction: Instruction, operands: tuple[Operand, ...]) -> Step:
    target, source = operands
    take, put = reader(source, "u"), scalar_writer(target)

    def act(wave: Wave) -> None:
        values = np.broadcast_to(take(wave), LANES)
        put(wave, int(values[0 if wave.mask is None else int(wave.mask.argmax())]))
        if target.first == M0:
            wave.m0_at = wave.now

    return make_step(instruction, act, reads=(source,), writes=(target,), valu=True)


def _read_lane(instruction: Instruction, operands: tuple[Operand, ...]) -> Step:
    target, source, lane = operands
    take, put, which = reader(source, "u"), scalar_writer(target), scalar_reader(lane)
    return make_step(
        instruction,
        lambda wave: put(wave, int(take(wave)[which(wave) & 63])),
        reads=operands[1:],
        writes=(target,),
        valu=True,
    )


def _write_lane(instruction: Instruction, operands: tuple[Operand, ...]) -> Step:
    target, source, lane = operands
    value, which = scalar_reader(source), scalar_reader(lane)

    def act(wave: Wave) -> None:
        wave.v[target.first, which(wave) & 63] = value(wave)

    return make_step(instruction, act, reads=operands[1:], writes=(target,), valu=True)


def _count_below(instruction: Instruction, operands: tuple[Operand, ...]) -> Step:
    """Bits of a mask below each lane's own number, in the low or the high half of the wave."""
    target, mask, addend = operands
    take, more, put = reader(mask, "u"), reader(addend, "u"), writer(target, "u")
    base = 32 if "_hi_" in instruction.opcode else 0
    width = np.clip(np.arange(LANES) - base, 0, 32).astype(np.uint64)
    below = ((np.uint64(1) << width) - np.uint64(1)).astype(np.uint32)

    def act(wave: Wave) -> None:
        put(wave, population(take(wave) & below) + more(wave))

    return make_step(instruction, act, reads=operands[1:], writes=(target,), valu=True)


_SPECIAL: dict[str, Callable[[Instruction, tuple[Operand, ...]], Step]] = {
    "v_cndmask_b32": _selected,
    "v_mad_u64_u32": _multiply_add_wide,
    "v_mad_i64_i32": _multiply_add_wide,
    "v_readfirstlane_b32": _first_lane,
    "v_readlane_b32": _read_lane,
    "v_writelane_b32": _write_lane,
    "v_mbcnt_lo_u32_b32": _count_below,
    "v_mbcnt_hi_u32_b32": _count_below,
}
