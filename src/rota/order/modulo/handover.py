"""What waves hand over through LDS: takes a loop by values and its copies, gives who must be done before whom.

Both directions need a barrier: what one wave loaded, all waves read; and what all waves have read, one overwrites.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from rota.program.kinds import Home
from rota.program.loop_spec import LoopSpec, Read


class Handover(NamedTuple):
    """Every op of `before` is over, in all waves, when one of `after`, `distance` iterations later, starts.

    `lands` if data arrives; otherwise a buffer becomes free.
    """

    value: str
    before: tuple[int, ...]
    after: tuple[int, ...]
    distance: int
    lands: bool


class Delivery(NamedTuple):
    """Registers that `reader` fills and `user`, `distance` iterations later, is the first kind of op to need."""

    reader: int
    user: int
    distance: int


def derive_handovers(spec: LoopSpec, copies: Mapping[str, int]) -> Iterator[Handover]:
    """Two for each LDS tile, its parts that are read together, and the distance at which they are."""
    number = {op.name: index for index, op in enumerate(spec.ops)}
    for value in spec.values:
        if value.home is not Home.LDS:
            continue
        readers: dict[Read, list[int]] = {}
        for index, op in enumerate(spec.ops):
            for read in op.reads:
                if read.value == value.name:
                    readers.setdefault(read, []).append(index)
        for read, ops in readers.items():
            writers = tuple(number[op.name] for op in spec.writers_of(read))
            yield Handover(value.name, writers, tuple(ops), read.distance, lands=True)
            free = copies.get(value.name, 1) - read.distance
            yield Handover(value.name, tuple(ops), writers, free, lands=False)


def derive_deliveries(spec: LoopSpec) -> Iterator[Delivery]:
    """From each read of LDS into registers to each op that uses them."""
    tiles = {value.name for value in spec.values if value.home is Home.LDS}
    filled = {
        name: index
        for index, op in enumerate(spec.ops)
        if any(read.value in tiles for read in op.reads)
        for name in op.writes
    }
    for index, op in enumerate(spec.ops):
        for read in op.reads:
            if read.value in filled:
                yield Delivery(filled[read.value], index, read.distance)
