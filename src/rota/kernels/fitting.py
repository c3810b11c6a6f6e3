"""Do a shape's numbers fit together: takes a shape with its matrix instruction, gives D102 for what leaves a rest.

Asked when a loop is made and not when a shape is: settings are changed one at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from rota.check import bad_field
from rota.targets.mfma import shape_named


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
    named = shape_named(shape.instruction)
    if named not in (None, (side, side, depth)):
        expected = f"({named[0]}, {named[2]}), the side and depth of {shape.instruction}"
        raise bad_field(shape, "mma", shape.mma, expected)
    for name, part in parts.items():
        if getattr(shape, name) % part:
            raise bad_field(shape, name, getattr(shape, name), f"a multiple of {part}")
