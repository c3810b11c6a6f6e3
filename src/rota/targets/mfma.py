"""What a matrix instruction's name says: takes v_mfma_f32_16x16x32_bf16, gives its sides, depth and element size."""

from __future__ import annotations

import re
from typing import NamedTuple

from rota.program.element import BITS, takes_formats
from rota.targets import cdna

_LANES, _REGISTER_BYTES = cdna.LANES.value, cdna.REGISTER_BYTES.value  # no other family has these instructions
_SIDES_AND_DEPTH = re.compile(r"_(\d+)x(\d+)x(\d+)")


def shape_named(instruction: str) -> tuple[int, int, int] | None:
    """Rows, columns and depth of the product; None if the name doesn't say."""
    found = _SIDES_AND_DEPTH.search(instruction)
    if found is None:
        return None
    rows, columns, depth = map(int, found.groups())
    return rows, columns, depth


def element_bytes_named(instruction: str) -> int:
    """Bytes of an element of A or B: the names of 16-bit types, and of no others, end in 16."""
    return 2 if instruction.endswith("16") else 1


class MfmaRegisters(NamedTuple):
    """Registers per lane of one instruction's operands and of its result."""

    a: int
    b: int
    result: int


def registers_named(instruction: str, *bits: int) -> MfmaRegisters | None:
    """The fewest registers that one instruction takes: elements spread over the lanes, results of four bytes.

    `f8f6f4` instructions take elements of so many `bits`, one number for both factors or one for each; without any the
    narrowest count, which have four.
    """
    shape = shape_named(instruction)
    if shape is None:
        return None
    rows, columns, depth = shape
    named = min(BITS.values()) if takes_formats(instruction) else 8 * element_bytes_named(instruction)
    of_a, *_, of_b = (*bits, *bits) if bits else (named, named)
    per_register = 8 * _LANES * _REGISTER_BYTES
    return MfmaRegisters(
        rows * depth * of_a // per_register, columns * depth * of_b // per_register, rows * columns // _LANES
    )
