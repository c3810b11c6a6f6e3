"""What a matrix instruction's name says: takes v_mfma_f32_16x16x32_bf16, gives its sides, depth and element size."""

from __future__ import annotations

import re

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
