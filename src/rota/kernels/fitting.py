"""Do a shape's numbers fit together: takes a shape with its matrix instruction, gives D102 for what leaves a rest.

Asked when a loop is made and not when a shape is: settings are changed one at a time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Protocol

from rota.declare.check import bad_field

_SIZES = re.compile(r"_(\d+)x(\d+)x(\d+)_")


class Shape(Protocol):
    """What a matrix instruction is asked to do."""

    @property
    def instruction(self) -> str:
        """Its name, which says rows, columns and depth."""
        ...

    @property
    def mma(self) -> tuple[int, int]:
        """Its side and its depth."""
        ...


def check_fit(shape: Shape, parts: Mapping[str, int]) -> None:
    """`mma` is what the instruction's name says, and each field a multiple of its part: a rest would be left out."""
    side, depth = shape.mma
    named = _SIZES.search(shape.instruction)
    if named and tuple(map(int, named.groups())) != (side, side, depth):
        expected = f"({named[1]}, {named[3]}), the side and depth of {shape.instruction}"
        raise bad_field(shape, "mma", shape.mma, expected)
    for name, part in parts.items():
        if getattr(shape, name) % part:
            raise bad_field(shape, name, getattr(shape, name), f"a multiple of {part}")
