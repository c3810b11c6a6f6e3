"""A wave under way: takes its instructions and counters, gives the state that the cycle model moves forward."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from rota.cycles.instructions import ModelInstruction
from rota.cycles.measured_run import Lost
from rota.program.kinds import Unit
from rota.program.machine import Confidence, Counter, Fact

Queued = tuple[int, int]
"""How many clocks an op stood in a queue, and the number of the cause that this is."""


class Tokens:
    """One counter of one wave: when its tokens are given back, as far as that is known.

    `done` and `queued` go by the order in which the counter comes down: that of issue, or, where the machine keeps
    none, that of completion.  `landed` are tokens that are over while an older one isn't.  With `at_once` all that the
    counter tracks completes in order and is known to when it is issued, as LDS ops do.
    """

    __slots__ = ("at_once", "cause", "done", "holds", "in_order", "issued", "landed", "queued")

    def __init__(self, counter: Counter, cause: int) -> None:
        self.holds = counter.holds.value
        self.in_order = counter.in_order
        self.at_once = counter.in_order and all(kind.unit is Unit.LDS for kind in counter.counts)
        self.cause = cause
        self.issued = 0
        self.done: list[int] = []
        self.queued: list[Queued] = []
        self.landed: dict[int, tuple[int, Queued]] = {}

    def complete(self, token: int, done: int, queued: Queued) -> None:
        """A token's op is over at `done`; in order, the token is given back when all older ones are."""
        if not self.in_order:
            place = bisect_right(self.done, done)
            self.done.insert(place, done)
            self.queued.insert(place, queued)
            return
        self.landed[token] = done, queued
        while (following := self.landed.pop(len(self.done), None)) is not None:
            self.done.append(max(following[0], self.done[-1]) if self.done else following[0])
            self.queued.append(following[1])


_UNCOUNTED = Counter(
    name="uncounted",
    holds=Fact(1 << 62, "tokens", Confidence.DOCUMENTED, "what no counter tracks fills none"),
    counts=frozenset(),
    in_order=False,
)


def tokens_of(counters: Iterable[Counter], first_cause: int) -> list[Tokens]:
    """One wave's counters, and behind them one for ops that nothing counts; causes of waits are numbered like them."""
    return [Tokens(counter, first_cause + number) for number, counter in enumerate((*counters, _UNCOUNTED))]


class Waiting(NamedTuple):
    """What a wave sleeps for: a token, by its place in the order in which the counter comes down."""

    tokens: Tokens
    token: int
    since: int
    key: int
    full: bool


class ModelWave:
    """One wave: where it stands, what it has under way.  The last of its `tokens` are of ops that nothing counts."""

    __slots__ = (
        "code",
        "edges",
        "ended",
        "held_up",
        "idle",
        "idles",
        "last",
        "lost",
        "number",
        "pc",
        "priority",
        "ready",
        "simd",
        "start",
        "tokens",
        "trip",
        "trips",
        "waits_for",
    )

    def __init__(
        self, number: int, simd: int, code: tuple[ModelInstruction, ...], registers: int, tokens: list[Tokens]
    ) -> None:
        self.number = number
        self.simd = simd
        self.code = code
        self.pc = self.start = self.trip = self.priority = self.ended = 0
        self.last = -1
        self.ready = [0] * registers
        self.tokens = tokens
        self.waits_for: Waiting | None = None
        self.edges: list[int] = []
        self.lost: Lost = {}
        self.idle: Lost = {}
        self.trips: list[Lost] = []
        self.idles: list[Lost] = []
        self.held_up: list[tuple[int, int, int, int]] = []

    def blame(self, key: int, cause: int, start: int, end: int) -> None:
        """The matrix unit stood idle: for as long as this wave was held up since its last MFMA, that was why.

        The rest, in which it issued other instructions, goes to the MFMA that came late.
        """
        idle = self.idle
        rest = end - start
        for each, why, begin, finish in self.held_up:
            shared = min(finish, end) - max(begin, start)
            if shared > 0:
                idle[each, why] = idle.get((each, why), 0) + shared
                rest -= shared
        if rest:
            idle[key, cause] = idle.get((key, cause), 0) + rest

    def next_trip(self) -> None:
        """Close the accounts of one trip."""
        self.trips.append(self.lost)
        self.idles.append(self.idle)
        self.lost = {}
        self.idle = {}


@dataclass(slots=True)
class DmaLanding:
    """A global memory op on its way: `late` counts the clocks it queued."""

    wave: ModelWave
    tokens: Tokens
    token: int
    key: int
    port: int
    late: int
    issued: int
    trip: int
