"""Tensor copies of gfx1250 against plain Python: draws descriptors, and copies tiles element by element.

Fields are those that Triton writes (TDMUtility.cpp at f4fca2c0): a tile of up to three dimensions of a tensor in
memory, its rows one after the other in LDS. Elements past the tensor's end read as zero and aren't stored; a load may
leave words out of LDS after each interval. EXEC means nothing. A copy may arrive at a barrier in LDS when it is done.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from random import Random

from tests.isa.plain_gfx12.cases import BASE, Case, Draw
from tests.isa.plain_gfx12.lds import arrived
from tests.isa.plain_gfx12.machine import LANES, M32

GROUPS = (16, 20, 28, 32)  # scalar registers of the four groups of a descriptor
WORDS = (4, 8, 4, 4)
BARRIER = 8000  # in LDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """A tile of a tensor; sizes and strides are in elements, the innermost dimension first, its stride being one."""

    element: int  # log2 of its bytes
    lds: int
    address: int
    tile: tuple[int, int, int]  # 0: the dimension isn't there
    tensor: tuple[int, int, int]  # from the tile's first element to the tensor's end
    strides: tuple[int, int]
    interval: int = 0  # data words between paddings; a power of two
    padding: int = 0  # words left out
    arrives: bool = False
    does: bool = True

    @property
    def bytes(self) -> int:
        return 1 << self.element

    def words(self) -> list[list[int]]:
        """The four groups."""
        flags = [(self.element, 16), (int(self.arrives), 18)]
        if self.interval:
            flags += [(1, 20), (self.interval.bit_length() - 2, 22), (self.padding - 1, 25)]
        first = [(int(self.does), 0), (self.lds, 32), (self.address, 64), (2, 126)]
        second = [
            *flags, (BARRIER // 8 if self.arrives else 0, 32), (self.tensor[0], 48), (self.tensor[1], 80),
            (self.tile[0], 112), (self.tile[1], 128), (self.tile[2], 144), (self.strides[0], 160),
            (self.strides[1], 208),
        ]  # fmt: skip
        joined = [sum(value << place for value, place in fields) for fields in (first, second, [(self.tensor[2], 0)])]
        return [
            [each >> 32 * word & M32 for word in range(count)] for each, count in zip((*joined, 0), WORDS, strict=True)
        ]

    def elements(self) -> Iterator[tuple[int, int, bool]]:
        """Of each element its place in LDS and in memory, in bytes, and whether the tensor has it."""
        sizes = [each or 1 for each in self.tile]
        number = 0
        for z in range(sizes[2]):
            for y in range(sizes[1]):
                for x in range(sizes[0]):
                    shift = number * self.bytes
                    if self.interval:
                        shift += shift // (4 * self.interval) * 4 * self.padding
                    far = x + y * self.strides[0] + z * self.strides[1]
                    coordinates = zip((x, y, z), self.tensor, self.tile, strict=True)
                    inside = all(place < most for place, most, size in coordinates if size)
                    yield self.lds + shift, self.address + self.bytes * far, inside
                    number += 1


def _drawn_tile(random: Random, *, loads: bool) -> Tile:
    element, dimensions = random.randrange(4), random.choice((1, 2, 2, 2, 2, 2, 3))
    size = 1 << element
    tile = [random.randrange(1, 17) * (4 if element == 0 else 1), random.randrange(1, 9), random.randrange(1, 4)]
    tile = [each if place < dimensions else 0 for place, each in enumerate(tile)]
    tensor = [max(each + random.choice((0, 0, 5, -1, -3, -each)), 0) for each in tile]
    if tile[1] == 1:  # whether a single row may lie past the end, no public document says
        tensor[1] = max(tensor[1], 1)
    row = tile[0] + random.randrange(4)
    strides = (row, row * (tile[1] or 1) + random.randrange(9))
    pads = loads and random.random() < 0.5
    return Tile(
        element=element,
        lds=16 * random.randrange(64),
        address=BASE + size * random.randrange(128),
        tile=(tile[0], tile[1], tile[2]),
        tensor=(tensor[0], tensor[1] if dimensions > 1 else 0, tensor[2] if dimensions > 2 else 0),
        strides=strides,
        interval=random.choice((2, 4, 8, 16)) if pads else 0,
        padding=random.randrange(1, 5) if pads else 0,
        arrives=random.random() < 0.3,
        does=random.random() < 0.9,
    )


def _copy(opcode: str, random: Random) -> Case:
    case, loads = Case(random), "load" in opcode
    case.active = [random.random() < 0.5 for _ in LANES]
    tile = _drawn_tile(random, loads=loads)
    for first, group in zip(GROUPS, tile.words(), strict=True):
        case.after.s[first : first + len(group)] = group
    pending, start = random.randrange(3), random.randrange(2, 5)
    word = pending | random.randrange(8) << 29 | start << 32
    struct.pack_into("<Q", case.after.lds, BARRIER, word)
    case.begin()
    for here, there, inside in tile.elements() if tile.does else ():
        at = there - BASE
        if loads:
            element = case.before.memory[at : at + tile.bytes] if inside else bytes(tile.bytes)
            case.after.lds[here : here + tile.bytes] = element
        elif inside:
            case.after.memory[at : at + tile.bytes] = case.before.lds[here : here + tile.bytes]
    if tile.arrives and tile.does:
        struct.pack_into("<Q", case.after.lds, BARRIER, arrived(word, 1))
    names = [f"s[{first}:{first + count - 1}]" for first, count in zip(GROUPS, WORDS, strict=True)]
    case.text = f"{opcode} {', '.join(names if tile.tile[2] or random.random() < 0.1 else names[:2])}"
    return case


DRAWS: dict[str, Draw] = {opcode: partial(_copy, opcode) for opcode in ("tensor_load_to_lds", "tensor_store_from_lds")}
"""By opcode, what draws a case of it."""
