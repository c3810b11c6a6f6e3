"""Packing: takes stretches of time that may overlap, gives each a track on which nothing is in its way."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar


class Extent(Protocol):
    """Something with a beginning and an end."""

    @property
    def start(self) -> float:
        """When it begins."""
        ...

    @property
    def end(self) -> float:
        """When something else may begin."""
        ...


T = TypeVar("T", bound=Extent)


def pack(stretches: Iterable[T]) -> list[tuple[T, int]]:
    """By their beginnings, each with the lowest track that is free."""
    ends: list[float] = []
    placed = []
    for stretch in sorted(stretches, key=lambda stretch: (stretch.start, stretch.end)):
        track = next((track for track, end in enumerate(ends) if end <= stretch.start), len(ends))
        ends[track : track + 1] = [stretch.end]
        placed.append((stretch, track))
    return placed
