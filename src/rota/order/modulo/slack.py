"""Slack for uncertain latencies: takes a loop at its least II, gives starts with barriers and slack.

A schedule that merely has the least II stalls as soon as a load is late.  Among the schedules of that II this looks for
one in which loads land with time to spare before the barrier that waits for them; with that slack, for the fewest
barriers, then stages; then for the most slack of the tightest LDS read, then for the shortest register lives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from rota.order.modulo.barrier_constraints import (
    READ_SLACK,
    Constraint,
    lengthen_slack,
    of_barriers,
    shorten_lives,
)
from rota.order.modulo.choice import Choice
from rota.order.modulo.cpsat_modulo import Decision, Encoding, ModuloModel, Turn
from rota.order.modulo.scheduler import ModuloScheduler
from rota.order.modulo.slack_request import (
    MOST_BARRIERS,
    Request,
    barrier_counts,
    contests_of,
    no_harder,
    roomiest_of,
    rounds,
)
from rota.solver.effort import spent
from rota.solver.outcome import LARGEST_SEED, Outcome
from rota.solver.stopping import stopped

_FEW_BARRIERS = 2
_POLISH = 0.03  # of the solver's own measure, of which one unit is about four seconds, to improve what was found
_SHARES = 0.3, 1.0  # of the effort that a request is worth, one search after the other
_AT_HAND = 0.1  # of a share, where a schedule is known for a request that comes later
_HURRIED = 0.3  # of a share, to improve one that is a list
_READ_SLACK = 2  # part of the slack wished for reads with which a list is left as it is
_SEARCH = Turn(Encoding.INTERVALS, linear=1, probing=0, share=1.0)


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
    slack is looked for with short ones only; with shorter ones yet where lists find something.  INFEASIBLE if not even
    the easiest request is possible; OPEN if no search found anything with its effort, or before the scheduler's time
    limit.
    """
    ladder = _Ladder(choices, ii, scheduler)
    levels = tuple(_halves(landing, landing // 4))
    staged = (_FEW_BARRIERS, MOST_BARRIERS) if landing and ladder.strict != ladder.hopeful else ()
    steps = [(slack, ladder.strict, most) for most in staged for slack in levels]
    ladder.look_for_lists(steps or [(slack, ladder.hopeful, MOST_BARRIERS) for slack in levels])
    for slack, among, most in steps:
        found = ladder.climb(slack, 0, _SHARES[0], among, most=most)
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

    request: Request
    decision: Decision


class _Ladder:
    """Requests one after the other, and what is known of them: refuted, still open, or given up with their choice."""

    def __init__(self, choices: Sequence[Choice], ii: int, scheduler: ModuloScheduler) -> None:
        self.choices, self.ii, self.scheduler = choices, ii, scheduler
        self.deadline = spent() + scheduler.time_limit
        self.hopeful = tuple(range(len(choices)))
        most = max((len(each.problem.resources) for each in choices), default=0)
        self.strict = tuple(number for number in self.hopeful if len(choices[number].problem.resources) == most)
        self.refuted: list[Request] = []
        self.open: set[tuple[float, ...]] = set()
        self.fallback: _Found | None = None
        self.ended = Outcome.OPEN
        self._asked, self._hurry = False, 1.0
        self._at_once: dict[tuple[int, ...], Decision | None] = {}

    def search(self, attempt: int) -> _Search:
        """How to solve at the `attempt`-th time."""
        return _Search(scheduler=self.scheduler, deadline=self.deadline, attempt=attempt)

    def look_for_lists(self, steps: Iterable[tuple[int, Sequence[int], int]]) -> None:
        """See whether any of these steps, each a slack, choices and the most barriers, will find something at once."""
        for slack, among, most in steps:
            for asked in _by_barriers(self.choices, self.ii, slack, among):
                decision = self._known(roomiest_of(asked)) if asked[0].barriers <= most else None
                if decision is not None and decision.listed:
                    self._hurry = _AT_HAND
                    return

    def climb(
        self, slack: int, attempt: int, part: float, among: Sequence[int], *, most: int = MOST_BARRIERS
    ) -> _Found | None:
        """The first request with so much slack that is found, in their order, of these choices."""
        for asked in _by_barriers(self.choices, self.ii, slack, among):
            if asked[0].barriers > max(most, min(barrier_counts(asked[0].choice))):
                continue
            roomiest = roomiest_of(asked)
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
                at_hand = known.outcome is Outcome.FEASIBLE and request.number != roomiest.number
                share = part * _AT_HAND if at_hand else part
                decision = known if request is roomiest else self._solve(request, attempt, share)
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

    def _solve(self, request: Request, attempt: int, part: float) -> Decision:
        if any(no_harder(each, request) for each in self.refuted):
            return Decision(outcome=Outcome.INFEASIBLE)
        asked = (request.number, request.barriers, request.stages, request.slack, attempt, part)
        if asked in self.open:
            return Decision(outcome=Outcome.OPEN)
        found = self._known(request) or self.search(attempt).solve(request, part * self._hurry)
        if found.outcome is Outcome.INFEASIBLE:
            self.refuted.append(request)
        if found.outcome is Outcome.OPEN:
            self.open.add(asked)
        return found

    def _known(self, request: Request) -> Decision | None:
        """What bounds and lists say about a request, which is looked at once."""
        key = (request.number, request.barriers, request.stages, request.slack)
        if key not in self._at_once:
            self._at_once[key] = request.at_once()
        return self._at_once[key]


def _easiest(choices: Sequence[Choice], number: int, ii: int) -> Request:
    """What any other request for a choice implies: the most barriers and stages, and no slack.

    If this is refuted, all of them are; if it isn't found, none will be.
    """
    choice = choices[number]
    barriers, stages = max(barrier_counts(choice)), max(choice.stages)
    return Request(number=number, choice=choice, ii=ii, barriers=barriers, stages=stages, slack=0)


def _by_barriers(choices: Sequence[Choice], ii: int, slack: int, hopeful: Sequence[int]) -> Iterator[list[Request]]:
    """Requests, those with as many barriers together, few barriers first."""
    for barriers in sorted({count for number in hopeful for count in barrier_counts(choices[number])}):
        yield [
            Request(number=number, choice=choices[number], ii=ii, barriers=barriers, stages=stages, slack=slack)
            for number in hopeful
            if barriers in barrier_counts(choices[number])
            for stages in choices[number].stages
        ]


def _halves(slack: int, least: int = 1) -> Iterator[int]:
    """The slack, its half, and so on down to `least`; then none."""
    while slack >= max(least, 1):
        yield slack
        slack //= 2
    yield 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """How to solve: whose seed and workers, until when, and how many attempts came before."""

    scheduler: ModuloScheduler
    deadline: float
    attempt: int

    def solve(self, request: Request, part: float = 1.0, *, reading: int = 0, near: Decision | None = None) -> Decision:
        """A schedule as requested, with so much read slack, if some part of the effort it is worth finds one.

        `near` is one that was asked for less.
        """
        found = near or Decision(outcome=Outcome.OPEN)
        for contests in rounds(request.choice):
            if self._over:
                return Decision(outcome=Outcome.OPEN)
            model = request.model(reading, contests)
            model.begin_with(found)
            found = self._run(model, part * request.effort)
            if found.outcome is not Outcome.FEASIBLE:
                break
        return found

    def polish(self, request: Request, found: Decision, aim: Constraint) -> Decision:
        """The schedule found, or one with no less read slack that is better by some aim."""
        if self._over:
            return found
        model = request.model(found.named[READ_SLACK], contests_of(request.choice))
        model.begin_with(found)
        better = self._run(model.apply(aim), _POLISH)
        return found if better.starts is None else better

    @property
    def _over(self) -> bool:
        return stopped() or spent() >= self.deadline

    def _run(self, model: ModuloModel, effort: float) -> Decision:
        seed = (self.scheduler.seed + self.attempt) % (LARGEST_SEED + 1)
        return model.solve(self.deadline - spent(), _SEARCH, workers=self.scheduler.workers, seed=seed, effort=effort)


def _roomiest(found: _Found, levels: Sequence[int], reading: int, search: _Search) -> Settled:
    """A schedule as found, or with more of the slack wished for; its least read slack as large as was found, too.

    Then its registers' lives are short.
    """
    request, best = _landing_later(found, levels, search)
    part = _SHARES[0] * (_HURRIED if best.listed else 1)
    # Asked for outright, slack is found far faster than when it is the solver's aim.
    wanted = reading
    while wanted > best.named[READ_SLACK]:
        better = request.at_once(wanted) or search.solve(request, part, reading=wanted)
        if better.starts is not None:
            best = better
            break
        wanted //= 2 if better.outcome is Outcome.INFEASIBLE or best.listed else 4
    if best.listed and _READ_SLACK * best.named[READ_SLACK] >= reading:
        return _settled(request, best)
    best = search.polish(request, best, lengthen_slack)
    return _settled(request, search.polish(request, best, shorten_lives(request.choice.deliveries)))


def _landing_later(found: _Found, levels: Sequence[int], search: _Search) -> _Found:
    """With more slack for loads, beginning with what was found without: that is often near."""
    for slack in levels:
        if slack > found.request.slack:
            request = replace(found.request, slack=slack)
            part = _SHARES[0] * (_HURRIED if found.decision.listed else 1)
            better = request.at_once() or search.solve(request, part, near=found.decision)
            if better.starts is not None:
                return _Found(request, better)
    return found


def _settled(request: Request, found: Decision) -> Settled:
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
