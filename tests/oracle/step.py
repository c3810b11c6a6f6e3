"""What one entry makes a wave do, in the words of docs/machine_model.md: takes nothing, gives `Step` and `WrongError`.

The oracle shares no code with the proof, the executor or the repair.  Of a loop by values it reads the declaration and
derives for itself which spots an entry reads and writes; what an entry's `Effect` claims is used only to tell which
op, iteration and buffer it stands for.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from rota.program.entry import Entry
    from tests.oracle.wave import Wave

LDS, REGISTER = "LDS", "register"

Spot = tuple[Any, ...]  # (LDS, ...) or (REGISTER, ...): what ops read and write, never overlapping
Content = Hashable


class Unset(enum.Enum):
    """What a spot holds that no op of the loop has filled, or that two have fought over."""

    UNTOUCHED = "what was there before the loop"
    GARBAGE = "nobody knows which of two writes"


class Version(NamedTuple):
    """A value of one iteration; before iteration 0, what the loop begins with."""

    value: str
    iteration: int


class WrongError(Exception):
    """What an execution breaks; the first argument names the obligation."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind


class Source(NamedTuple):
    """A spot that is read, and the version that has to be there, if only one will do."""

    spot: Spot
    wanted: Version | None = None


class Kind(enum.Enum):
    """What a wave does at a step."""

    WORK = "work"
    WAIT = "wait"
    BARRIER = "barrier"
    NOTHING = "nothing"
    END = "the end of a run of the loop, behind which another may begin"


Does = Callable[["Wave", Sequence[Content]], Sequence[Content]]


class Step(NamedTuple):
    """One entry at one trip: `tokens` go to `counter` (a wait has `left` of them), `does` makes the results.

    An LDS instruction (`in_lds_order`) keeps its order with its wave's other ones.  Waves of the roles in `by` execute
    the entry; a barrier names where they arrive and what they wait for.
    """

    name: str
    kind: Kind
    counter: str = ""
    tokens: int = 0
    left: int = 0
    sources: tuple[Source, ...] = ()
    targets: tuple[Spot, ...] = ()
    does: Does | None = None
    in_lds_order: bool = False
    by: tuple[int, ...] = ()
    arrives: str = ""
    awaits: str = ""


class Counters(NamedTuple):
    """What a machine's counters do: the count that means no wait, and which don't count down in order."""

    no_wait: dict[str, int]
    unordered: frozenset[str] = frozenset()

    def in_order(self, counter: str) -> bool:
        """Is the oldest op always the first to be over?"""
        return counter not in self.unordered


class Meaning:
    """A front end: gives each entry's step at a k, and says whether a finished wave did what was declared."""

    def step(self, entry: Entry, k: int) -> Step:
        """What the entry does in the trip whose k is this."""
        raise NotImplementedError

    def check(self, wave: Wave, tiles: int) -> None:
        """Raises `WrongError` unless the wave computed all of the loop."""
        raise NotImplementedError
