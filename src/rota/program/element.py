"""Formats of matrix elements: takes the name of one, gives its bits.

A matrix instruction whose name ends in f8f6f4 takes any of them, each factor its own; other names say what they take.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

BITS: Mapping[str, int] = MappingProxyType({"fp8": 8, "bf8": 8, "fp6": 6, "bf6": 6, "fp4": 4})
"""Bits of an element by format."""

WIDEST = max(BITS.values())
"""The most bits that an element has, where its format isn't stated."""


def takes_formats(instruction: str) -> bool:
    """Are the formats of the factors chosen where it is issued?"""
    return instruction.endswith("f8f6f4")


def takes_scales(instruction: str) -> bool:
    """Does it multiply each block of its factors by a scale?"""
    return instruction.startswith("v_mfma_scale_")
