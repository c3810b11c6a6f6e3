"""Packed and mixed math: takes a v_pk, v_fma_mix or v_dot2 instruction, gives a `Step`.

op_sel says which half of each source the low result takes, op_sel_hi the same for the high one; neg_lo and neg_hi flip
signs.  A constant has 32 bits, and for a pair of float32 only its low half is known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from rota.isa.binary.kernel_facts import LANES
from rota.isa.valu.exactly import fused
from rota.isa.valu.floating import FLOATING, PACKED_HALF
from rota.isa.valu.halfword import PACKED_HALFWORD
from rota.isa.valu.integer import Function
from rota.isa.valu.minifloat import BF16, decode_code
from rota.isa.valu.modifiers import flags, only
from rota.isa.valu.saturation import saturated
from rota.isa.wave.mode import DENORM32, IEEE, flushed, heeding, limited
from rota.isa.wave.operand import File, Operand, Reader, Writer, as_bits, parse_operand, reader, unknown, writer
from rota.isa.wave.step import Step, make_step

if TYPE_CHECKING:
    from rota.isa.code.disassembly import Instruction
    from rota.isa.wave.wave import Wave

_CHOICES = ("op_sel", "op_sel_hi", "neg_lo", "neg_hi", "clamp")
_HALVES = {**PACKED_HALF, **PACKED_HALFWORD, "v_pk_fmac_f16": FLOATING["v_fma_f16"]}
_SINGLES = {f"v_pk_{name}_f32": FLOATING[f"v_{name}_f32"].compute for name in ("add", "mul", "fma")}
_TYPES: dict[str, Any] = {"w": np.uint16, "s": np.int16, "h": np.float16}
DOT2 = {"v_dot2_f32_f16": "h", "v_dot2c_f32_f16": "h", "v_dot2_f32_bf16": "e", "v_dot2c_f32_bf16": "e"}
"""Sums of two products, whose order and inner rounding the ISA doesn't fix: computed exactly, rounded once."""


def decode_packed(instruction: Instruction, opcode: str) -> Step | None:
    """The step of a packed instruction, or None; `opcode` is the instruction's without its encoding."""
    operands = tuple(parse_operand(text, instruction) for text in instruction.operands)
    if instruction.opcode.endswith(("_dpp", "_sdwa")):
        return None
    if opcode in _HALVES:
        return _halves(instruction, operands, _HALVES[opcode], accumulates="fmac" in opcode)
    if opcode in _SINGLES:
        return _singles(instruction, operands, _SINGLES[opcode])
    if opcode == "v_pk_mov_b32":
        return _moved(instruction, operands)
    if opcode in {"v_fma_mix_f32", "v_fma_mixlo_f16", "v_fma_mixhi_f16"}:
        return _mixed(instruction, operands, opcode)
    return _dotted(instruction, operands, DOT2[opcode], accumulates="2c" in opcode) if opcode in DOT2 else None


def _choices(instruction: Instruction, count: int, high: int = 1) -> tuple[list[list[int]], bool]:
    """op_sel, op_sel_hi, neg_lo and neg_hi, and whether to clamp."""
    fields = only(instruction, _CHOICES)
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
    put, finish = writer(target, "u"), _finished(instruction, function, clamp)

    def act(wave: Wave) -> None:
        one, two = (as_bits(finish(wave, [take(wave) for take in half]), function.result) for half in takes)
        put(wave, one | two << np.uint32(16))

    return make_step(instruction, act, reads=sources, writes=(target,))


def _finished(instruction: Instruction, function: Function, clamp: bool) -> Callable[[Wave, list[Any]], Any]:
    """Computes, in the way that MODE asks for, and clamps."""
    if clamp and function.result != "h":
        return saturated(instruction, function)
    plain = function.plain or function.compute

    def finish(wave: Wave, values: list[Any]) -> Any:  # noqa: ANN401
        result = (function.compute if wave.mode & IEEE else plain)(*values)
        return limited(wave, result) if clamp else result

    return finish


def _half(instruction: Instruction, source: Operand, kind: str, high: int, flip: int) -> Reader:
    if source.signed or (source.floating is not None and kind != "h"):
        raise unknown(instruction, f"operand {source.text!r}")
    whole = reader(source, "p" if kind == "h" else "u")
    shift, sign, view = np.uint32(16 * high), np.uint16(0x8000 * flip), _TYPES[kind]
    return lambda wave: ((np.asarray(whole(wave)) >> shift).astype(np.uint16) ^ sign).view(view)


def _singles(instruction: Instruction, operands: tuple[Operand, ...], compute: Callable[..., Any]) -> Step:
    """Two float32 at once."""
    target, sources = operands[0], operands[1:]
    (low, high, flip_low, flip_high), clamp = _choices(instruction, len(sources))
    halves = [
        [_one_of_pair(instruction, *each) for each in zip(sources, picks, flips, strict=True)]
        for picks, flips in ((low, flip_low), (high, flip_high))
    ]
    puts = [writer(Operand(text="", file=target.file, first=target.first + part), "f") for part in (0, 1)]

    def act(wave: Wave) -> None:
        keeps = wave.mode & DENORM32 == DENORM32
        results = [np.array(compute(*(take(wave) for take in takes))) for takes in halves]
        for put, result in zip(puts, results, strict=True):
            value = result if keeps else flushed(result)
            put(wave, limited(wave, value) if clamp else value)

    return make_step(instruction, act, reads=sources, writes=(target,))


def _one_of_pair(instruction: Instruction, source: Operand, chosen: int, negate: int) -> Reader:
    if source.signed or (source.file is File.LITERAL and chosen and source.literal):
        raise unknown(instruction, f"high half of {source.text!r}")
    if source.rows and source.count != 2:
        raise unknown(instruction, f"operand {source.text!r}")
    first = source.first + chosen if source.rows else 0
    one = Operand(
        text=source.text,
        file=source.file,
        first=first,
        literal=source.literal,
        floating=source.floating,
        negate=bool(negate),
    )
    return heeding(reader(one, "f"))


def _moved(instruction: Instruction, operands: tuple[Operand, ...]) -> Step:
    """The low result from the first source, the high one from the second; op_sel_hi says nothing here."""
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

    return make_step(instruction, act, reads=tuple(sources), writes=(target,))


def _mixed(instruction: Instruction, operands: tuple[Operand, ...], opcode: str) -> Step:
    """A fused multiply-add of sources that are float32, or halves where op_sel_hi says so."""
    target, *sources = operands
    (high, halved, *flips), clamp = _choices(instruction, 3, 0)
    if any(any(each) for each in flips):
        raise unknown(instruction, "neg_lo")
    takes = [_single_or_half(instruction, *each) for each in zip(sources, halved, high, strict=True)]
    put: Writer = writer(target, "u")
    old = reader(target, "u")
    place = {"v_fma_mix_f32": None, "v_fma_mixlo_f16": 0, "v_fma_mixhi_f16": 1}[opcode]

    def act(wave: Wave) -> None:
        a, b, c = (np.broadcast_to(take(wave), LANES) for take in takes)
        value = fused(a, b, c, np.float32)
        value = value if wave.mode & DENORM32 == DENORM32 else flushed(value)
        if place is None:
            put(wave, as_bits(limited(wave, value) if clamp else value, "f"))
            return
        half = value.astype(np.float16)
        bits = as_bits(limited(wave, half) if clamp else half, "h") << np.uint32(16 * place)
        put(wave, bits | old(wave) & np.uint32(0xFFFF if place else 0xFFFF_0000))

    reads = tuple(sources) if place is None else (*sources, target)
    return make_step(instruction, act, reads=reads, writes=(target,))


def _single_or_half(instruction: Instruction, source: Operand, halved: int, high: int) -> Reader:
    if not halved:
        if high:
            raise unknown(instruction, "op_sel")
        return heeding(reader(source, "f"))
    if source.file is File.LITERAL:
        raise unknown(instruction, f"half of {source.text!r}")
    whole = reader(Operand(text=source.text, file=source.file, first=source.first), "u")
    keep, flip = np.uint16(0x7FFF if source.absolute else 0xFFFF), np.uint16(0x8000 if source.negate else 0)
    shift = np.uint32(16 * high)
    return lambda wave: (
        ((np.asarray(whole(wave)) >> shift).astype(np.uint16) & keep ^ flip).view(np.float16).astype(np.float32)
    )


def _dotted(instruction: Instruction, operands: tuple[Operand, ...], kind: str, *, accumulates: bool) -> Step:
    target, sources = operands[0], operands[1:] + (operands[:1] if accumulates else ())
    only(instruction, ())
    if any(each.signed or each.file is File.LITERAL for each in sources[:2]):
        raise unknown(instruction, "operand")
    a, b, addend, put = *(reader(each, "u") for each in sources[:2]), reader(sources[2], "f"), writer(target, "f")

    def half(values: Any, high: int) -> Any:  # noqa: ANN401
        part = (np.asarray(values) >> np.uint32(16 * high)).astype(np.uint16)
        return decode_code(part, BF16) if kind == "e" else part.view(np.float16).astype(np.float64)

    def act(wave: Wave) -> None:
        one, two = a(wave), b(wave)
        total = half(one, 0) * half(two, 0) + half(one, 1) * half(two, 1) + np.asarray(addend(wave), np.float64)
        put(wave, total.astype(np.float32))

    return make_step(instruction, act, reads=sources, writes=(target,))
