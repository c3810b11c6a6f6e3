"""Limits of a search: how a solve can end, what it costs, and how another thread ends it early.

A search that is ended early behaves as if its time limit had come: it returns the best it has found. No search gets
more workers than the machine has processors: they would only take turns, and look at the clock too late.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event
from typing import Any, Protocol, TypeVar

from rota.errors import DeclarationError

LARGEST_SUM = 2**40  # far above any kernel, far below where the solver's 64-bit sums could overflow
LARGEST_SEED = 2**31 - 1  # of the solver


class Outcome(enum.Enum):
    """How a solve ended. OPEN: the limit came first, which says nothing about feasibility."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    OPEN = "open"


def library_missing(error: ImportError) -> DeclarationError:
    """D105: the solver of the CSP strategy is not installed."""
    return DeclarationError.of(
        "D105",
        "scheduling CSP needs a search here, and its solver ortools can't be imported",
        evidence=(("import error", str(error)), ("needed", "ortools 9.12 or later")),
        fixes=(
            "pip install 'ortools>=9.12'",
            "scheduling=SchedulingStrategy.GREEDY takes the list order and knows no limits",
        ),
    )


# Effort.
#
# A limit in seconds of a wall clock would end a search earlier on a busy machine than on an idle one, and so give
# another answer. Here a second is this much of the solver's own measure of work as takes about a second on an idle
# processor, with a little for every search on top; whatever else runs, the same search ends at the same place.

_SECONDS_PER_UNIT = 4.0  # of the solver's measure; about what it takes on one processor of 2020
_EACH = 0.01  # seconds to build a model


class _Spent:
    """Mutable, so that the threads of one search share it."""

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
    """Seconds of work so far; only differences mean anything."""
    return _own().seconds


def spend(seconds: float) -> None:
    _own().seconds += seconds


def spend_search(units: float) -> None:
    """Count a search by the solver's own measure."""
    spend(_EACH + _SECONDS_PER_UNIT * units)


def units(seconds: float) -> float:
    """Seconds in the solver's own measure."""
    return max(seconds, 0.0) / _SECONDS_PER_UNIT


# Ending searches early.
#
# A search that is ended early ends as if its time limit had come: with the best that it has found. No search gets
# more workers than the machine has processors: they would only take turns, and look at the clock too late.

Model_contra = TypeVar("Model_contra", contravariant=True)
Status_co = TypeVar("Status_co", covariant=True)


class Solver(Protocol[Model_contra, Status_co]):
    """What is needed of the solver, which other modules import."""

    @property
    def parameters(self) -> Any:  # noqa: ANN401  # the solver's own message
        ...

    def solve(self, model: Model_contra, /) -> Status_co: ...

    @property
    def deterministic_time(self) -> float:
        """What the last search cost, by the solver's own measure."""
        ...

    def stop_search(self) -> None:
        """End the running search, from another thread."""
        ...


_GRACE = 0.2  # seconds for a search that begins after the request: what must be searched for all the same is found so


class Stop:
    """Asks the searches of a block of code to end; any thread may ask, more than once."""

    __slots__ = ("_asked", "_running")

    def __init__(self) -> None:
        self._asked = Event()
        self._running: set[Solver[Any, Any]] = set()

    def ask(self) -> None:
        """End the running search and all later ones in the block."""
        self._asked.set()
        for solver in tuple(self._running):
            solver.stop_search()

    @property
    def asked(self) -> bool:
        return self._asked.is_set()

    @contextmanager
    def governing(self) -> Iterator[None]:
        """Searches inside the block obey this."""
        token = _STOP.set(self)
        try:
            yield
        finally:
            _STOP.reset(token)

    def run(self, solver: Solver[Model_contra, Status_co], model: Model_contra) -> Status_co:
        self._running.add(solver)
        if self.asked:
            solver.parameters.max_time_in_seconds = min(solver.parameters.max_time_in_seconds, _GRACE)
        try:
            return solver.solve(model)
        finally:
            self._running.discard(solver)


_STOP: ContextVar[Stop | None] = ContextVar("stop", default=None)


def stopped() -> bool:
    """True if searches should end here and now."""
    stop = _STOP.get()
    return stop is not None and stop.asked


def most_workers(asked: int) -> int:
    """As many workers as were asked for, but no more than this process has processors."""
    mine = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    return min(asked, len(mine))


def solve(solver: Solver[Model_contra, Status_co], model: Model_contra) -> Status_co:
    """The solver's answer; ends early when asked to."""
    # The solver's own handling of Ctrl-C ends one search of many, leaves the signal without Python's handler, and
    # aborts the process when the search runs in another thread than the one that the signal reaches (OR-Tools 9.15).
    solver.parameters.catch_sigint_signal = False
    solver.parameters.num_workers = most_workers(solver.parameters.num_workers)
    stop = _STOP.get()
    status = solver.solve(model) if stop is None else stop.run(solver, model)
    spend_search(solver.deterministic_time)
    return status
