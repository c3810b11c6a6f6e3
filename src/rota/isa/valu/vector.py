"""VALU instructions: takes an instruction, gives a `Step` over 64 lanes.

Most compute a pure function per lane (`integer`, `halfword`, `floating`, `convert`); those that carry, compare, divide,
scale, work on pairs or cross lanes have modules of their own.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from rota.isa.valu.access import access, keeps, parsed
from rota.isa.valu.carry import decode_carry
from rota.isa.valu.convert import CONVERSIONS, Placed, float8_readers, placed_conversions
from rota.isa.valu.crosslane import decode_crosslane
from rota.isa.valu.division import decode_division
from rota.isa.valu.floating import FLOATING
from rota.isa.valu.halfword import DOT, HALFWORD
from rota.isa.valu.integer import INTEGER, Function
from rota.isa.valu.lane_compare import decode_compare, lane_bits
from rota.isa.valu.modifiers import fields_of, op_sel
from rota.isa.valu.packed import decode_packed
from rota.isa.valu.saturation import saturated
from rota.isa.valu.scaled import decode_scaled
from rota.isa.wave.mode import DENORM32, IEEE, flushed, heeding, limited
from rota.isa.wave.operand import Operand, Reader, reader, unknown, writer
from rota.isa.wave.step import Act, Step, make_step

if TYPE_CHECKING:
    from rota.isa.code.disassembly import Instruction
    from rota.isa.wave.wave import Wave
    from rota.targets.architecture import Architecture, Float8

__all__ = ["decode_vector", "lane_bits"]

_FUNCTIONS = {**INTEGER, **HALFWORD, **DOT, **FLOATING, **CONVERSIONS}
_ON_ITSELF = {
    "v_fmac_f32": "v_fma_f32", "v_fmac_f64": "v_fma_f64", "v_dot2c_i32_i16": "v_dot2_i32_i16",
    "v_dot4c_i32_i8": "v_dot4_i32_i8", "v_dot8c_i32_i4": "v_dot8_i32_i4",
}  # fmt: skip
_WITH_CONSTANT = {"v_fmamk_f32": "v_fma_f32", "v_fmaak_f32": "v_fma_f32"}
_FAMILIES = (decode_compare, decode_carry, decode_division, decode_packed, decode_crosslane)


def decode_vector(instruction: Instruction, architecture: Architecture) -> Step | None:  # noqa: PLR0911
    """The step of a VALU instruction, or None."""
    if not instruction.opcode.startswith("v_"):
        return None
    opcode = instruction.mnemonic
    if opcode == "v_nop":
        return make_step(instruction, lambda _: None)
    operands = parsed(instruction)
    if opcode in _ON_ITSELF:
        return _pure(instruction, (*operands, operands[0]), _FUNCTIONS[_ON_ITSELF[opcode]])
    if opcode in {"v_bitop3_b32", "v_bitop3_b16"}:
        return _pure(_without(instruction, "bitop3"), operands, _truth_table(instruction, wide=opcode.endswith("32")))
    function = _function(_WITH_CONSTANT.get(opcode, opcode), architecture.float8)
    if isinstance(function, Function):
        return _pure(instruction, operands, function)
    if isinstance(function, Placed):
        return _placed(instruction, operands, function)
    steps = (decode(instruction, opcode) for decode in _FAMILIES)
    return next((step for step in steps if step is not None), None) or decode_scaled(instruction, architecture)


@cache
def _by_format(float8: Float8) -> dict[str, Function | Placed]:
    return {**float8_readers(float8), **placed_conversions(float8)}


def _function(opcode: str, float8: Float8) -> Function | Placed | None:
    return _FUNCTIONS.get(opcode) or _by_format(float8).get(opcode)


def _without(instruction: Instruction, name: str) -> Instruction:
    kept = tuple(each for each in instruction.modifiers if not each.startswith(f"{name}:"))
    return replace(instruction, modifiers=kept)


def _pure(instruction: Instruction, operands: tuple[Operand, ...], function: Function) -> Step:
    """One result per lane, of sources per lane."""
    target, sources = operands[0], operands[1:]
    form = access(instruction, target, function.result, sources, function.sources, halves=function.halves)
    readers = [
        heeding(take) if kind == "f" else take for take, kind in zip(form.readers, function.sources, strict=True)
    ]
    act = _acting(instruction, function, readers, form.put, clamp=form.clamp)
    kept = (target,) if keeps(instruction, halves=function.halves) else ()
    return make_step(instruction, act, reads=(*sources, *kept), writes=(target,))


def _acting(instruction: Instruction, function: Function, readers: list[Reader], put: Any, *, clamp: bool) -> Act:  # noqa: ANN401
    compute, plain = function.compute, function.plain or function.compute
    if clamp and function.result not in "hfd":
        limit = saturated(instruction, function)
        return lambda wave: put(wave, limit(wave, [take(wave) for take in readers]))
    if function.result not in "hfd":
        return lambda wave: put(wave, compute(*(take(wave) for take in readers)))

    def act(wave: Wave) -> None:
        result = (compute if wave.mode & IEEE else plain)(*(take(wave) for take in readers))
        if function.result == "f" and wave.mode & DENORM32 != DENORM32:
            result = flushed(result)
        put(wave, limited(wave, result) if clamp else result)

    return act


def _truth_table(instruction: Instruction, *, wide: bool) -> Function:
    """Any function of three bits: bit 4a + 2b + c of the modifier is its value (gfx950)."""
    table = int(fields_of(instruction).get("bitop3", "0"), 0)
    terms = [number for number in range(8) if table >> number & 1]
    nothing = np.uint32(0) if wide else np.uint16(0)

    def compute(a: Any, b: Any, c: Any) -> Any:  # noqa: ANN401
        out = nothing
        for term in terms:
            out = out | ((a if term & 4 else ~a) & (b if term & 2 else ~b) & (c if term & 1 else ~c))
        return out

    return Function("u", "uuu", compute) if wide else Function("w", "www", compute, halves=True)


def _placed(instruction: Instruction, operands: tuple[Operand, ...], conversion: Placed) -> Step:
    """A conversion into a byte or a half of its destination."""
    target, *sources = operands
    chosen = op_sel(instruction, len(sources))
    number = chosen[3] if conversion.bits == 16 else chosen[2] + 2 * chosen[3]
    if any(chosen[:2]) or (conversion.bits == 16 and chosen[2]):
        raise unknown(instruction, "op_sel")
    kinds = zip(sources, conversion.sources, strict=True)
    readers = [heeding(reader(each, kind)) if kind == "f" else reader(each, kind) for each, kind in kinds]
    shift, keep = np.uint32(conversion.bits * number), np.uint32((1 << conversion.bits) - 1)
    put, old, compute = writer(target, "u"), reader(target, "u"), conversion.compute

    def act(wave: Wave) -> None:
        code = compute(*(take(wave) for take in readers))
        put(wave, (code & keep) << shift | old(wave) & ~(keep << shift))

    return make_step(instruction, act, reads=(*sources, target), writes=(target,))
