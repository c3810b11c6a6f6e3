"""One request of a search for slack: so many barriers, stages and slots to spare, of one choice.

Takes what is asked, gives what is known about it without a solver, and the model that a solver is asked about.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from rota.order.modulo.barrier_constraints import (
    READ_SLACK,
    demand_read_slack,
    fix_barriers,
    hand_over,
    keep_turns,
    name_barriers,
    pin_slots,
    place_barriers,
)
from rota.order.modulo.choice import Choice
from rota.order.modulo.cpsat_modulo import Decision, Encoding, ModuloModel, keep_gaps, share
from rota.order.modulo.modulo_model import Contest, Frame, Gap, Hold
from rota.order.modulo.slack_bound import out_of_reach
from rota.order.modulo.slack_list import SlackList, is_simple
from rota.solver.outcome import Outcome

MOST_BARRIERS = 3
"""An iteration, where their slots are free."""
# In the solver's own, reproducible measure, of which one unit is about four seconds: to find, per op, at least and at
# most.
_EFFORT_PER_OP, _LEAST_EFFORT, _MOST_EFFORT = 0.002, 0.05, 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
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

    def at_once(self, reading: int = 0) -> Decision | None:
        """What can be said without a solver: that there is no such schedule, or one that a list makes."""
        wanted = {"stages": self.stages, "landing": self.slack, "reading": reading}
        if out_of_reach(self.choice, self.ii, barriers=self.barriers, **wanted):
            return Decision(outcome=Outcome.INFEASIBLE)
        if not is_simple(self.choice, self.ii):
            return None
        found = SlackList(self.choice, self.ii, **wanted).search(self.barriers)
        if found is None:
            return None
        return Decision(
            outcome=Outcome.FEASIBLE,
            starts=dict(enumerate(found.starts)),
            named={READ_SLACK: reading, **name_barriers(found.barriers)},
            listed=True,
        )

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


def no_harder(one: Request, other: Request) -> bool:
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


def roomiest_of(asked: Sequence[Request]) -> Request:
    """Of requests with as many barriers the one that is refuted only if the others are, or nearly so."""
    return max(asked, key=lambda each: (each.stages, sum(n for _, n in each.choice.copies), each.number))


def barrier_counts(choice: Choice) -> range:
    """How many barriers an iteration may have."""
    if not choice.handovers:
        return range(1)
    if choice.barriers is not None:
        return range(len(choice.barriers), len(choice.barriers) + 1)
    return range(1, 2 if choice.gathered else MOST_BARRIERS + 1)  # reads are gathered to save turns


def rounds(choice: Choice) -> Iterator[tuple[Contest, ...]]:
    """Contests to keep to, in one search after the other, each from what the one before has found.

    A crowd without a single pinned op stays out of the first: once stages, reads and barriers have their places, room
    for the many is soon found around them, while finding all at once rarely succeeds.
    """
    contests = tuple(contests_of(choice))
    crowd = max(contests, key=lambda contest: len(contest.holds), default=None)
    if crowd is not None and not any(hold.op in choice.pinned for hold in crowd.holds):
        yield tuple(contest for contest in contests if contest is not crowd)
    yield contests


def contests_of(choice: Choice) -> Iterator[Contest]:
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
