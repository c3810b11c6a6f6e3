"""Floats in scalar registers: instructions of the scalar unit, and those that a vector unit computes once.

They compute what the vector instruction of that name does, on one number. The high half of a result of 16 bits is 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rota.isa.disassembly import Instruction
from rota.isa.opcodes import IsaUnit
from rota.isa.valu.convert import CONVERSIONS
from rota.isa.valu.floating import FLOATING, ORDERS
from rota.isa.valu.integer import Function
from rota.isa.wave.operand import Operand, Reader, as_bits, parse_operand, reader, scalar_writer, unknown
from rota.isa.wave.wave import DENORM32, Step, Wave, clamp_float, flush_denormals, make_step, obey_mode

_PREFIXES = ("v_s_", "s_")
_FUSED = {"fmac": (1, 2, 0), "fmaak": (1, 2, 3), "fmamk": (1, 2, 3)}  # which operands are multiplied and added
_LETTERS = {"f16": "h", "f32": "f"}


def decode_uniform(instruction: Instruction) -> Step | None:
    spec = instruction.spec
    scalar = spec.unit is IsaUnit.SALU
    if not (scalar or spec.is_scalar) or not {*spec.types} & {*_LETTERS}:
        return None
    operands = tuple(parse_operand(text, instruction) for text in instruction.operands)
    if scalar and spec.words[0] == "cmp":
        return _compare(instruction, operands)
    if spec.root == "cvt_hi" and spec.types == ("f32", "f16"):
        return _write(instruction, operands[0], (_high_half(operands[1]),), CONVERSIONS["v_cvt_f32_f16"])
    function = _function_of(instruction)
    if function is None:
        return None
    sources = tuple(operands[place] for place in _FUSED.get(spec.root, range(1, len(operands))))
    readers = tuple(reader(each, kind) for each, kind in zip(sources, function.sources, strict=True))
    return _write(instruction, operands[0], readers, function)


def _function_of(instruction: Instruction) -> Function | None:
    spec = instruction.spec
    prefix = next(each for each in _PREFIXES if spec.name.startswith(each))
    name = f"v_{spec.name.removeprefix(prefix)}"
    if spec.root in _FUSED:
        name = f"v_fma_{spec.type}"
    return FLOATING.get(name) or CONVERSIONS.get(name)


def _high_half(operand: Operand) -> Reader:
    take = reader(operand, "u")
    return lambda wave: (take(wave) >> np.uint32(16)).astype(np.uint16).view(np.float16)


def _write(instruction: Instruction, target: Operand, readers: tuple[Reader, ...], function: Function) -> Step:
    if {*instruction.modifiers} - {"clamp"}:
        raise unknown(instruction, f"modifiers {' '.join(instruction.modifiers)!r}")
    kinds, clamp = function.sources, "clamp" in instruction.modifiers
    takes = [obey_mode(take) if kind == "f" else take for take, kind in zip(readers, kinds, strict=True)]
    put, compute = scalar_writer(target), function.plain or function.compute

    def act(wave: Wave) -> None:
        result = compute(*(take(wave) for take in takes))
        if function.result == "f" and wave.mode & DENORM32 != DENORM32:
            result = flush_denormals(result)
        result = clamp_float(wave, result) if clamp else result
        put(wave, int(np.asarray(as_bits(result, function.result)).reshape(-1)[0]))

    return make_step(instruction, act)


def _compare(instruction: Instruction, operands: tuple[Operand, ...]) -> Step | None:
    spec = instruction.spec
    order: Callable[[Any, Any], Any] | None = ORDERS.get(spec.words[-1])
    if order is None:
        return None
    left, right = (obey_mode(reader(each, "f")) if spec.type == "f32" else reader(each, "h") for each in operands)

    def act(wave: Wave) -> None:
        wave.scc = int(order(left(wave), right(wave)))

    return make_step(instruction, act)
