"""What the cycle model saw: takes nothing, gives the values of one run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from rota.cycles.timeline import Lane

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
    cause: str
    key: int
    trip: int


class Crossed(NamedTuple):
    """A wave at a barrier, for the timeline."""

    wave: int
    arrived: int
    released: int
    key: int
    trip: int
    barrier: str
    arrives: bool
    awaits: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """When each wave began its trips and ended the last (`edges`), and the clocks it lost in each, by entry and cause.

    `causes` say what the numbers of causes stand for.  `idle` are the clocks for which a SIMD's matrix unit waited for
    the wave that then used it, by what held that up.

    If `period` is not 0, the unit's state repeated after the last `period` trips; else it never did.
    """

    edges: tuple[tuple[int, ...], ...]
    lost: tuple[tuple[Lost, ...], ...]
    idle: tuple[tuple[Lost, ...], ...]
    end: int
    issued: int
    causes: tuple[str, ...]
    period: int
    occupied: tuple[Occupied, ...]
    stood: tuple[Stood, ...]
    crossed: tuple[Crossed, ...]

    @property
    def apart(self) -> bool:
        """Was a wave through before another was in its last trip?  Nothing ties them, and one starves."""
        return not self.period and min(edges[-1] for edges in self.edges) < max(edges[-2] for edges in self.edges)

    @property
    def trips(self) -> int:
        """How often wave 0 went round."""
        return len(self.edges[0]) - 1

    @property
    def averaged_over(self) -> int:
        """The last trips that losses are averaged over: one period, all if waves drift apart, else the later half."""
        return self.trips if self.apart else self._recent

    @property
    def clocks_per_trip(self) -> float:
        """The steady rate, by wave 0's edges; if waves drift apart, not faster than the last of them came through."""
        edges = self.edges[0]
        recent = (edges[-1] - edges[-1 - self._recent]) / self._recent
        if not self.apart:
            return recent
        return max(recent, (max(each[-1] for each in self.edges) - edges[0]) / self.trips)

    @property
    def _recent(self) -> int:
        return self.period or max(self.trips // 2, 1)
