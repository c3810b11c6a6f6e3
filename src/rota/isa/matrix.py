"""Matrix instructions: takes an MFMA, gives a `Step` that multiplies in the register layout of the ISA.

Layouts (AMD CDNA3 ISA, "Matrix Arithmetic Instructions"): lane l holds row or column l mod M of A or B, and of K the
part l div M.  Of D it holds column l mod N; its register r holds row 4 * (l div 16) + r for 16x16 results, and row
8 * (r div 4) + 4 * (l div 32) + r mod 4 for 32x32 ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from rota.isa.formats import BITS, Elements, elements_of
from rota.isa.kernel_facts import LANES
from rota.isa.operand import File, Operand, parse_operand, unknown
from rota.isa.step import Step

if TYPE_CHECKING:
    from rota.isa.disassembly import Instruction
    from rota.isa.wave import Wave
    from rota.targets.architecture import Architecture

_OPCODE = re.compile(
    r"^v_mfma_(?P<sum>f32|i32)_(?P<m>16|32)x(?P<n>16|32)x(?P<k>\d+)_(?P<types>f8f6f4|[a-z]+\d+(?:_[a-z]+8)?)$"
)
_EIGHT_BIT = {0: "fp8", 1: "bf8"}  # cbsz and blgp of f8f6f4; the 6-bit and 4-bit formats are not run


def decode_matrix(instruction: Instruction, architecture: Architecture) -> Step | None:
    """The step of an MFMA of one block, or None if the opcode isn't one."""
    found = _OPCODE.match(instruction.opcode)
    if found is None or found["m"] != found["n"]:
        return None
    size, depth = int(found["m"]), int(found["k"])
    first_type, second_type = _types(found["types"], instruction)
    d, a, b, c = (parse_operand(text, instruction) for text in instruction.operands)
    if (
        depth * size * BITS[first_type] != a.count * 32 * LANES
        or depth * size * BITS[second_type] != b.count * 32 * LANES
    ):
        raise unknown(instruction, "operand width")
    left, right = (elements_of(each, architecture.float8) for each in (first_type, second_type))
    multiply = _multiplier(size, depth, left, right, (a, b))
    add = _adder(size, c, np.dtype(np.int32 if found["sum"] == "i32" else np.float32))
    first, last = d.first, d.first + d.count
    factors, addends, results = a.rows + b.rows, c.rows, d.rows

    def act(wave: Wave) -> None:
        wave.v[first:last] = add(wave, multiply(wave)).view(np.uint32)

    sources, written = frozenset(factors + addends), frozenset(results)
    return Step(instruction=instruction, act=act, sources=sources, results=written, touches=sources | written)


def _types(name: str, instruction: Instruction) -> tuple[str, str]:
    modifiers = dict(modifier.partition(":")[::2] for modifier in instruction.modifiers)
    if name == "f8f6f4":
        formats = [int(modifiers.pop(field, "0")) for field in ("cbsz", "blgp")]
        if modifiers or not set(formats) <= set(_EIGHT_BIT):
            raise unknown(instruction, f"modifiers {' '.join(instruction.modifiers)!r}")
        return _EIGHT_BIT[formats[0]], _EIGHT_BIT[formats[1]]
    if modifiers:
        raise unknown(instruction, f"modifiers {' '.join(instruction.modifiers)!r}")
    both = tuple(name.split("_")) if "_" in name else (name, name)
    if not set(both) <= set(BITS):
        raise unknown(instruction)
    return both[0], both[1]


def _multiplier(
    size: int, depth: int, left: Elements, right: Elements, operands: tuple[Operand, Operand]
) -> Callable[[Wave], Any]:
    a, b = (slice(operand.first, operand.first + operand.count) for operand in operands)
    shape = (depth, size)

    def product(wave: Wave) -> Any:  # noqa: ANN401  # a square array
        return left(wave.v[a]).reshape(shape).T @ right(wave.v[b]).reshape(shape)

    return product


def _adder(size: int, c: Operand, dtype: np.dtype[Any]) -> Callable[[Wave, Any], Any]:
    """Brings the product into the registers' layout and adds srcC."""
    quads, blocks = size * size // LANES // 4, LANES // size
    first, last = c.first, c.first + c.count
    constant = np.uint32(c.literal & 0xFFFF_FFFF).view(dtype)

    def total(wave: Wave, product: Any) -> Any:  # noqa: ANN401
        spread = product.reshape(quads, blocks, 4, size).transpose(0, 2, 1, 3).reshape(quads * 4, LANES)
        if c.file is File.LITERAL:
            return spread + constant
        return spread + wave.v[first:last].view(dtype)

    return total
