"""Room for what is uncertain: takes a loop at its least II, gives starts with barriers and slack.

A schedule that merely has the least II stalls as soon as a load is late.  Of all schedules of that II this picks one
in which loads land with time to spare before the barrier that waits for them, then the one whose tightest LDS read has
the most, then the one that holds its registers the shortest.  Fewer barriers and fewer stages come first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rota.graph.handover import Delivery, Handover
from rota.graph.modulo import ModuloProblem
from rota.order.cpsat_model import Outcome
from rota.order.cpsat_modulo import Decision, Encoding, ModuloModel, Turn, keep_gaps, share
from rota.order.meeting import (
    READ_SLACK,
    barrier_name,
    demand_read_slack,
    fix_barriers,
    hand_over,
    keep_turns,
    pin_slots,
    place_barriers,
    shorten_lives,
)
from rota.order.modulo_model import Contest, Frame, Gap, Hold
from rota.order.stopping import stopped

_MOST_BARRIERS = 4
# In the solver's own, reproducible measure, of which one unit is about four seconds: to find, per op, at least and at
# most; and to improve.
_EFFORT_PER_OP, _LEAST_EFFORT, _MOST_EFFORT, _POLISH = 0.002, 0.05, 0.9, 0.15
_SHARES = 0.3, 1.0  # of that effort, one search after the other
_SECONDS = 20.0  # for any one search, in case the measure deceives
_SEARCH = Turn(Encoding.INTERVALS, linear=1, probing=0, share=1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One way to run the loop: its problem, what it hands over, and what is settled beforehand.

    `pinned` ops have the given slot, all in the last stage unless they are `staged` freely; the ops of a chain start in
    turn; `barriers` are slots, where they are not free, and groups of waves pass each of them `behind` slots apart.
    """

    problem: ModuloProblem
    copies: tuple[tuple[str, int], ...]
    handovers: tuple[Handover, ...]
    deliveries: tuple[Delivery, ...]
    stages: range
    pinned: Mapping[int, int] = field(default_factory=dict)
    staged: bool = False
    chains: tuple[tuple[int, ...], ...] = ()
    barriers: tuple[int, ...] | None = None
    behind: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """Starts, the slots of the barriers, how late loads and reads may be, and which of the choices it is."""

    choice: int
    starts: tuple[int, ...]
    barriers: tuple[int, ...]
    landing_slack: int
    read_slack: int


def settle(choices: Sequence[Choice], ii: int, landing: int, reading: int, *, seed: int = 0) -> Settled | None:
    """The fewest barriers, then the earlier choice, that leaves loads the wanted slack, or half of it, and so on.

    Search times have a heavy tail, so every request gets a short search before any gets a longer one, by another seed.
    None if none was found within the effort, or before the search was stopped, which proves nothing.
    """
    for slack in _halves(landing, landing // 4):
        requests = tuple(_requests(choices, ii, slack, seed))
        for attempt, part in enumerate(_SHARES):
            left = []
            for request in requests:
                if stopped():
                    return None
                tried = replace(request, seed=seed + attempt, share=part)
                found = tried.solved(0)
                if found.outcome is Outcome.FEASIBLE:
                    return _settled(tried, tried.roomiest(found, reading))
                if found.outcome is Outcome.OPEN:
                    left.append(request)
            requests = tuple(left)
    return None


def _requests(choices: Sequence[Choice], ii: int, slack: int, seed: int) -> Iterator[_Request]:
    for barriers in range(_MOST_BARRIERS + 1):
        for number, choice in enumerate(choices):
            if barriers in _barrier_counts(choice):
                for stages in choice.stages:
                    yield _Request(
                        number=number,
                        choice=choice,
                        ii=ii,
                        barriers=barriers,
                        stages=stages,
                        slack=slack,
                        seed=seed,
                        share=1.0,
                    )


def _halves(slack: int, least: int = 1) -> Iterator[int]:
    """The slack, its half, and so on down to `least`; then none."""
    while slack >= max(least, 1):
        yield slack
        slack //= 2
    yield 0


def _barrier_counts(choice: Choice) -> range:
    if not choice.handovers:
        return range(1)
    if choice.barriers is not None:
        return range(len(choice.barriers), len(choice.barriers) + 1)
    return range(1, _MOST_BARRIERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """One number of barriers and stages, the slack that loads must have, and how hard to search."""

    number: int
    choice: Choice
    ii: int
    barriers: int
    stages: int
    slack: int
    seed: int
    share: float

    def solved(self, reading: int) -> Decision:
        """A schedule with so much read slack, or why there is none."""
        effort = self.share * min(_LEAST_EFFORT + _EFFORT_PER_OP * len(self.choice.problem.ops), _MOST_EFFORT)
        return self._model(reading).solve(_SECONDS, _SEARCH, seed=self.seed, effort=effort)

    def roomiest(self, found: Decision, reading: int) -> Decision:
        """A schedule whose least read slack is as large as was found, and then its registers' lives short."""
        # Asked for outright, slack is found far faster than when it is the solver's aim.
        for wanted in _halves(reading):
            better = found if wanted <= found.named[READ_SLACK] else self.solved(wanted)
            if better.starts is not None:
                found = better
                break
        model = self._model(found.named[READ_SLACK])
        model.begin_with(found)
        model.model.maximize(model.named[READ_SLACK])
        found = _better(found, model.solve(_SECONDS, _SEARCH, seed=self.seed, effort=_POLISH))
        model = self._model(found.named[READ_SLACK])
        model.begin_with(found)
        model.apply(shorten_lives(self.choice.deliveries))
        return _better(found, model.solve(_SECONDS, _SEARCH, seed=self.seed, effort=_POLISH))

    def _model(self, reading: int) -> ModuloModel:
        choice, ii = self.choice, self.ii
        problem, last = choice.problem, (self.stages - 1) * ii
        frames = {
            op: Frame(earliest=last + choice.pinned[op], latest=last + choice.pinned[op])
            if op in choice.pinned and not choice.staged
            else Frame(earliest=0, latest=self.stages * ii - 1)
            for op in range(len(problem.ops))
        }
        gaps = [Gap(first=p, second=c, least=delay - distance * ii) for p, c, delay, distance in problem.arcs]
        return ModuloModel(ii, frames).apply(
            pin_slots(choice.pinned),
            keep_gaps(gaps),
            *(share(contest, Encoding.INTERVALS) for contest in _contests(choice)),
            keep_turns(choice.chains),
            demand_read_slack(choice.deliveries, problem, reading),
            place_barriers(self.barriers) if choice.barriers is None else fix_barriers(choice.barriers),
            hand_over(choice.handovers, problem, self.slack, choice.behind),
        )


def _better(known: Decision, found: Decision) -> Decision:
    return known if found.starts is None else found


def _contests(choice: Choice) -> Iterator[Contest]:
    """Resources on which not everything is pinned, nor decided by another that the same ops hold alike.

    Uses longer than II don't occur at an II that the units can bear.
    """
    holds = {resource.name: set[Hold]() for resource in choice.problem.resources}
    for op, described in enumerate(choice.problem.ops):
        for use in described.uses:
            holds[use.resource].add(Hold(op=op, offset=use.offset, length=use.occupancy))
    for resource in choice.problem.resources:
        own = holds[resource.name]
        implied = any(own < other for other in holds.values()) and resource.capacity == 1
        if not implied and not all(hold.op in choice.pinned for hold in own):
            ordered = tuple(sorted(own, key=lambda hold: (hold.op, hold.offset)))
            yield Contest(resource=resource.name, places=resource.capacity, holds=ordered)


def _settled(request: _Request, found: Decision) -> Settled:
    starts, ii = found.starts or {}, request.ii
    ordered = tuple(starts[op] for op in range(len(request.choice.problem.ops)))
    shift = min(ordered, default=0) // ii * ii
    slots = sorted(value for name, value in found.named.items() if name.startswith(barrier_name(0)[:-1]))
    return Settled(
        choice=request.number,
        starts=tuple(start - shift for start in ordered),
        barriers=tuple(slots),
        landing_slack=request.slack,
        read_slack=found.named[READ_SLACK],
    )
