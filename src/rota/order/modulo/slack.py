"""Slack for uncertain latencies: among the schedules of least II, one that tolerates late loads.

A schedule that merely has the least II stalls as soon as a load is late. This search looks for one in which loads land
with time to spare before the barrier that waits for them; with that slack, for the fewest barriers, then stages; then
for the most slack of the tightest LDS read, then for the shortest register lives.

Of simple loops a list schedule is tried before a solver: starts around given barriers, or nothing. Once barriers and
computations have their slots, every other op has a window: from the barrier that it waits for to the barrier or the
computation that waits for it. Reads are placed as late as their windows allow, so that registers are held briefly, then
all others as early as possible. Barriers are tried in several places. Nothing is ever taken back, so a failure says
nothing; a result meets every precedence, window and unit, and takes a fraction of a solver's time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from operator import le
from typing import NamedTuple, TypeVar

from rota.errors import Concern, OrderError
from rota.order.graph import Arc, Cycle, longest_gaps, longest_starts
from rota.order.modulo.cpsat_modulo import (
    Contest,
    Decision,
    Encoding,
    Frame,
    Gap,
    Hold,
    ModuloModel,
    Turn,
    keep_gaps,
    share,
)
from rota.order.modulo.handover import Choice, Delivery, Handover, Meeting
from rota.order.modulo.modulo_problem import ModuloProblem
from rota.order.modulo.scheduler import ModuloScheduler
from rota.solver.limits import LARGEST_SEED, Outcome, spent, stopped

_TRIED = 96  # places for the barriers
_LISTS = 24  # where they leave windows: one of the first few does, or hardly any
_COMPARED = 8  # lists of which the best is taken
_GOLDEN = 0.6180339887498949, 0.7548776662466927, 0.8191725133961645  # steps that spread points evenly in 1, 2, 3 dims
_MEETINGS = 8  # ways for handovers to meet at them


class Listed(NamedTuple):
    """Starts of all ops, the slots of the barriers, and the least distance of any read after them."""

    starts: tuple[int, ...]
    barriers: tuple[int, ...]
    room: int


class _Tie(NamedTuple):
    """The second op starts this many slots after the first, within an iteration."""

    first: int
    second: int
    least: int


@dataclass(slots=True)
class _Windows:
    low: list[int]
    high: list[int]

    def narrow(self, ties: Sequence[_Tie]) -> _Windows | None:
        """The windows with all ties applied; None if an op has no start left."""
        low, high = list(self.low), list(self.high)
        changed = True
        while changed:
            changed = False
            for first, second, least in ties:
                if low[first] + least > low[second]:
                    low[second], changed = low[first] + least, True
            for first, second, least in reversed(ties):
                if high[second] - least < high[first]:
                    high[first], changed = high[second] - least, True
            if not all(map(le, low, high)):
                return None
        return _Windows(low, high)


def is_simple(choice: Choice, ii: int) -> bool:
    """True if stages of computations are settled, barriers aren't, and each unit is held by one op at a time.

    Where two groups of waves take turns at fixed barriers, no polish follows, and a list alone is slower.
    """
    single = all(resource.capacity == 1 for resource in choice.problem.resources)
    short = all(use.occupancy <= ii for op in choice.problem.ops for use in op.uses)
    return single and short and bool(choice.pinned) and not choice.staged and choice.barriers is None


class SlackList:
    """One request for a simple loop, with everything that doesn't depend on where barriers are."""

    def __init__(self, choice: Choice, ii: int, *, stages: int, landing: int, reading: int) -> None:
        self.choice, self.ii = choice, ii
        self.ops = choice.problem.ops
        last = (stages - 1) * ii
        self.fixed = {op: last + slot for op, slot in choice.pinned.items()}
        self.free = [op for op in range(len(self.ops)) if op not in self.fixed]
        self.readers = {reader for reader, _, _ in choice.deliveries}
        self.meetings = choice.meetings(landing, reading)
        self.uses = [[(use.resource, use.offset, (1 << use.occupancy) - 1) for use in op.uses] for op in self.ops]
        room, apart = _Room(ii, self.uses, {resource.name: 0 for resource in choice.problem.resources}), True
        for op, start in self.fixed.items():
            apart = apart and room.has(op, start)
            room.take(op, start)
        self.taken = room.taken
        self.ties = tuple(self._ties(reading))
        bounds = range(len(self.ops))
        given = _Windows([self.fixed.get(op, 0) for op in bounds], [self.fixed.get(op, last + ii - 1) for op in bounds])
        self.windows = given.narrow(self.ties) if apart else None
        self.inner = tuple(tie for tie in self.ties if not {tie.first, tie.second} & self.fixed.keys())
        self.near: dict[int, list[_Tie]] = {op: [] for op in self.free}
        for tie in self.ties:
            for op in {tie.first, tie.second} - self.fixed.keys():
                self.near[op].append(tie)

    def search(self, barriers: int) -> Listed | None:
        """Starts around this many barriers, in one of the first places that leave some.

        Among these, the one whose reads are farthest after their barriers: reads that crowd there delay computations.
        """
        if self.windows is None:
            return None
        ways = ((slots, windows) for slots in self._places(barriers) for windows in self._between(slots))
        found = islice(self._lists(islice(ways, _LISTS)), _COMPARED)
        return max(found, key=lambda each: each.room, default=None)

    def _lists(self, ways: Iterable[tuple[tuple[int, ...], _Windows]]) -> Iterator[Listed]:
        for slots, windows in ways:
            starts = self._place(windows)
            if starts is not None:
                room = min((starts[op] - windows.low[op] for op in self.readers), default=0)
                yield Listed(starts, slots, room)

    def _ties(self, reading: int) -> Iterator[_Tie]:
        """All ties except those that barriers enforce anyway."""
        kept = {
            (one, other, handover.distance): self.ops[one].latency + slack + lag
            for handover, slack, lag in self.meetings
            for one in handover.before
            for other in handover.after
        }
        for one, other, delay, distance in self.choice.problem.arcs:
            if one != other and delay > kept.get((one, other, distance), delay - 1):
                yield _Tie(one, other, delay - distance * self.ii)
        for one, other, delay, distance in self.choice.apart(reading):
            yield _Tie(one, other, delay - distance * self.ii)

    def _places(self, count: int) -> Iterator[tuple[int, ...]]:
        if not self.meetings:
            yield ()
            return
        steps = [_GOLDEN[count - 1] ** (number + 1) for number in range(count)] if count <= len(_GOLDEN) else []
        for number in range(_TRIED):
            slots = sorted({int(number * step % 1 * self.ii) for step in steps})
            if len(slots) == count:
                yield tuple(slots)

    def _between(self, barriers: Sequence[int]) -> Iterator[_Windows]:
        """The windows left if each handover is met at some instance of a barrier, one after the other."""
        if self.windows is not None:
            yield from islice(self._met(self.meetings, self.windows, barriers), _MEETINGS)

    def _met(self, meetings: Sequence[Meeting], windows: _Windows, barriers: Sequence[int]) -> Iterator[_Windows]:
        if not meetings:
            yield windows
            return
        (handover, slack, lag), *others = meetings
        over = max(windows.low[op] + self.ops[op].latency + slack for op in handover.before)
        begins = min(windows.high[op] + handover.distance * self.ii - lag for op in handover.after)
        instances = (range(over + (slot - over) % self.ii, begins + 1, self.ii) for slot in barriers)
        for pivot in sorted((each for some in instances for each in some), reverse=not handover.lands):
            left = _Windows(list(windows.low), list(windows.high))
            for op in handover.before:
                left.high[op] = min(left.high[op], pivot - self.ops[op].latency - slack)
            for op in handover.after:
                left.low[op] = max(left.low[op], pivot + lag - handover.distance * self.ii)
            narrowed = left.narrow(self.inner)
            if narrowed is not None:
                yield from self._met(others, narrowed, barriers)

    def _place(self, windows: _Windows) -> tuple[int, ...] | None:
        """Reads as late as possible, the last first; then the others as early as possible, the most urgent first."""
        room, starts = _Room(self.ii, self.uses, dict(self.taken)), dict(self.fixed)
        late = sorted((op for op in self.free if op in self.readers), key=lambda op: (-windows.high[op], -op))
        early = sorted((op for op in self.free if op not in self.readers), key=lambda op: (windows.high[op], op))
        for op in (*late, *early):
            low, high = self._window(op, windows, starts)
            tried = range(low, min(high, low + self.ii - 1) + 1)
            if op in self.readers:
                tried = range(high, max(low, high - self.ii + 1) - 1, -1)
            start = next((each for each in tried if room.has(op, each)), None)
            if start is None:
                return None
            room.take(op, start)
            starts[op] = start
        return tuple(starts[op] for op in range(len(self.ops)))

    def _window(self, op: int, windows: _Windows, starts: Mapping[int, int]) -> tuple[int, int]:
        """What the placed ops leave of a window."""
        low, high = windows.low[op], windows.high[op]
        for first, second, least in self.near[op]:
            if second == op and first in starts:
                low = max(low, starts[first] + least)
            if first == op and second in starts:
                high = min(high, starts[second] - least)
        return low, high


@dataclass(slots=True)
class _Room:
    """Which slots of each unit are taken, as bits."""

    ii: int
    uses: Sequence[Sequence[tuple[str, int, int]]]
    taken: dict[str, int]

    def has(self, op: int, start: int) -> bool:
        return not any(self.taken[unit] & self._bits(start + offset, held) for unit, offset, held in self.uses[op])

    def take(self, op: int, start: int) -> None:
        for unit, offset, held in self.uses[op]:
            self.taken[unit] |= self._bits(start + offset, held)

    def _bits(self, start: int, held: int) -> int:
        bits = held << (start % self.ii)
        return bits & ((1 << self.ii) - 1) | bits >> self.ii


# Barriers in the modulo model.
#
# A handover is met at a pivot: an instance of one of the loop's barriers, after everything before it has landed and
# ahead of everything after it. One pivot in place of all pairs of ops propagates better and is exact, since the
# tightest pair of a handover lies inside all others.

READ_SLACK = "least read slack"
"""The name of the variable that counts how many slots any read of LDS may be late without a wait."""

Constraint = Callable[[ModuloModel], None]


_BARRIER = "barrier "

Named = TypeVar("Named")


def find_barrier_variables(named: Mapping[str, Named]) -> tuple[Named, ...]:
    """The solver's variables for the slots of barriers, found by name."""
    return tuple(what for name, what in named.items() if name.startswith(_BARRIER))


def name_barriers(slots: Sequence[int]) -> dict[str, int]:
    """The slots of barriers under the names of the solver's variables."""
    return {f"{_BARRIER}{number}": slot for number, slot in enumerate(slots)}


def place_barriers(count: int) -> Constraint:
    """`count` barriers, each in its own slot, ahead of the ops of that slot."""

    def constrain(on: ModuloModel) -> None:
        barriers = [on.name(f"{_BARRIER}{number}", 0, on.ii - 1) for number in range(count)]
        for first, second in pairwise(barriers):
            on.model.add(first < second)

    return constrain


def fix_barriers(slots: Sequence[int]) -> Constraint:
    def constrain(on: ModuloModel) -> None:
        for name, slot in name_barriers(slots).items():
            on.name(name, slot, slot)

    return constrain


def demand_read_slack(deliveries: Sequence[Delivery], problem: ModuloProblem, least: int) -> Constraint:
    """A variable, at least `least`, that bounds every read's slack before the first use of its registers."""

    def constrain(on: ModuloModel) -> None:
        slack = on.name(READ_SLACK, least, on.ii)
        for reader, user, distance in deliveries:
            ready = on.start[reader] + problem.ops[reader].latency
            on.model.add(on.start[user] + distance * on.ii >= ready + slack)

    return constrain


def hand_over(handovers: Sequence[Handover], problem: ModuloProblem, landing_slack: int, lag: int = 0) -> Constraint:
    """A barrier in every handover: landing data has `landing_slack` slots to spare, reads have the read slack.

    `lag` is how many slots later the last wave group passes the same barrier; what it hands over, or receives, needs
    one more barrier in between.
    """

    def constrain(on: ModuloModel) -> None:
        barriers = find_barrier_variables(on.named)
        for handover in handovers:
            periods = on.latest // on.ii + 1 + handover.distance
            period = on.model.new_int_var(0, periods, f"period of {handover.value}")
            pivot = on.model.new_int_var(0, (periods + 1) * on.ii, f"pivot of {handover.value}")
            at = [on.model.new_bool_var("") for _ in barriers]
            on.model.add_exactly_one(at)
            for barrier, chosen in zip(barriers, at, strict=True):
                on.model.add(pivot == on.ii * period + barrier).only_enforce_if(chosen)
            slack = landing_slack if handover.lands else on.named[READ_SLACK]
            for op in handover.before:
                on.model.add(pivot >= on.start[op] + problem.ops[op].latency + slack)
            for op in handover.after:
                on.model.add(pivot + lag <= on.start[op] + handover.distance * on.ii)

    return constrain


def pin_slots(slots: Mapping[int, int]) -> Constraint:
    """Ops with a given slot; their stages stay free."""

    def constrain(on: ModuloModel) -> None:
        for op, slot in slots.items():
            on.model.add(on.slot[op] == slot)

    return constrain


def keep_turns(chains: Sequence[Sequence[int]]) -> Constraint:
    """Ops of a chain start one after the other."""

    def constrain(on: ModuloModel) -> None:
        for chain in chains:
            for first, second in pairwise(chain):
                on.model.add(on.start[first] < on.start[second])

    return constrain


def lengthen_slack(on: ModuloModel) -> None:
    on.model.maximize(on.named[READ_SLACK])


def shorten_lives(deliveries: Sequence[Delivery]) -> Constraint:
    def constrain(on: ModuloModel) -> None:
        ends: dict[int, list[tuple[int, int]]] = {}
        for reader, user, distance in deliveries:
            ends.setdefault(reader, []).append((user, distance))
        lives = []
        for reader, users in ends.items():
            life = on.model.new_int_var(0, on.ii * (2 + max(distance for _, distance in users)), f"life of {reader}")
            for user, distance in users:
                on.model.add(life >= on.start[user] + distance * on.ii - on.start[reader])
            lives.append(life)
        on.model.minimize(sum(lives))

    return constrain


# Slack that no schedule has.
#
# Without units what remains is a system of differences: precedences, the stages within which ops start, the slots
# of pinned ones, and a pivot for each handover, which is after what is handed over and ahead of who takes it.
# A cycle that is too long refutes all of it, in a thousandth of the time that a solver takes to say so. Where there
# is but one barrier, all pivots are instances of it, so that the time from one to another is a multiple of the
# interval; loads and reads that have to fit between two of them may be more than their unit does in that time.

Gaps = Mapping[int, Mapping[int, int]]
"""From one pivot to another, in intervals."""


def is_out_of_reach(choice: Choice, ii: int, *, barriers: int, stages: int, landing: int, reading: int) -> bool:
    """True if no schedule with this many barriers and stages tolerates loads and reads this late.

    False says nothing.
    """
    count = len(choice.problem.ops) + 1
    arcs = [*choice.problem.arcs, *_bound_within(choice, stages), *choice.apart(reading)]
    met = choice.meetings(landing, reading)
    for pivot, meeting in enumerate(met, count):
        arcs += _around(pivot, meeting, choice)
    start = longest_starts(count + len(met), arcs, ii)
    if isinstance(start, Cycle):
        return True
    if barriers != 1:
        return False
    between = _count_intervals(range(count, count + len(met)), arcs, ii, start)
    return between is None or _is_crowded(choice, ii, met, between)


def _bound_within(choice: Choice, stages: int) -> Iterator[Arc]:
    """From and to the start of the last stage, which counts as one more op after the others."""
    last = len(choice.problem.ops)
    for op in range(last):
        slot = None if choice.staged else choice.pinned.get(op)
        yield Arc(last, op, 0 if slot is None else slot, stages - 1 if slot is None else 0)
        yield Arc(op, last, 1 if slot is None else -slot, 1 if slot is None else 0)


def _around(pivot: int, meeting: Meeting, choice: Choice) -> Iterator[Arc]:
    handover, slack, lag = meeting
    for op in handover.before:
        yield Arc(op, pivot, choice.problem.ops[op].latency + slack, 0)
    for op in handover.after:
        yield Arc(pivot, op, lag, handover.distance)


def _count_intervals(pivots: Sequence[int], arcs: Sequence[Arc], ii: int, start: Sequence[int]) -> Gaps | None:
    """The least number of whole intervals from one pivot to another; None if they close a cycle that is too long."""
    least = longest_gaps(pivots, arcs, ii, dict(enumerate(start))).least
    place = {pivot: number for number, pivot in enumerate(pivots)}
    whole = [Arc(place[one], place[two], -(-gap // ii), 0) for one, row in least.items() for two, gap in row.items()]
    starts = longest_starts(len(place), whole, 0)
    if isinstance(starts, Cycle):
        return None
    return longest_gaps(range(len(place)), whole, 0, dict(enumerate(starts))).least


def _is_crowded(choice: Choice, ii: int, met: Sequence[Meeting], between: Gaps) -> bool:
    """True if units have too much to do from one instance of the only barrier to another."""
    windows = {
        op: window for op in range(len(choice.problem.ops)) if (window := _find_window(op, choice, ii, met, between))
    }
    for resource in choice.problem.resources:
        holds = [
            (windows[op].shifted(use.offset, ii), use.occupancy)
            for op, described in enumerate(choice.problem.ops)
            for use in described.uses
            if op in windows and use.resource == resource.name and resource.capacity == 1
        ]
        for outer in {window for window, _ in holds}:
            for length in {window.length for window, _ in holds}:
                inside = [held for window, held in holds if (window.first - outer.first) % ii + window.length <= length]
                # All but the last are over before it starts.
                if inside and sum(inside) - max(inside) > length:
                    return True
    return False


class _Window(NamedTuple):
    """The slots, counted from the barrier, in which an op may start: the first, and how many follow."""

    first: int
    length: int

    def shifted(self, offset: int, ii: int) -> _Window:
        """The slots of a use that begins this much later."""
        return _Window((self.first + offset) % ii, self.length)


def _find_window(op: int, choice: Choice, ii: int, met: Sequence[Meeting], between: Gaps) -> _Window | None:
    """The shortest window that leaves out some of the interval."""
    found = []
    for first, (later, _, lag) in enumerate(met):
        for second, (ahead_of_it, slack, _) in enumerate(met):
            if op in later.after and op in ahead_of_it.before and first in between.get(second, {}):
                begins = lag - later.distance * ii
                ends = -between[second][first] * ii - choice.problem.ops[op].latency - slack
                found.append(_Window(begins % ii, ends - begins))
    return min((each for each in found if 0 <= each.length < ii), key=lambda each: each.length, default=None)


# One request of a search for slack.
#
# Takes what is asked, gives what is known about it without a solver, and the model that a solver is asked about.

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
        return min(_LEAST_EFFORT + _EFFORT_PER_OP * len(self.choice.problem.ops), _MOST_EFFORT)

    def at_once(self, reading: int = 0) -> Decision | None:
        """What can be said without a solver: that there is no such schedule, or one that a list finds."""
        wanted = {"stages": self.stages, "landing": self.slack, "reading": reading}
        if is_out_of_reach(self.choice, self.ii, barriers=self.barriers, **wanted):
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
        """The constraints if reads have this much slack and ops obey these contests."""
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
            hand_over(choice.handovers, problem, self.slack, choice.lag),
            hand_over(choice.gathered, problem, self.slack),
        )


def is_no_harder(one: Request, other: Request) -> bool:
    """True if whatever meets the other request meets this one, too."""
    first, second = one.choice, other.choice
    return (
        one.slack <= other.slack
        and one.barriers >= other.barriers
        and one.stages >= other.stages
        and (first.pinned, first.staged, first.barriers) == (second.pinned, second.staged, second.barriers)
        and set(first.problem.resources) <= set(second.problem.resources)
        and set(first.chains) <= set(second.chains)
        and (first.lag, first.gathered) == (second.lag, second.gathered)
        and all(more >= less for (_, more), (_, less) in zip(first.copies, second.copies, strict=True))
    )


def select_roomiest(asked: Sequence[Request]) -> Request:
    """Of requests with as many barriers, the one that is refuted only if the others are, or nearly so."""
    return max(asked, key=lambda each: (each.stages, sum(n for _, n in each.choice.copies), each.number))


def list_barrier_counts(choice: Choice) -> range:
    if not choice.handovers:
        return range(1)
    if choice.barriers is not None:
        return range(len(choice.barriers), len(choice.barriers) + 1)
    return range(1, 2 if choice.gathered else MOST_BARRIERS + 1)  # reads are gathered to save turns


def list_rounds(choice: Choice) -> Iterator[tuple[Contest, ...]]:
    """Contests to obey, in one search after the other, each from the answer of the previous one.

    A crowd without a single pinned op stays out of the first: once stages, reads and barriers have their places, room
    for the many is soon found around them, while finding all at once rarely succeeds.
    """
    contests = tuple(find_contests(choice))
    crowd = max(contests, key=lambda contest: len(contest.holds), default=None)
    if crowd is not None and not any(hold.op in choice.pinned for hold in crowd.holds):
        yield tuple(contest for contest in contests if contest is not crowd)
    yield contests


def find_contests(choice: Choice) -> Iterator[Contest]:
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


_FEW_BARRIERS = 2
_POLISH = 0.03  # of the solver's own measure, of which one unit is about four seconds, to improve what was found
_SHARES = 0.3, 1.0  # of the effort that a request is worth, one search after the other
_AT_HAND = 0.1  # of a share, where a schedule is known for a request that comes later
_HURRIED = 0.3  # of a share, to improve one that is a list
_READ_SLACK = 2  # part of the slack wished for reads with which a list is left as it is
_SEARCH = Turn(Encoding.INTERVALS, linear=1, probing=0, share=1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """Starts, the slots of the barriers, how late loads and reads may be, and which choice it is."""

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
    levels = tuple(_list_halves(landing, landing // 4))
    staged = (_FEW_BARRIERS, MOST_BARRIERS) if landing and ladder.strict != ladder.hopeful else ()
    steps = [(slack, ladder.strict, most) for most in staged for slack in levels]
    ladder.look_for_lists(steps or [(slack, ladder.hopeful, MOST_BARRIERS) for slack in levels])
    for slack, among, most in steps:
        found = ladder.climb(slack, 0, _SHARES[0], among, most=most)
        if found is not None:
            return _widen_slack(found, levels, reading, ladder.search(0))
    for slack in levels:
        for attempt, part in enumerate(_SHARES if slack == landing else _SHARES[:1]):
            found = ladder.climb(slack, attempt, part, ladder.hopeful)
            if found is not None:
                return _widen_slack(found, levels, reading, ladder.search(attempt))
            ladder.ask_the_easiest()
            if not ladder.hopeful:
                return ladder.ended
    found = ladder.fallback
    if found is None:
        return Outcome.OPEN
    return _widen_slack(found, levels, reading, ladder.search(0))


class _Found(NamedTuple):
    request: Request
    decision: Decision


class _Ladder:
    """Requests one after the other, and what is known of them: refuted, open, or given up with their choice."""

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
        """True if any of these steps (a slack, choices, the most barriers) finds something at once."""
        for slack, among, most in steps:
            for asked in _group_by_barriers(self.choices, self.ii, slack, among):
                decision = self._known(select_roomiest(asked)) if asked[0].barriers <= most else None
                if decision is not None and decision.listed:
                    self._hurry = _AT_HAND
                    return

    def climb(
        self, slack: int, attempt: int, part: float, among: Sequence[int], *, most: int = MOST_BARRIERS
    ) -> _Found | None:
        """The first request with this slack that is found, in their order, of these choices."""
        for asked in _group_by_barriers(self.choices, self.ii, slack, among):
            if asked[0].barriers > max(most, min(list_barrier_counts(asked[0].choice))):
                continue
            roomiest = select_roomiest(asked)
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
        """Give up choices whose easiest request isn't found; once."""
        if self._asked:
            return
        self._asked = True
        found = {number: self._solve(_make_easiest(self.choices, number, self.ii), 0, 1.0) for number in self.hopeful}
        self.hopeful = tuple(number for number, each in found.items() if each.outcome is Outcome.FEASIBLE)
        if all(each.outcome is Outcome.INFEASIBLE for each in found.values()):
            self.ended = Outcome.INFEASIBLE
        if self.hopeful:
            first = self.hopeful[0]
            self.fallback = _Found(_make_easiest(self.choices, first, self.ii), found[first])

    def _solve(self, request: Request, attempt: int, part: float) -> Decision:
        if any(is_no_harder(each, request) for each in self.refuted):
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
        """What bounds and lists say about a request, computed once."""
        key = (request.number, request.barriers, request.stages, request.slack)
        if key not in self._at_once:
            self._at_once[key] = request.at_once()
        return self._at_once[key]


def _make_easiest(choices: Sequence[Choice], number: int, ii: int) -> Request:
    """What any other request for a choice implies: the most barriers and stages, and no slack.

    If this is refuted, all of them are; if it isn't found, none will be.
    """
    choice = choices[number]
    barriers, stages = max(list_barrier_counts(choice)), max(choice.stages)
    return Request(number=number, choice=choice, ii=ii, barriers=barriers, stages=stages, slack=0)


def _group_by_barriers(
    choices: Sequence[Choice], ii: int, slack: int, hopeful: Sequence[int]
) -> Iterator[list[Request]]:
    for barriers in sorted({count for number in hopeful for count in list_barrier_counts(choices[number])}):
        yield [
            Request(number=number, choice=choices[number], ii=ii, barriers=barriers, stages=stages, slack=slack)
            for number in hopeful
            if barriers in list_barrier_counts(choices[number])
            for stages in choices[number].stages
        ]


def _list_halves(slack: int, least: int = 1) -> Iterator[int]:
    """The slack, its half, and so on down to `least`; then none."""
    while slack >= max(least, 1):
        yield slack
        slack //= 2
    yield 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """How to solve: the seed and workers, the deadline, and the number of earlier attempts."""

    scheduler: ModuloScheduler
    deadline: float
    attempt: int

    def solve(self, request: Request, part: float = 1.0, *, reading: int = 0, near: Decision | None = None) -> Decision:
        """A schedule as requested, with this much read slack, if part of the effort it is worth finds one.

        `near` is an answer to a weaker request.
        """
        found = near or Decision(outcome=Outcome.OPEN)
        for contests in list_rounds(request.choice):
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
        model = request.model(found.named[READ_SLACK], find_contests(request.choice))
        model.begin_with(found)
        better = self._run(model.apply(aim), _POLISH)
        return found if better.starts is None else better

    @property
    def _over(self) -> bool:
        return stopped() or spent() >= self.deadline

    def _run(self, model: ModuloModel, effort: float) -> Decision:
        seed = (self.scheduler.seed + self.attempt) % (LARGEST_SEED + 1)
        return model.solve(self.deadline - spent(), _SEARCH, workers=self.scheduler.workers, seed=seed, effort=effort)


def _widen_slack(found: _Found, levels: Sequence[int], reading: int, search: _Search) -> Settled:
    """A schedule as found, or with more of the wanted slack; its least read slack is as large as was found.

    Then its registers' lives are short.
    """
    request, best = _delay_landing(found, levels, search)
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
        return _settle(request, best)
    best = search.polish(request, best, lengthen_slack)
    return _settle(request, search.polish(request, best, shorten_lives(request.choice.deliveries)))


def _delay_landing(found: _Found, levels: Sequence[int], search: _Search) -> _Found:
    """Give loads more slack, starting with what was found without: that is often near."""
    for slack in levels:
        if slack > found.request.slack:
            request = replace(found.request, slack=slack)
            part = _SHARES[0] * (_HURRIED if found.decision.listed else 1)
            better = request.at_once() or search.solve(request, part, near=found.decision)
            if better.starts is not None:
                return _Found(request, better)
    return found


def _settle(request: Request, found: Decision) -> Settled:
    starts, ii = found.starts or {}, request.ii
    ordered = tuple(starts[op] for op in range(len(request.choice.problem.ops)))
    shift = min(ordered, default=0) // ii * ii
    return Settled(
        choice=request.number,
        starts=tuple(start - shift for start in ordered),
        barriers=tuple(sorted(find_barrier_variables(found.named))),
        landing_slack=request.slack,
        read_slack=found.named[READ_SLACK],
    )


# The check of a settled schedule.
#
# Edges and units are looked at by `modulo_check`; here the barriers and the slack that the placement claims.


def check_settled(choice: Choice, settled: Settled, ii: int) -> None:
    """Check that every handover has the barriers it needs, with the slack claimed, and every read its own."""
    for handover in choice.handovers:
        _check_handover(choice, settled, handover, ii, choice.lag)
    for handover in choice.gathered:
        _check_handover(choice, settled, handover, ii, 0)
    for reader, user, distance in choice.deliveries:
        ready = settled.starts[reader] + choice.problem.ops[reader].latency + settled.read_slack
        if settled.starts[user] + distance * ii < ready:
            raise _broken(choice, reader, user, "read slack", settled.read_slack)


def _check_handover(choice: Choice, settled: Settled, handover: Handover, ii: int, lag: int) -> None:
    starts, ops = settled.starts, choice.problem.ops
    slack = settled.landing_slack if handover.lands else settled.read_slack
    over = max(handover.before, key=lambda op: starts[op] + ops[op].latency)
    begins = min(handover.after, key=lambda op: starts[op])
    earliest = starts[over] + ops[over].latency + slack
    latest = starts[begins] + handover.distance * ii - lag
    if not any(earliest <= earliest + (slot - earliest) % ii <= latest for slot in settled.barriers):
        raise _broken(choice, over, begins, "landing slack" if handover.lands else "read slack", slack)


def _broken(choice: Choice, first: int, second: int, what: str, claimed: int) -> OrderError:
    before, after = choice.problem.ops[first], choice.problem.ops[second]
    return OrderError.of(
        "O102",
        f"no barrier or wait is between {before.name} and {after.name} with the {what} claimed",
        concerns=(
            Concern(label=before.name, index=first, role="must be over"),
            Concern(label=after.name, index=second, role="starts"),
        ),
        evidence=((what, claimed),),
    )
