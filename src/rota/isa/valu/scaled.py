"""Conversions with a scale: takes a v_cvt_scalef32 instruction, gives a `Step`.

The scale is a power of two: the exponent field of a float32, all ones for NaN.  Going down to a small format a value is
divided by it, going up multiplied, and then rounded once (AMD, CDNA4 ISA; edge cases as in AMD's host emulation of the
same instructions, amd_hip_ocp_host.hpp).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from rota.isa.valu.convert import noise
from rota.isa.valu.integer import INTEGER
from rota.isa.valu.minifloat import MiniFloat, decode_code, encode, format_named
from rota.isa.valu.modifiers import op_sel
from rota.isa.wave.operand import File, Operand, Reader, parse_operand, reader, unknown
from rota.isa.wave.step import Step, make_step

if TYPE_CHECKING:
    from rota.isa.code.disassembly import Instruction
    from rota.isa.wave.wave import Wave
    from rota.targets.architecture import Architecture, Float8

_NAME = re.compile(
    r"^v_cvt_scalef32_(?P<sr>sr_)?(?:(?P<count>2xpk16|pk32|pk)_)?"
    r"(?P<to>f32|f16|bf16|fp8|bf8|fp6|bf6|fp4)_(?P<of>f32|f16|bf16|fp8|bf8|fp6|bf6|fp4)(?:_e64)?$"
)
_COUNTS = {"2xpk16": 32, "pk32": 32, "pk": 2, None: 1}
_SMALL = frozenset({"fp8", "bf8", "fp6", "bf6", "fp4"})
_BITS = {"f32": 32, "f16": 16, "bf16": 16, "fp8": 8, "bf8": 8, "fp6": 6, "bf6": 6, "fp4": 4}
_RANDOM = INTEGER["v_prng_b32"].compute
Codes = list[Any]


def decode_scaled(instruction: Instruction, architecture: Architecture) -> Step | None:
    """The step of a scaled conversion, or None."""
    found = _NAME.match(instruction.opcode)
    if found is None:
        return None
    operands = tuple(parse_operand(text, instruction) for text in instruction.operands)
    target, scale = operands[0], reader(operands[-1], "u")
    if target.file is not File.VECTOR or any(each.signed for each in operands):
        raise unknown(instruction, "operand")
    random = reader(operands[-2], "u") if found["sr"] else None
    given = operands[1 : -2 if found["sr"] else -1]
    count, chosen = _COUNTS[found["count"]], op_sel(instruction, len(operands) - 1)
    take = _taken(instruction, given, found["of"], count, chosen)
    put = _put(instruction, target, found["to"], count, chosen)
    convert = _conversion(found["of"], found["to"], architecture.float8)

    def act(wave: Wave) -> None:
        power = np.broadcast_to(scale(wave), 64) >> np.uint32(23) & np.uint32(0xFF)
        seed = None if random is None else np.array(np.broadcast_to(random(wave), 64))
        out = []
        for code in take(wave):
            out.append(convert(code, power.astype(np.int32), seed))
            seed = None if seed is None else _RANDOM(seed)
        put(wave, out)

    kept = (target,) if count * _BITS[found["to"]] < 32 else ()
    return make_step(instruction, act, reads=(*operands[1:], *kept), writes=(target,))


def _conversion(of: str, to: str, float8: Float8) -> Callable[[Any, Any, Any], Any]:
    """From one code to another."""
    source = None if of == "f32" else format_named(of, float8)
    result = None if to == "f32" else format_named(to, float8)
    spare = 0 if result is None else (23 if source is None else source.mantissa) - result.mantissa
    sign = -1 if to in _SMALL else 1

    def convert(code: Any, power: Any, seed: Any) -> Any:  # noqa: ANN401
        value = _value(code, source)
        value = np.where(power == 255, np.copysign(np.nan, value), np.ldexp(value, sign * (power - 127)))
        if result is None:
            return value.astype(np.float32).view(np.uint32)
        return encode(value, result) if seed is None else encode(value, result, noise(seed, spare), spare)

    return convert


def _value(code: Any, form: MiniFloat | None) -> Any:  # noqa: ANN401
    if form is None:
        return np.ascontiguousarray(code, np.uint32).view(np.float32).astype(np.float64)
    return decode_code(code, form)


def _taken(
    instruction: Instruction, given: tuple[Operand, ...], of: str, count: int, chosen: tuple[int, ...]
) -> Callable[[Wave], Codes]:
    """Reads the codes of the sources: from registers of their own, or fields of one that op_sel chooses."""
    bits = _BITS[of]
    if of in _SMALL and count < 32:
        part = chosen[0] + 2 * chosen[1]
        whole = 16 if count * bits == 16 else 8
        if part * whole >= 32 or given[0].count != 1:
            raise unknown(instruction, "op_sel")
        source = reader(given[0], "u")
        return lambda wave: _fields(np.broadcast_to(source(wave), (1, 64)), bits, count, part * whole)
    if any(chosen[:2]):
        raise unknown(instruction, "op_sel")
    if len(given) == 2 and count == 32:  # sixteen of each, one of the one and one of the other
        return lambda wave: [wave.v[each.first + number].copy() for number in range(16) for each in given]
    readers = [_register(each, number) for each in given for number in range(each.count)]
    if len(readers) * 32 // bits < count or (len(readers) > 1 and len(readers) * 32 // bits != count):
        raise unknown(instruction, "operand width")
    return lambda wave: _fields(
        np.array([np.broadcast_to(take(wave), 64) for take in readers], np.uint32), bits, count, 0
    )


def _register(operand: Operand, number: int) -> Reader:
    if operand.file is not File.VECTOR:
        return reader(operand, "u")
    return lambda wave: wave.v[operand.first + number]


def _fields(registers: Any, bits: int, count: int, first: int) -> Codes:  # noqa: ANN401
    wide = np.vstack([registers, np.zeros((1, 64), np.uint32)]).astype(np.uint64)
    out = []
    for number in range(count):
        row, shift = divmod(first + number * bits, 32)
        both = wide[row] | wide[row + 1] << np.uint64(32)
        out.append((both >> np.uint64(shift) & np.uint64((1 << bits) - 1)).astype(np.uint32))
    return out


def _put(
    instruction: Instruction, target: Operand, to: str, count: int, chosen: tuple[int, ...]
) -> Callable[[Wave, Codes], None]:
    """Writes the codes one after the other, in a part of the register if they don't fill it."""
    bits = _BITS[to]
    size = count * bits
    first = (chosen[3] * 16 if size == 16 else (2 * chosen[3] + chosen[2]) * 8) if size < 32 else 0
    if (size >= 32 and any(chosen[2:])) or (size == 16 and chosen[2]) or target.count != max(1, size // 32):
        raise unknown(instruction, "op_sel")
    mask = np.uint32(((1 << min(size, 32)) - 1) << first)

    def put(wave: Wave, codes: Codes) -> None:
        words = [np.zeros(64, np.uint64) for _ in range(target.count + 1)]
        for number, code in enumerate(codes):
            row, shift = divmod(first + number * bits, 32)
            moved = code.astype(np.uint64) << np.uint64(shift)
            words[row] = words[row] | moved & np.uint64(0xFFFF_FFFF)
            words[row + 1] = words[row + 1] | moved >> np.uint64(32)
        for number in range(target.count):
            kept = wave.v[target.first + number] & ~mask
            np.copyto(wave.v[target.first + number], words[number].astype(np.uint32) | kept, where=wave.active)

    return put
