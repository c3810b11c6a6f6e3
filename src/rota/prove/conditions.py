"""How states are come to: takes what paths decide, rename and widen, gives for each state all ways that lead to it.

A path is cut where it comes to a state that was met before, so one alarm may stand for many paths: the `Chronicle`
keeps, for each state, every stretch by which it was come to, and what the state itself knows.  Within a stretch the
events stand in their order.  Unknowns that aren't made of arguments alone have a value per stretch between two
renamings: `Renamed` says what the new ones were.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rota.prove.symbol import Symbol

if TYPE_CHECKING:
    from rota.prove.decisions import Decisions


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Decided:
    """A path takes a condition for true or false: of one wave, or of the whole workgroup."""

    condition: Symbol
    holds: bool
    wave: int | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Renamed:
    """Each new name is an old unknown plus a number."""

    names: Mapping[Symbol, tuple[Symbol, int]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Widened:
    """Each new unknown, times a number, is an old one times a number (or nothing) plus a number."""

    counters: Mapping[Symbol, tuple[int, Symbol | None, int, int]]


Event = Decided | Renamed | Widened
Chain = tuple["Chain | None", Event] | None
"""Events since a state, the last one first: paths share what they have in common."""
Path = tuple[int, Chain]
"""The number of the last state, and what happened since."""
START: Path = (0, None)


def events_of(chain: Chain) -> list[Event]:
    """In the order in which they happened."""
    found: list[Event] = []
    while chain is not None:
        chain, event = chain
        found.append(event)
    found.reverse()
    return found


@dataclass(slots=True, kw_only=True, eq=False)
class Chronicle:
    """All states in the order in which they were met first, the start being number 0.

    `arrivals` has, for each state, the ways to it: the first one is that of the path that met it first.
    """

    arrivals: list[list[Path]] = field(default_factory=lambda: [[]])
    known: list[Decisions | None] = field(default_factory=lambda: [None])

    def begin(self, known: Decisions) -> int:
        """Notes a new state, from which the path goes on, and gives its number."""
        number = len(self.arrivals)
        self.arrivals.append([known.path])
        known.path = (number, None)
        self.known.append(known.copy())
        return number

    def arrive(self, number: int, path: Path) -> None:
        """Notes one more way by which a state is come to."""
        self.arrivals[number].append(path)

    def replace(self, number: int, known: Decisions) -> None:
        """A state that nobody has gone on from knows less now."""
        known.path = (number, None)
        self.known[number] = known.copy()


def forgetting(path: Path) -> Path:
    """The path, at whose end all names are given anew, and nothing is said of what they were."""
    return path[0], (path[1], Renamed(names={}))
