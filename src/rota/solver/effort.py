"""Effort: takes what searches have cost, gives a clock that runs alike on every machine.

A limit in seconds of a wall clock would end a search earlier on a busy machine than on an idle one, and so give another
answer.  Here a second is so much of the solver's own measure of work as takes about a second on an idle processor, with
a little for every search on top; whatever else runs, the same search ends at the same place.
"""

from __future__ import annotations

from contextvars import ContextVar

_SECONDS_PER_UNIT = 4.0  # of the solver's measure; about what it takes on one processor of 2020
_EACH = 0.01  # seconds to build a model


class _Spent:
    """Mutable, so that threads of one search share it."""

    __slots__ = ("seconds",)

    def __init__(self) -> None:
        self.seconds = 0.0


_SPENT: ContextVar[_Spent | None] = ContextVar("spent", default=None)


def _own() -> _Spent:
    own = _SPENT.get()
    if own is None:
        own = _Spent()
        _SPENT.set(own)
    return own


def spent() -> float:
    """Seconds of work so far; only differences say anything."""
    return _own().seconds


def spend(seconds: float) -> None:
    """Count work that was done."""
    _own().seconds += seconds


def spend_search(units: float) -> None:
    """Count a search by the solver's own measure."""
    spend(_EACH + _SECONDS_PER_UNIT * units)


def units(seconds: float) -> float:
    """What so many seconds are in the solver's own measure."""
    return max(seconds, 0.0) / _SECONDS_PER_UNIT
