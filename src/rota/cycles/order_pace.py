"""A loop's pace at a glance: takes a loop's steps, gives the clocks of a trip in any order of its entries.

The cycle model (`model`) runs every wave; a search that tries thousands of orders asks for less, and one wave stands
for all.  Loads in front of the loop have landed when it begins.  This ranks orders; what a schedule takes, the model
says.  The compiled core gives the same clocks as `WavePace`, faster; without it `WavePace` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from rota.cycles.instructions import Code
from rota.cycles.native.pace import NativePace, library
from rota.cycles.paced_loop import PacedLoop
from rota.cycles.wave_pace import WavePace

_TRIPS = 2  # ahead of the one that is taken; by then loads of the first have landed


class Trip(NamedTuple):
    """A trip's clocks, the entries that time is lost for, and margins, one for each place in the order.

    Lost is time of the matrix unit, or of the wave where it is short of turns.  A margin says for how long the matrix
    unit is busy yet when the entry is about to be issued; it is below 0 if the unit has been free for so long.
    """

    clocks: int
    late: tuple[int, ...]
    margins: tuple[int, ...]


class OrderPace:
    """Trips through one loop."""

    def __init__(self, loop: PacedLoop) -> None:
        self.loop = loop

    def settled(self, order: Sequence[int], ahead: Sequence[int] | None = None) -> WavePace:
        """A wave that has run through `ahead`, a part of the order's end, or twice through the whole order."""
        pace = WavePace(self.loop)
        for trip in _settling(order, ahead):
            pace.trip(trip)
        return pace

    def clocks(self, order: Sequence[int], ahead: Sequence[int] | None = None) -> int:
        """Clocks of a trip through the entries in this order, when the wave has settled."""
        if self._native is not None:
            return self._native.clocks(order, _settling(order, ahead))
        pace = self.settled(order, ahead)
        start = pace.time
        pace.trip(order)
        return pace.time - start

    def trip(self, order: Sequence[int], ahead: Sequence[int] | None = None) -> Trip:
        """The same trip, entry by entry."""
        if self._native is not None:
            return Trip(*self._native.trip(order, _settling(order, ahead)))
        pace = self.settled(order, ahead)
        start, late, margins = pace.time, list[int](), list[int]()
        for entry in order:
            margins.append(pace.busy_yet(entry))
            late += [entry] if pace.issue(entry) else []
        return Trip(pace.time + self.loop.edge - start, tuple(late), tuple(margins))

    @cached_property
    def _native(self) -> NativePace | None:
        core = library()
        return None if core is None else NativePace(core, self.loop)


def _settling(order: Sequence[int], ahead: Sequence[int] | None) -> list[Sequence[int]]:
    return [order] * _TRIPS if ahead is None else [ahead]


def in_lockstep(code: Code) -> bool:
    """Do all waves run the same entries?"""
    return len(set(code.roles)) == 1
