"""What the cycle model saw: takes nothing, gives the values of one run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from rota.program.timeline import Cause, Lane

Lost = dict[tuple[int, int], int]
"""Clocks by (entry's key, cause's number)."""


class Occupied(NamedTuple):
    """A unit held by one instruction, for the timeline."""

    wave: int
    lane: Lane
    issued: int
    start: int
    end: int
    done: int
    key: int
    trip: int


class Stood(NamedTuple):
    """A wave that did not issue, for the timeline."""

    wave: int
    start: int
    end: int
    cause: Cause
    key: int
    trip: int


class Crossed(NamedTuple):
    """A wave at a barrier, for the timeline."""

    wave: int
    arrived: int
    released: int
    key: int
    trip: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """When each wave began its trips and ended the last (`edges`), and the clocks it lost in each, by entry and cause.

    `idle` are the clocks for which a SIMD's matrix unit waited for the wave that then used it, by what held that up.

    If `period` is not 0, the unit's state repeated every `period` trips at the end; else it never did.
    """

    edges: tuple[tuple[int, ...], ...]
    lost: tuple[tuple[Lost, ...], ...]
    idle: tuple[tuple[Lost, ...], ...]
    end: int
    issued: int
    period: int
    occupied: tuple[Occupied, ...]
    stood: tuple[Stood, ...]
    crossed: tuple[Crossed, ...]

    @property
    def averaged_over(self) -> int:
        """The last trips that a mean is taken over: one period, or else the later half."""
        return self.period or max((len(self.edges[0]) - 1) // 2, 1)

    @property
    def clocks_per_trip(self) -> float:
        """The steady rate, by wave 0's edges."""
        edges, count = self.edges[0], self.averaged_over
        return (edges[-1] - edges[-1 - count]) / count
