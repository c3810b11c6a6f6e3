"""Whether an alarm can happen: takes a path to it, gives that no launch takes any path like it, or one that may.

A path that the proof followed stands for all that came to one of its states.  An alarm is ruled out if, from the last
state backwards, every way leads to conditions that can't hold together: the ends of paths are what is asked about, and
an end that can't be is not followed further back.  Where a loop can be followed back for ever, the search gives up.
"""

from __future__ import annotations

from dataclasses import dataclass

from rota.prove.bit_vectors import EFFORT, Answer, BitVectors, Reply
from rota.prove.conditions import Chain, Chronicle, Event, Path, events_of
from rota.prove.meter import Budget, Meter
from rota.prove.path_terms import PathTerms

_MOST_EVENTS = 6_000
_MOST_QUESTIONS = 60
_TO_ASK = 100  # steps for every question, besides what z3 counts
_TOO_LONG = "the path is too long to ask about"
NO_ANSWER = "z3 came to no answer within its effort"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Possible:
    """A path from the start that may be taken: its conditions, and an example."""

    terms: PathTerms
    reply: Reply


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsettled:
    """Neither ruled out nor shown: why."""

    why: str


class Feasibility:
    """Asks about paths of one proof."""

    def __init__(self, chronicle: Chronicle, make: BitVectors, meter: Meter | None = None) -> None:
        self._chronicle, self._make, self._meter = chronicle, make, meter or Meter(Budget())
        self.questions = 0

    def of(self, path: Path) -> Possible | Unsettled | None:
        """A path that leads to the same place and may be taken; None if no launch takes any."""
        doubt: Unsettled | None = None
        ends: list[tuple[int, tuple[Chain, ...]]] = [(path[0], (path[1],))]
        tried: dict[tuple[int, ...], Unsettled | None] = {}
        until = self.questions + _MOST_QUESTIONS
        while ends:
            if self.questions >= until:
                return doubt or Unsettled(why=f"{_MOST_QUESTIONS} questions about ways to it were not enough")
            state, chains = ends.pop()
            whole = self._from_start(state, chains)
            name = tuple(map(id, whole))
            if name not in tried:
                found = self._ask(0, whole)
                if isinstance(found, Possible):
                    return found
                tried[name] = found
                doubt = doubt or found
            if not state:
                if tried[name] is not None:
                    return tried[name]
            elif self._ask(state, chains) is not None:  # else it can't be, whatever comes before
                ends += [(before, (chain, *chains)) for before, chain in reversed(self._chronicle.arrivals[state])]
        return None

    def _from_start(self, state: int, chains: tuple[Chain, ...]) -> tuple[Chain, ...]:
        """The way by which the first path came to the state, and then the end of one."""
        before: list[Chain] = []
        while state:
            state, chain = self._chronicle.arrivals[state][0]
            before.append(chain)
        return (*reversed(before), *chains)

    def _ask(self, state: int, chains: tuple[Chain, ...]) -> Possible | Unsettled | None:
        """Can what happens from a state on be?  None if not."""
        events: list[Event] = [event for chain in chains for event in events_of(chain)]
        if len(events) > _MOST_EVENTS:
            return Unsettled(why=_TOO_LONG)
        if over := self._meter.over:
            return Unsettled(why=f"the budget of {over} is used up")
        self.questions += 1
        self._meter.spend(_TO_ASK + len(events))
        try:
            terms = PathTerms(self._make, self._chronicle.known[state], events)
        except RecursionError:
            return Unsettled(why=_TOO_LONG)
        reply = self._make.ask(terms.conditions, min(EFFORT, self._meter.units_left))
        self._meter.spend(units=reply.units)
        if reply.answer is Answer.NEVER:
            return None
        if reply.answer is Answer.UNKNOWN:
            return Unsettled(why=NO_ANSWER)
        return Possible(terms=terms, reply=reply)
