"""Which bytes of LDS a tensor copy touches, from the scalar registers that describe it.

The first group holds whether it is done at all and where it begins in LDS; the second the size of an element, padding,
and the sides of the tile.  Rows of the tile follow each other in LDS; after each so many words some are left out.  What
lies beyond the tensor is written as zeros, so its sides don't matter (Triton, TDMUtility.cpp; the manual's section
10.11, second hand).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rota.prove.symbol import Linear, Value

WORD = 4
_MOST_PIECES = 4096


class Field(NamedTuple):
    """Bits of one register of a group."""

    name: str
    group: int
    word: int
    first: int
    bits: int


DONE, PLACE = Field("count", 0, 0, 0, 2), Field("LDS address", 0, 1, 0, 32)
_GATHERS = Field("gather or scatter", 0, 0, 31, 1)
_MULTICAST, _ARRIVES = Field("mask of workgroups", 1, 0, 0, 16), Field("arrival at an mbarrier", 1, 0, 18, 1)
_ITERATES, _PADS = Field("iteration", 1, 0, 19, 1), Field("padding", 1, 0, 20, 1)
_ELEMENT = Field("size of an element", 1, 0, 16, 2)
_INTERVAL, _AMOUNT = Field("interval of padding", 1, 0, 22, 3), Field("amount of padding", 1, 0, 25, 7)
_SIDES = (Field("tile_dim0", 1, 3, 16, 16), Field("tile_dim1", 1, 4, 0, 16), Field("tile_dim2", 1, 4, 16, 16))
BARRIER, _UNIT = Field("mbarrier's address", 1, 1, 0, 16), 8  # bytes that it counts
_UNSUPPORTED = (_GATHERS, _MULTICAST, _ITERATES)
NEEDED = frozenset((each.group, each.word) for each in (DONE, PLACE, _ELEMENT, *_SIDES))
"""Words of the groups that decide which bytes it touches."""


class UnknownFieldError(Exception):
    """A field of the description isn't known, or asks for what the proof doesn't have."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(f"its {field} {why}")
        self.field = field


@dataclass(frozen=True, slots=True)
class TensorTile:
    """The pieces of LDS from its address on, in bytes, and the byte of the barrier where it arrives when it is done."""

    pieces: tuple[tuple[int, int], ...]
    arrives_at: int | None = None


def find_tile(read: Callable[[Field], Value], *, polls: bool) -> TensorTile:
    """The tile of a copy; `read` gives a field's value, of the barrier's only if somebody `polls` one.

    Raises UnknownFieldError where one isn't known.
    """

    def known(field: Field) -> int:
        value = read(field)
        if isinstance(value, Linear) or len(found := {int(each) for each in np.asarray(value).flat}) != 1:
            raise UnknownFieldError(field.name, "is not known")
        return found.pop()

    for field in _UNSUPPORTED:
        if known(field):
            raise UnknownFieldError(field.name, "is not modelled")
    size = 1 << known(_ELEMENT)
    for side in _SIDES:
        size *= max(known(side), 1)  # dimensions that it doesn't have are 0
    arrives = known(BARRIER) * _UNIT if known(_ARRIVES) and polls else None
    if not known(_PADS):
        return TensorTile(((0, size),), arrives)
    between, skipped = WORD << known(_INTERVAL) + 1, WORD * (known(_AMOUNT) + 1)
    count = -(-size // between)
    if count > _MOST_PIECES:
        raise UnknownFieldError(_PADS.name, "makes too many pieces")
    starts = range(0, count * between, between)
    pieces = tuple((each // between * (between + skipped), min(between, size - each)) for each in starts)
    return TensorTile(pieces, arrives)
