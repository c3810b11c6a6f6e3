"""What a picture shows: takes nothing, gives the frozen values that every way of drawing reads.

Times are clocks of the compute unit.  A scene holds one stretch of steady state; a band of it is one wave.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from rota.cycles.timeline import Lane

PREDICTED = "predicted, not measured"


class Bar(NamedTuple):
    """An entry at work on a unit, in one go or in `pieces`.

    `stage` picks the shade; `key` names the entry and `needs` those that it reads from.
    """

    start: float
    end: float
    label: str
    stage: int
    details: tuple[str, ...]
    key: str = ""
    needs: tuple[str, ...] = ()
    pieces: tuple[tuple[float, float], ...] = ()

    @property
    def worked(self) -> tuple[tuple[float, float], ...]:
        """When the unit was really held."""
        return self.pieces or ((self.start, self.end),)


class StallMark(NamedTuple):
    """A stretch in which a wave could issue nothing, and what it waited for."""

    start: float
    end: float
    cause: str
    details: tuple[str, ...]


class Mark(NamedTuple):
    """A moment: a wait that was passed, a barrier that let its waves go, or a wave that said it is there."""

    at: float
    label: str
    details: tuple[str, ...]


class Curve(NamedTuple):
    """A level that changes in steps, from each point's time on; `limit` is what the machine can hold."""

    name: str
    unit: str
    points: tuple[tuple[float, int], ...]
    limit: int | None = None


class Span(NamedTuple):
    """A buffer in use, from its first write to its last read."""

    start: float
    end: float


class Buffer(NamedTuple):
    """One copy of an LDS tile and when it is in use."""

    name: str
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stripe:
    """One wave: what its entries do on each unit, where it stalls, and what its counters hold.

    `arrivals` are those at which it doesn't wait at once, as at a barrier in two parts.
    """

    name: str
    lanes: tuple[tuple[Lane, tuple[Bar, ...]], ...]
    stalls: tuple[StallMark, ...] = ()
    waits: tuple[Mark, ...] = ()
    barriers: tuple[Mark, ...] = ()
    arrivals: tuple[Mark, ...] = ()
    curves: tuple[Curve, ...] = ()

    def bars(self, lane: Lane) -> tuple[Bar, ...]:
        """The bars of one lane; none if the band doesn't have it."""
        return next((bars for own, bars in self.lanes if own is lane), ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A stretch of time and everything that happens in it.

    `facts` are the headline: interval, busy share, bound.  `windows` are the times at which an iteration begins.
    """

    title: str
    facts: tuple[str, ...]
    start: float
    end: float
    bands: tuple[Stripe, ...]
    windows: tuple[float, ...] = ()
    buffers: tuple[Buffer, ...] = ()
    notes: tuple[str, ...] = ()
    tile: str = "K-tile"

    @property
    def headline(self) -> str:
        """Title and facts on one line, ending in what kind of numbers these are."""
        return " · ".join((self.title, *self.facts, PREDICTED))


def clipped(start: float, end: float, scene: Scene) -> tuple[float, float] | None:
    """The part of a stretch that lies in the scene, if there is any."""
    first, last = max(start, scene.start), min(end, scene.end)
    return (first, last) if first < last else None


def ticks(span: float, most: int) -> tuple[int, ...]:
    """Round times from 0 on, evenly apart, at most `most` of them."""
    step = next(step for step in _STEPS if span // step < most)
    return tuple(range(0, int(span) + 1, step))


# Powers of two while single instructions count, round decimal numbers above.
_STEPS = (4, 8, 16, 32, 64, *(digit * 10**power for power in range(2, 15) for digit in (1, 2, 5)))
