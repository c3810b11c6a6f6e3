"""Where ops, barriers and waits go within the least interval.

A wait is free if what it waits for has landed by then. So each read of LDS opens an interval, from its landing to the
first use of its registers and to the barrier that frees its buffer, which must contain a wait. The wait slots are the
fewest points that stab all of these intervals on the cycle of one iteration, each as late as possible. Loads into
registers have such intervals too; barriers wait for loads into LDS.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from time import perf_counter
from typing import NamedTuple

from rota.errors import OrderError
from rota.order.graph import Cycle, longest_starts
from rota.order.modulo.handover import (
    Choice,
    Delivery,
    Handover,
    Issued,
    derive_deliveries,
    derive_handovers,
    has_stages,
    weave,
)
from rota.order.modulo.modulo_check import check_starts
from rota.order.modulo.modulo_problem import (
    MII,
    ModuloCertificate,
    ModuloProblem,
    ModuloProof,
    ModuloSchedule,
    derive_mii,
)
from rota.order.modulo.slack import Settled, check_settled, settle
from rota.program.kinds import Home, OpKind, Unit
from rota.program.loop_spec import LoopSpec
from rota.program.machine import Machine
from rota.solver.limits import Outcome
from rota.sync.repair import Sites
from rota.targets.device import rates_of
from rota.values.buffer_depth import (
    Deadline,
    bound_interval,
    drop_turns,
    find_shallowest,
    modulo_problem,
    narrow_allowances,
    select_depths,
    select_roomy_depths,
)
from rota.values.interval_certificate import Claim
from rota.values.op_times import LoopTimes
from rota.values.unroll import Placement

# Slots for computations.
#
# With computations in their slots the search has only what serves them left to place, which makes it quick.

_COMPUTE = (Unit.MMA, Unit.VALU)
_ROOM_FOR_TURNS = 0.9  # of the interval: with more instructions, each one's turn is not found beside all else


def turns_are_scarce(times: LoopTimes, ii: int) -> bool:
    """True if a wave issues something in nearly every slot."""
    return times.turns > _ROOM_FOR_TURNS * ii


def spread_evenly(times: LoopTimes, ii: int) -> dict[int, int]:
    """The ops of the busiest unit in the author's order, spread evenly over the interval.

    Among the many orders that keep a unit busy one is as good as another, and the author's has a reason.
    """
    busy = dict(times.busy)
    spine = max(_COMPUTE, key=lambda unit: busy.get(unit, 0))
    turns, now = {}, 0
    for op, timing in enumerate(times.timings):
        if timing.unit is spine:
            turns[op] = now * ii // busy[spine]
            now += timing.occupancy
    return turns


def interleave_computes(problem: ModuloProblem, times: LoopTimes, ii: int) -> dict[int, int] | None:
    """Slots in which computations don't collide, wherever on the cycle an iteration's vector ops begin."""
    kinds: dict[Unit, list[Issued]] = {unit: [] for unit in Unit}
    for op, (unit, occupancy, _, issue) in enumerate(times.timings):
        kinds[unit].append(Issued(op, issue, max(occupancy, issue) if unit in _COMPUTE else issue))
    vector = kinds[Unit.VALU]
    others = [kind for unit, kind in kinds.items() if unit not in _COMPUTE]
    for first in range(len(vector)):
        slots = weave(kinds[Unit.MMA], [*others, vector[first:] + vector[:first]], ii)
        if slots is not None:
            pinned = {each.op: slots[each.op] for each in (*kinds[Unit.MMA], *vector)}
            if has_stages(pinned, problem.arcs, ii):
                return pinned
    return None


# Room in a loop by values.
#
# Loads get three quarters of their latency to spare where that can be had, with more copies of their tiles if LDS
# holds them: with that much the cycle model keeps its pace when latencies scatter by half. Where a wave's turns are
# scarce, barriers and waits cost most, and loads get less slack if a barrier does every other iteration.

_READING = 4  # times its latency is the slack wished for a read of LDS
_PAIRS = 4  # copies of each tile, if barriers are every other iteration: two are read while two are loaded
_LESS = 2 / 3  # of the slack wished for a load is asked for then
_SOUGHT_BY = "list, cpsat"  # one after the other
_CLUSTERS = 2  # turns of a staggered wave group at the matrix unit per iteration; each takes two barriers


class _Candidate(NamedTuple):
    """A choice, what is known about the least interval of its whole problem, and whether it leaves turns open."""

    choice: Choice
    bound: MII
    turns_left: bool = False


def wanted_landing_slack(times: LoopTimes) -> int:
    """How many slots a load should have to spare."""
    return times.latency(Unit.DMA) * 3 // 4


class Attempt(NamedTuple):
    """What is asked of a placement: the interval, one of these copies, and slots that loads may be late."""

    interval: int
    depths: Sequence[Mapping[str, int]]
    landing: int
    deadline: Deadline


def place_in_lockstep(loop: LoopSpec, times: LoopTimes, attempt: Attempt) -> tuple[ModuloSchedule, Placement] | None:
    """A placement in which all waves run alike; None if none was found.

    Copies of registers unroll the loop, so they are tried only where tiles alone don't suffice.
    """
    ii, depths, landing, deadline = attempt
    seldom = list(_with_rare_barriers(loop, times, ii, depths))
    if seldom:
        placed = _finish(seldom, ii, times, deadline, int(landing * _LESS))
        if not isinstance(placed, Outcome):
            return placed
    fewest = min((loop.registers(each) for each in depths), default=0)
    lean = [each for each in depths if loop.registers(each) == fewest]
    rich = [each for each in depths if loop.registers(each) > fewest]
    for these in (lean, rich):
        placed = _finish(_list_ways(loop, times, ii, these), ii, times, deadline, landing)
        if not isinstance(placed, Outcome):
            return placed
    return None


def _list_ways(loop: LoopSpec, times: LoopTimes, ii: int, depths: Sequence[Mapping[str, int]]) -> list[_Candidate]:
    """Ways to place the loop, better ones first: with an issue turn for every instruction, if there is room.

    Otherwise the order decides the turns, a few slots late; and an order in tiles is free.
    """
    problems = [modulo_problem(loop, times, each) for each in depths]
    known = [(each, problem, derive_mii(problem)) for each, problem in zip(depths, problems, strict=True)]
    even, issued, scarce = spread_evenly(times, ii), times.turns, turns_are_scarce(times, ii)
    found = []
    if not scarce:
        found += [_Candidate(_choice(loop, problem, each, ii, pinned=even), bound) for each, problem, bound in known]
    for each, problem, bound in known:
        pinned = (interleave_computes(problem, times, ii) if scarce else None) or even
        choice = _choice(loop, problem, each, ii, pinned=pinned if issued else {})
        if issued:
            choice = replace(choice, problem=drop_turns(problem))
        found.append(_Candidate(choice, bound, turns_left=issued > 0))
    return found


def _with_rare_barriers(
    loop: LoopSpec, times: LoopTimes, ii: int, depths: Sequence[Mapping[str, int]]
) -> Iterator[_Candidate]:
    """Where turns are scarce: barriers every other iteration, and waits for a tile's reads at those barriers."""
    tiles = [value.name for value in loop.values if value.home is Home.LDS]
    deep = [each for each in depths if min((each[name] for name in tiles), default=0) >= _PAIRS]
    for candidate in _list_ways(loop, times, ii, deep) if turns_are_scarce(times, ii) else ():
        for reads in _gather_reads(candidate.choice):
            yield candidate._replace(choice=replace(candidate.choice, lag=ii, gathered=(reads,)))


def _gather_reads(choice: Choice) -> Iterator[Handover]:
    """All reads of each tile, complete at a barrier before the first of their users starts."""
    for readers in (handover.after for handover in choice.handovers if handover.lands):
        users = {user: distance for reader, user, distance in choice.deliveries if reader in readers}
        if len(set(users.values())) == 1:
            yield Handover("reads", readers, tuple(users), max(users.values()), lands=False)


def place_staggered(
    loop: LoopSpec,
    times: LoopTimes,
    ii: int,
    depths: Sequence[Mapping[str, int]],
    *,
    deadline: Deadline,
    landing: int,
    simds: int,
) -> tuple[ModuloSchedule, Placement]:
    """Two groups of waves, the second one barrier later: each computes while the other doesn't."""
    if loop.waves <= simds:
        raise _report_no_turns(loop, f"with {loop.waves} waves no two share a matrix unit, of which there are {simds}")
    segment, rest = divmod(ii, 2 * _CLUSTERS)
    mma = [op for op, timing in enumerate(times.timings) if timing.unit is Unit.MMA]
    share, odd = divmod(len(mma), _CLUSTERS)
    pinned: dict[int, int] = {}
    for cluster in range(_CLUSTERS):
        now = 2 * cluster * segment
        for op in mma[cluster * share : (cluster + 1) * share]:
            pinned[op] = now
            now += times.timings[op].occupancy
        odd = odd or now > (2 * cluster + 1) * segment
    if rest or odd or not mma:
        raise _report_no_turns(loop, f"its {len(mma)} matrix ops don't make {_CLUSTERS} equal turns of {segment} slots")
    barriers = tuple(range(0, ii, segment))
    problems = [modulo_problem(loop, times, each, segment) for each in depths]
    candidates = [
        _Candidate(_choice(loop, problem, each, ii, pinned=pinned, barriers=barriers), derive_mii(problem))
        for each, problem in zip(depths, problems, strict=True)
    ]
    placed = _finish(candidates, ii, times, deadline, landing)
    if placed is Outcome.INFEASIBLE:
        raise _report_no_turns(loop, f"loads and reads don't fit between turns of {segment} slots")
    if isinstance(placed, Outcome):
        raise _report_no_turns(loop)
    return placed


def _report_no_turns(loop: LoopSpec, why: str = "") -> OrderError:
    sought = "schedule for two staggered wave groups"
    refuted = f"{loop.name} has no {sought}: {why}"
    unknown = f"the search for a {sought} of {loop.name} ended with neither one nor a proof that there is none"
    other = () if why else ("scheduler=ModuloScheduler(time_limit=...) searches longer, seed=... otherwise",)
    return OrderError.of(
        "O302",
        refuted if why else unknown,
        evidence=(("wave groups", 2), ("barriers an iteration", 2 * _CLUSTERS)),
        fixes=(*other, "stagger=False runs all waves alike"),
    )


def _choice(
    loop: LoopSpec,
    problem: ModuloProblem,
    copies: Mapping[str, int],
    ii: int,
    *,
    pinned: Mapping[int, int],
    barriers: Sequence[int] = (),
) -> Choice:
    made = {value for op in pinned for value in loop.ops[op].writes}
    deepest = max((copies[value.name] for value in loop.values if value.home is Home.LDS), default=0)
    earliest = longest_starts(len(problem.ops), problem.arcs, ii)
    fewest = 2 if isinstance(earliest, Cycle) else max(2, max(earliest, default=0) // ii + 1)
    return Choice(
        problem=problem,
        copies=tuple(sorted(copies.items())),
        handovers=tuple(derive_handovers(loop, copies)),
        deliveries=tuple(derive_deliveries(loop)),
        stages=range(fewest, max(fewest, deepest + 2) + 1),
        pinned=pinned,
        staged=any(read.value in made for op in loop.ops for read in op.reads),
        chains=tuple(_chain_loads_and_reads(loop)),
        barriers=tuple(barriers) or None,
        lag=barriers[1] - barriers[0] if barriers else 0,
    )


def _chain_loads_and_reads(loop: LoopSpec) -> Iterator[tuple[int, ...]]:
    """Loads of parts of one tile start in the order of declaration, its reads in the order of their first use."""
    first_use: dict[int, int] = {}
    for reader, user, _ in derive_deliveries(loop):
        first_use.setdefault(reader, user)
    for value in loop.values:
        if value.home is Home.LDS:
            yield tuple(index for index, op in enumerate(loop.ops) if value.name in op.writes)
            readers = [index for index, op in enumerate(loop.ops) if any(r.value == value.name for r in op.reads)]
            yield tuple(sorted(readers, key=lambda reader: first_use.get(reader, reader)))


def _finish(
    candidates: Sequence[_Candidate], ii: int, times: LoopTimes, deadline: Deadline, landing: int
) -> tuple[ModuloSchedule, Placement] | Outcome:
    """The candidate that was settled; the certificate covers its whole problem, turns included."""
    started = perf_counter()
    possible = [each for each in candidates if each.bound.ii <= ii]
    settled = settle(
        [each.choice for each in possible],
        ii,
        landing=landing,
        reading=_READING * times.latency(Unit.LDS),
        scheduler=deadline.scheduler(),
    )
    if isinstance(settled, Outcome):
        return settled
    choice, bound, turns_left = possible[settled.choice]
    found = certify_by_bound(ii, settled.starts, bound, perf_counter() - started)
    check_starts(choice.problem, found)
    check_settled(choice, settled, ii)
    return found, Placement(
        interval=ii,
        starts=settled.starts,
        copies=choice.copies,
        barriers=settled.barriers,
        landing_slack=settled.landing_slack,
        read_slack=settled.read_slack,
        turns_left=turns_left,
    )


def certify_by_bound(ii: int, starts: tuple[int, ...], bound: MII, seconds: float) -> ModuloSchedule:
    """A schedule that a list or the solver found; its interval is the least if it equals the bound."""
    proof = ModuloProof.MEETS_BOUND if bound.ii == ii else ModuloProof.OPEN
    certificate = ModuloCertificate(proof=proof, mii=bound, lower=bound.ii, by=_SOUGHT_BY, seconds=seconds)
    return ModuloSchedule(ii=ii, starts=starts, certificate=certificate)


def certify_again(loop: LoopSpec, times: LoopTimes, placement: Placement) -> ModuloSchedule:
    """The starts of a placement that somebody kept, as a schedule; edges, units and slack are checked again."""
    barriers = placement.barriers
    lag = barriers[1] - barriers[0] if times.groups > 1 and barriers[1:] else 0
    copies = dict(placement.copies)
    problem = modulo_problem(loop, times, copies, lag)
    found = certify_by_bound(placement.interval, placement.starts, derive_mii(problem), seconds=0.0)
    check_starts(drop_turns(problem) if placement.turns_left else problem, found)
    if barriers:
        choice = Choice(
            problem=problem,
            copies=placement.copies,
            handovers=tuple(derive_handovers(loop, copies)),
            deliveries=tuple(derive_deliveries(loop)),
            stages=range(placement.stages, placement.stages + 1),
            lag=lag,
        )
        slack = {"landing_slack": placement.landing_slack, "read_slack": placement.read_slack}
        check_settled(choice, Settled(choice=0, starts=placement.starts, barriers=barriers, **slack), found.ii)
    return found


# Which placements are tried.
#
# The first is the least interval with few copies. What follows differs in copies, slack and interval; whoever writes
# the loop predicts its clocks, and stops where they are as few as its busiest unit needs.

_LESS_LANDING = 4  # part of the slack of loads that is asked for where reads are to have more
_LONGER, _PARTS = (2, 4, 8, 12, 24), 64  # by such parts of the least interval the interval is longer
_SHORT, _MOST_LISTED = 40, 2000  # ops: of a loop that is listed first, and in all lists together


def _list_attempts(claim: Claim, search: Attempt, *, vary: bool) -> Iterator[Attempt]:
    """A search, and lists around few copies and more, with less slack for loads, and at longer intervals.

    Less slack for loads leaves more for reads, and a longer interval more for both: waves don't keep to slots, and a
    loop that was placed at a slightly longer interval may take the least.  Short loops are listed first, which takes a
    part of a search's time; of long ones fewer lists are made, and of loops in tiles, whose order says little, none.
    """
    if not vary or not claim.times.turns:
        return iter((search,))
    count = len(claim.loop.ops)
    first: list[Iterable[Attempt]] = [_vary_attempt(_only_listed(search), claim), (search,)]
    if count > _SHORT:
        first.reverse()
    longer = (_vary_attempt(each, claim) for each in _list_longer(claim, search))
    return islice(chain(*first, chain.from_iterable(longer)), 1 + _MOST_LISTED // count)


def _only_listed(search: Attempt) -> Attempt:
    return search._replace(deadline=Deadline(asked=replace(search.deadline.asked, time_limit=0.0)))


def _list_longer(claim: Claim, search: Attempt) -> Iterator[Attempt]:
    """Lists at intervals that are longer than what is searched for."""
    for parts in _LONGER:
        interval = search.interval + search.interval * parts // _PARTS
        depths = select_depths(interval, claim.deep, claim.times, search.landing)
        yield _only_listed(search)._replace(interval=interval, depths=depths)


def _vary_attempt(attempt: Attempt, claim: Claim) -> Iterator[Attempt]:
    """More copies at the same interval, and less slack for loads."""
    yield attempt
    more = [(each,) for each in select_roomy_depths(attempt.interval, claim.deep, claim.times, attempt.landing)]
    yield from (attempt._replace(depths=each) for each in more)
    for each in (attempt.depths, *more):
        yield attempt._replace(depths=each, landing=attempt.landing // _LESS_LANDING)


def list_placements(
    claim: Claim, deadline: Deadline, landing: int, *, vary: bool
) -> Iterator[tuple[ModuloSchedule, Placement]]:
    """Placements of the loop, in the order in which they are worth trying.

    The first has the least interval that any copies allow; if asked to `vary`, others follow with more copies, less
    slack than `landing`, or a slightly longer interval.  Where none of these leave room for barriers, the only one has
    the interval of ever fewer copies of the tiles, or else the least that is found for few copies.
    """
    loop, machine, times, deep, few = claim.loop, claim.machine, claim.times, claim.deep, claim.few
    depths: tuple[dict[str, int], ...] = ()
    if times.groups > 1:
        ii, depths = times.least_interval, select_depths(times.least_interval, deep, times, landing)
        in_turn = place_staggered(
            loop, times, ii, depths, deadline=deadline, landing=landing, simds=rates_of(machine).simds.value
        )
        yield claim.certify(*in_turn), in_turn[1]
        return
    ii = bound_interval(claim.ties, deep, times.least_interval)
    depths = select_depths(ii, deep, times, landing)
    search, tried = Attempt(ii, depths, landing, deadline), set[Placement]()
    for attempt in _list_attempts(claim, search, vary=vary):
        placed = place_in_lockstep(loop, times, attempt)
        if placed is not None and placed[1] not in tried:
            tried.add(placed[1])
            yield claim.certify(*placed), placed[1]
    if tried:
        return
    for allowed in chain(narrow_allowances(deep, times), (few,)):
        ii, before = bound_interval(claim.ties, allowed, times.least_interval), depths
        depths = select_depths(ii, allowed, times, landing)
        placed = None if depths == before else place_in_lockstep(loop, times, Attempt(ii, depths, landing, deadline))
        if placed is not None:
            yield claim.certify(*placed), placed[1]
            return
    for attempt in _list_longer(claim, search):
        placed = place_in_lockstep(loop, times, attempt)
        if placed is not None:
            yield claim.certify(*placed), placed[1]
            return
    lower = claim.least_possible(deadline)
    copies, best = find_shallowest(few, times, depths, deadline, lower)
    bare = Placement(interval=best.ii, starts=best.starts, copies=tuple(sorted(copies.items())))
    placed = place_in_lockstep(loop, times, Attempt(best.ii, (copies,), landing, deadline)) or (best, bare)
    yield claim.certify(*placed, lower), placed[1]


_FILL = frozenset(kind for kind in OpKind if kind.asynchronous)


class Window(NamedTuple):
    """From `opens` to `closes`, in slots of one iteration's schedule, a wait costs nothing."""

    opens: int
    closes: int


def derive_sites(spec: LoopSpec, placement: Placement, times: LoopTimes, machine: Machine) -> Sites:
    """Barriers as placed, and for each counter the fewest slots for waits; barriers wait for loads into LDS.

    A group of waves runs one barrier behind the previous group.
    """
    windows: dict[str, list[Window]] = {}
    for reader, window in _until_use(derive_deliveries(spec, _FILL), placement, times):
        windows.setdefault(machine.counter_of(spec.ops[reader].kind) or "", []).append(window)
    for reader, window in _until_freed(spec, placement, times):
        windows.setdefault(machine.counter_of(spec.ops[reader].kind) or "", []).append(window)
    windows.pop("", None)
    every = 1
    if turns_are_scarce(times, placement.interval):  # a wait where another stands takes no turn of its own
        windows = {
            counter: [w for w in each if not _contains_barrier(w, placement)] for counter, each in windows.items()
        }
        every = 2 if _can_skip_barriers(spec, placement, times) else 1
    stabs = {counter: stab_windows(each, placement.interval) for counter, each in windows.items()}
    return Sites(barriers=placement.barriers, waits=stabs, every=every)


def _can_skip_barriers(spec: LoopSpec, placement: Placement, times: LoopTimes) -> bool:
    """True if a barrier in every other period suffices, given the loads' slack; the unrolled loop has whole pairs."""
    if times.groups > 1 or placement.unroll % 2:
        return False
    starts, interval = placement.starts, placement.interval
    for handover in derive_handovers(spec, dict(placement.copies)):
        slack = placement.landing_slack if handover.lands else 0
        opens = max(starts[op] + times.timings[op].latency for op in handover.before) + slack
        closes = min(starts[op] for op in handover.after) + (handover.distance - 1) * interval
        if not _contains_barrier(Window(opens, closes), placement):
            return False
    return True


def _contains_barrier(window: Window, placement: Placement) -> bool:
    length = window.closes - window.opens
    return any((slot - window.opens) % placement.interval <= length for slot in placement.barriers)


def stab_windows(windows: Sequence[Window], interval: int) -> tuple[int, ...]:
    """Slots, modulo the interval, that stab every window: the best of the greedy tours from each start."""
    tours = [_tour(windows, first.closes % interval, interval) for first in windows]
    return min(tours, key=len, default=())


def _tour(windows: Sequence[Window], start: int, interval: int) -> tuple[int, ...]:
    """Stab at `start`, then always as late as the window that closes next allows, once around."""
    stabs = [start]
    by_close = sorted(windows, key=lambda w: (w.closes - start) % interval)
    for window in by_close:
        if not any((slot - window.opens) % interval <= window.closes - window.opens for slot in stabs):
            stabs.append(window.closes % interval)
    return tuple(sorted(stabs))


def _until_use(deliveries: Iterable[Delivery], placement: Placement, times: LoopTimes) -> Iterator[tuple[int, Window]]:
    starts, interval = placement.starts, placement.interval
    first_use: dict[int, int] = {}
    for reader, user, distance in deliveries:
        use = starts[user] + distance * interval
        first_use[reader] = min(use, first_use.get(reader, use))
    for reader, use in first_use.items():
        yield reader, Window(starts[reader] + times.timings[reader].latency, use)


def _until_freed(spec: LoopSpec, placement: Placement, times: LoopTimes) -> Iterator[tuple[int, Window]]:
    starts, interval = placement.starts, placement.interval
    for handover in derive_handovers(spec, dict(placement.copies)):
        if handover.lands:
            continue
        overwritten = min(starts[op] + handover.distance * interval for op in handover.after)
        for pivot in _find_barrier_before(overwritten, placement, times.groups):
            for reader in handover.before:
                yield reader, Window(starts[reader] + times.timings[reader].latency, pivot)


def _find_barrier_before(moment: int, placement: Placement, number: int) -> Iterator[int]:
    """The time of the `number`-th last barrier at or before a moment, if there are barriers."""
    interval = placement.interval
    past = sorted((moment - slot) % interval + turn * interval for slot in placement.barriers for turn in range(number))
    yield from (moment - ago for ago in past[number - 1 : number])
