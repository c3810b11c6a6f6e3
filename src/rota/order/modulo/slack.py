"""Slack for uncertain latencies: takes a loop at its least II, gives starts with barriers and slack.

A schedule that merely has the least II stalls as soon as a load is late.  Among the schedules of that II this looks for
one in which loads land with time to spare before the barrier that waits for them; with that slack, for the fewest
barriers, then stages; then for the most slack of the tightest LDS read, then for the shortest register lives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from rota.order.modulo.barrier_constraints import (
    READ_SLACK,
    Constraint,
    demand_read_slack,
    fix_barriers,
    hand_over,
    keep_turns,
    lengthen_slack,
    of_barriers,
    pin_slots,
    place_barriers,
    shorten_lives,
)
from rota.order.modulo.cpsat_modulo import Decision, Encoding, ModuloModel, Turn, keep_gaps, share
from rota.order.modulo.handover import Delivery, Handover
from rota.order.modulo.modulo_model import Contest, Frame, Gap, Hold
from rota.order.modulo.modulo_problem import ModuloProblem
from rota.order.modulo.scheduler import ModuloScheduler
from rota.solver.effort import spent
from rota.solver.outcome import LARGEST_SEED, Outcome
from rota.solver.stopping import stopped

_MOST_BARRIERS = 3  # an iteration, where their slots are free
_FEW_BARRIERS = 2
# In the solver's own, reproducible measure, of which one unit is about four seconds: to find, per op, at least and at
# most; and to improve.
_EFFORT_PER_OP, _LEAST_EFFORT, _MOST_EFFORT, _POLISH = 0.002, 0.05, 0.9, 0.03
_SHARES = 0.3, 1.0  # of that effort, one search after the other
_SEARCH = Turn(Encoding.INTERVALS, linear=1, probing=0, share=1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One way to run the loop: its problem, what it hands over, and what is settled beforehand.

    `pinned` ops have the given slot, all in the last stage unless they are `staged` freely; the ops of a chain start in
    turn; `barriers` are slots, where they are not free, and groups of waves pass each of them `behind` slots apart, or
    a barrier so much later does as well.  Reads that are `gathered` are over at a barrier before their first use.
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
    gathered: tuple[Handover, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """Starts, the slots of the barriers, how late loads and reads may be, and which of the choices it is."""

    choice: int
    starts: tuple[int, ...]
    barriers: tuple[int, ...]
    landing_slack: int
    read_slack: int


def settle(
    choices: Sequence[Choice], ii: int, *, landing: int, reading: int, scheduler: ModuloScheduler
) -> Settled | Outcome:
    """The fewest barriers, then the earlier choice, that leaves loads the wanted slack, or half of it, and so on.

    More than two barriers, and then choices that leave turns open, are for when nothing else is found with any slack:
    they cost more clocks than slack saves.
    What is refuted with much room is refuted with less, so the easiest of many requests is asked for first.  Search
    times have a heavy tail: every request gets a short search before any gets a longer one, by another seed, and less
    slack is looked for with short ones only.  INFEASIBLE if not even the easiest request is possible; OPEN if no search
    found anything with its effort, or before the scheduler's time limit.
    """
    ladder = _Ladder(choices, ii, scheduler)
    levels = tuple(_halves(landing, landing // 4))
    for most in (_FEW_BARRIERS, _MOST_BARRIERS) if landing and ladder.strict != ladder.hopeful else ():
        for slack in levels:
            found = ladder.climb(slack, 0, _SHARES[0], ladder.strict, most=most)
            if found is not None:
                return _roomiest(found, levels, reading, ladder.search(0))
    for slack in levels:
        for attempt, part in enumerate(_SHARES if slack == landing else _SHARES[:1]):
            found = ladder.climb(slack, attempt, part, ladder.hopeful)
            if found is not None:
                return _roomiest(found, levels, reading, ladder.search(attempt))
            ladder.ask_the_easiest()
            if not ladder.hopeful:
                return ladder.ended
    found = ladder.fallback
    if found is None:
        return Outcome.OPEN
    return _roomiest(found, levels, reading, ladder.search(0))


class _Found(NamedTuple):
    """A request and what was found for it."""

    request: _Request
    decision: Decision


class _Ladder:
    """Requests one after the other, and what is known of them: refuted, still open, or given up with their choice."""

    def __init__(self, choices: Sequence[Choice], ii: int, scheduler: ModuloScheduler) -> None:
        self.choices, self.ii, self.scheduler = choices, ii, scheduler
        self.deadline = spent() + scheduler.time_limit
        self.hopeful = tuple(range(len(choices)))
        most = max((len(each.problem.resources) for each in choices), default=0)
        self.strict = tuple(number for number in self.hopeful if len(choices[number].problem.resources) == most)
        self.refuted: list[_Request] = []
        self.open: set[tuple[float, ...]] = set()
        self.fallback: _Found | None = None
        self.ended = Outcome.OPEN
        self._asked = False

    def search(self, attempt: int) -> _Search:
        """How to solve at the `attempt`-th time."""
        return _Search(scheduler=self.scheduler, deadline=self.deadline, attempt=attempt)

    def climb(
        self, slack: int, attempt: int, part: float, among: Sequence[int], *, most: int = _MOST_BARRIERS
    ) -> _Found | None:
        """The first request with so much slack that is found, in their order, of these choices."""
        for asked in _by_barriers(self.choices, self.ii, slack, among):
            if asked[0].barriers > max(most, min(_barrier_counts(asked[0].choice))):
                continue
            roomiest = max(asked, key=lambda each: (each.stages, sum(n for _, n in each.choice.copies), each.number))
            known = self._solve(roomiest, attempt, part)
            if known.outcome is Outcome.OPEN and slack and (self._asked or among != self.hopeful):
                # A horizon that is too long makes for a long search.
                alike = (each for each in asked if each.number == roomiest.number and each is not roomiest)
                solved = (_Found(each, self._solve(each, attempt, part)) for each in alike)
                found = next((each for each in solved if each.decision.outcome is not Outcome.INFEASIBLE), None)
                if found is not None and found.decision.outcome is Outcome.FEASIBLE:
                    return found
                continue
            for request in asked:
                decision = known if request is roomiest else self._solve(request, attempt, part)
                if decision.outcome is Outcome.FEASIBLE:
                    return _Found(request, decision)
        return None

    def ask_the_easiest(self) -> None:
        """Give up choices for which not even the easiest request is found; once."""
        if self._asked:
            return
        self._asked = True
        found = {number: self._solve(_easiest(self.choices, number, self.ii), 0, 1.0) for number in self.hopeful}
        self.hopeful = tuple(number for number, each in found.items() if each.outcome is Outcome.FEASIBLE)
        if all(each.outcome is Outcome.INFEASIBLE for each in found.values()):
            self.ended = Outcome.INFEASIBLE
        if self.hopeful:
            first = self.hopeful[0]
            self.fallback = _Found(_easiest(self.choices, first, self.ii), found[first])

    def _solve(self, request: _Request, attempt: int, part: float) -> Decision:
        if any(_no_harder(each, request) for each in self.refuted):
            return Decision(outcome=Outcome.INFEASIBLE)
        asked = (request.number, request.barriers, request.stages, request.slack, attempt, part)
        if asked in self.open:
            return Decision(outcome=Outcome.OPEN)
        found = self.search(attempt).solve(request, part)
        if found.outcome is Outcome.INFEASIBLE:
            self.refuted.append(request)
        if found.outcome is Outcome.OPEN:
            self.open.add(asked)
        return found


def _no_harder(one: _Request, other: _Request) -> bool:
    """Does whatever meets the other request meet this one, too?"""
    first, second = one.choice, other.choice
    return (
        one.slack <= other.slack
        and one.barriers >= other.barriers
        and one.stages >= other.stages
        and (first.pinned, first.staged, first.barriers) == (second.pinned, second.staged, second.barriers)
        and set(first.problem.resources) <= set(second.problem.resources)
        and set(first.chains) <= set(second.chains)
        and (first.behind, first.gathered) == (second.behind, second.gathered)
        and all(more >= less for (_, more), (_, less) in zip(first.copies, second.copies, strict=True))
    )


def _easiest(choices: Sequence[Choice], number: int, ii: int) -> _Request:
    """What any other request for a choice implies: the most barriers and stages, and no slack.

    If this is refuted, all of them are; if it isn't found, none will be.
    """
    choice = choices[number]
    barriers, stages = max(_barrier_counts(choice)), max(choice.stages)
    return _Request(number=number, choice=choice, ii=ii, barriers=barriers, stages=stages, slack=0)


def _by_barriers(choices: Sequence[Choice], ii: int, slack: int, hopeful: Sequence[int]) -> Iterator[list[_Request]]:
    """Requests, those with as many barriers together, few barriers first."""
    for barriers in sorted({count for number in hopeful for count in _barrier_counts(choices[number])}):
        yield [
            _Request(number=number, choice=choices[number], ii=ii, barriers=barriers, stages=stages, slack=slack)
            for number in hopeful
            if barriers in _barrier_counts(choices[number])
            for stages in choices[number].stages
        ]


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
    return range(1, 2 if choice.gathered else _MOST_BARRIERS + 1)  # reads are gathered to save turns


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """How to solve: whose seed and workers, until when, and how many attempts came before."""

    scheduler: ModuloScheduler
    deadline: float
    attempt: int

    def solve(
        self, request: _Request, part: float = 1.0, *, reading: int = 0, near: Decision | None = None
    ) -> Decision:
        """A schedule as requested, with so much read slack, if some part of the effort it is worth finds one.

        `near` is one that was asked for less.
        """
        found = near or Decision(outcome=Outcome.OPEN)
        for contests in _rounds(request.choice):
            if self._over:
                return Decision(outcome=Outcome.OPEN)
            model = request.model(reading, contests)
            model.begin_with(found)
            found = self._run(model, part * request.effort)
            if found.outcome is not Outcome.FEASIBLE:
                break
        return found

    def polish(self, request: _Request, found: Decision, aim: Constraint) -> Decision:
        """The schedule found, or one with no less read slack that is better by some aim."""
        if self._over:
            return found
        model = request.model(found.named[READ_SLACK], _contests(request.choice))
        model.begin_with(found)
        better = self._run(model.apply(aim), _POLISH)
        return found if better.starts is None else better

    @property
    def _over(self) -> bool:
        return stopped() or spent() >= self.deadline

    def _run(self, model: ModuloModel, effort: float) -> Decision:
        seed = (self.scheduler.seed + self.attempt) % (LARGEST_SEED + 1)
        return model.solve(self.deadline - spent(), _SEARCH, workers=self.scheduler.workers, seed=seed, effort=effort)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """One number of barriers and stages, and the slack that loads must have."""

    number: int
    choice: Choice
    ii: int
    barriers: int
    stages: int
    slack: int

    @property
    def effort(self) -> float:
        """What to spend on finding it."""
        return min(_LEAST_EFFORT + _EFFORT_PER_OP * len(self.choice.problem.ops), _MOST_EFFORT)

    def model(self, reading: int, contests: Iterable[Contest]) -> ModuloModel:
        """What must hold if reads are to have so much slack and ops keep to these contests."""
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
            *(share(contest, Encoding.INTERVALS) for contest in contests),
            keep_turns(choice.chains),
            demand_read_slack(choice.deliveries, problem, reading),
            place_barriers(self.barriers) if choice.barriers is None else fix_barriers(choice.barriers),
            hand_over(choice.handovers, problem, self.slack, choice.behind),
            hand_over(choice.gathered, problem, self.slack),
        )


def _roomiest(found: _Found, levels: Sequence[int], reading: int, search: _Search) -> Settled:
    """A schedule as found, or with more of the slack wished for; its least read slack as large as was found, too.

    Then its registers' lives are short.
    """
    request, best = _landing_later(found, levels, search)
    # Asked for outright, slack is found far faster than when it is the solver's aim.
    wanted = reading
    while wanted > best.named[READ_SLACK]:
        better = search.solve(request, _SHARES[0], reading=wanted)
        if better.starts is not None:
            best = better
            break
        wanted //= 2 if better.outcome is Outcome.INFEASIBLE else 4
    best = search.polish(request, best, lengthen_slack)
    return _settled(request, search.polish(request, best, shorten_lives(request.choice.deliveries)))


def _landing_later(found: _Found, levels: Sequence[int], search: _Search) -> _Found:
    """With more slack for loads, beginning with what was found without: that is often near."""
    for slack in levels:
        if slack > found.request.slack:
            request = replace(found.request, slack=slack)
            better = search.solve(request, _SHARES[0], near=found.decision)
            if better.starts is not None:
                return _Found(request, better)
    return found


def _rounds(choice: Choice) -> Iterator[tuple[Contest, ...]]:
    """Contests to keep to, in one search after the other, each from what the one before has found.

    A crowd without a single pinned op stays out of the first: once stages, reads and barriers have their places, room
    for the many is soon found around them, while finding all at once rarely succeeds.
    """
    contests = tuple(_contests(choice))
    crowd = max(contests, key=lambda contest: len(contest.holds), default=None)
    if crowd is not None and not any(hold.op in choice.pinned for hold in crowd.holds):
        yield tuple(contest for contest in contests if contest is not crowd)
    yield contests


def _contests(choice: Choice) -> Iterator[Contest]:
    """Resources on which not everything is pinned, nor decided by another that the same ops hold alike.

    Uses longer than II don't occur at an II that the units allow.
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
    return Settled(
        choice=request.number,
        starts=tuple(start - shift for start in ordered),
        barriers=tuple(sorted(of_barriers(found.named))),
        landing_slack=request.slack,
        read_slack=found.named[READ_SLACK],
    )
