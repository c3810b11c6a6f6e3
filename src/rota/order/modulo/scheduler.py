"""The exact modulo scheduler: the least II, with a certificate.

Initiation intervals are tried from the MII up. Iterative modulo scheduling (Rau 1996) reaches the bound on most loops
at once; where it doesn't, the core of the problem goes to the solver (`cpsat_modulo`), which finds or refutes.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

from rota.check import bad_field, check_ints, check_seconds, expect, is_int
from rota.errors import Concern, OrderError
from rota.order.graph import Arc, longest_starts, strong_components
from rota.order.modulo.cpsat_modulo import (
    ModuloModel,
    Structure,
    count,
    decide,
    derive_core,
    derive_starts,
    derive_structure,
    keep_gaps,
    keep_order,
)
from rota.order.modulo.modulo_check import check_modulo_schedule
from rota.order.modulo.modulo_problem import (
    ANY_HORIZON,
    LONGEST,
    MII,
    ModuloCertificate,
    ModuloOp,
    ModuloProblem,
    ModuloProof,
    ModuloSchedule,
    derive_mii,
    resource_loads,
)
from rota.solver.limits import LARGEST_SEED, Outcome, spend, spent, stopped

# Iterative modulo scheduling.
#
# Rau (1996): ops by height, each in the first slot of the next II that its scheduled producers and the resources
# allow; where there is none, it is placed by force and what it collides with is taken out again. A heuristic: that
# it finds nothing says nothing.
#
# One addition: equal holds that fill a unit entirely leave no gap unless all of them are on one grid, so they are
# placed on that of the first.

PLACEMENTS_PER_OP = 6  # Rau found 2 to suffice for most loops; what fails here goes to the exact search
_LOOK_AT_CLOCK = 64  # placements between two looks at what is spent
_SECONDS_PER_PLACEMENT = 2e-5


def iterative_starts(problem: ModuloProblem, ii: int, deadline: float | None = None) -> tuple[int, ...] | None:
    """Starts at this II, which is at least the MII; None when the budget or the deadline ends first."""
    backwards = [Arc(b, a, delay, distance) for a, b, delay, distance in problem.arcs]
    heights = longest_starts(len(problem.ops), backwards, ii)
    if not isinstance(heights, list):
        return None
    table = _Table(problem, ii)
    if not table.each_fits_alone():
        return None
    return _Search(problem, ii, heights, table).run(deadline)


class _Table:
    """The reservation table: who holds each resource in each slot modulo II."""

    def __init__(self, problem: ModuloProblem, ii: int) -> None:
        self._ii = ii
        self._capacities = problem.capacities
        self._holders: dict[tuple[str, int], list[int]] = {}
        shapes: dict[ModuloOp, tuple[tuple[str, int, int], ...]] = {}
        for op in problem.ops:
            if op not in shapes:
                shapes[op] = _derive_holds(op, ii)
        self._shapes = [shapes[op] for op in problem.ops]
        self._different = tuple(shapes.values())
        self._grids = _find_grids(problem, ii)
        self._phases: dict[str, int] = {}  # of a resource's grid, once its first op is placed
        self._gridded = [next((use for use in op.uses if use.resource in self._grids), None) for op in problem.ops]

    def each_fits_alone(self) -> bool:
        """True if no op overfills a resource by itself."""
        return all(held <= self._capacities[name] for shape in self._different for name, _, held in shape)

    def fits(self, op: int, start: int) -> bool:
        for name, place, held in self._shapes[op]:
            holders = self._holders.get((name, (start + place) % self._ii))
            if holders and len(holders) + held > self._capacities[name]:
                return False
        return True

    def first_fit(self, op: int, earliest: int) -> int | None:
        """The first start within the next II at which there is room, on the op's grid if it has one."""
        use = self._gridded[op]
        step = self._grids[use.resource] if use is not None and use.resource in self._phases else 1
        starts = range(self.aligned(op, earliest), earliest + self._ii, step)
        return next((start for start in starts if self.fits(op, start)), None)

    def aligned(self, op: int, earliest: int) -> int:
        """The first start on the op's grid; any start while there is no grid."""
        use = self._gridded[op]
        if use is None or use.resource not in self._phases:
            return earliest
        return earliest + (self._phases[use.resource] - earliest - use.offset) % self._grids[use.resource]

    def colliding(self, op: int, start: int) -> set[int]:
        out: set[int] = set()
        for name, place, held in self._shapes[op]:
            holders = self._holders.get((name, (start + place) % self._ii), ())
            if len(holders) + held > self._capacities[name]:
                out.update(holders)
        return out

    def enter(self, op: int, start: int) -> None:
        use = self._gridded[op]
        if use is not None:
            self._phases.setdefault(use.resource, (start + use.offset) % self._grids[use.resource])
        for name, place, held in self._shapes[op]:
            self._holders.setdefault((name, (start + place) % self._ii), []).extend([op] * held)

    def leave(self, op: int, start: int) -> None:
        for name, place, held in self._shapes[op]:
            holders = self._holders[name, (start + place) % self._ii]
            for _ in range(held):
                holders.remove(op)


def _find_grids(problem: ModuloProblem, ii: int) -> dict[str, int]:
    """The hold length, for each single-place resource that equal holds of several slots fill entirely."""
    lengths: dict[str, list[int]] = {resource.name: [] for resource in problem.resources if resource.capacity == 1}
    for op in problem.ops:
        for use in op.uses:
            if use.resource in lengths:
                lengths[use.resource].append(use.occupancy)
    return {name: held[0] for name, held in lengths.items() if sum(held) == ii and len(set(held)) == 1 and held[0] > 1}


def _derive_holds(op: ModuloOp, ii: int) -> tuple[tuple[str, int, int], ...]:
    """(resource, slots after the start, places held) for every slot modulo II in which the op holds anything."""
    held: Counter[tuple[str, int]] = Counter()
    for use in op.uses:
        throughout, rest = divmod(use.occupancy, ii)
        for position in range(ii if throughout else rest):
            held[use.resource, (use.offset + position) % ii] += throughout + (position < rest)
    return tuple((name, place, count) for (name, place), count in held.items())


class _Search:
    def __init__(self, problem: ModuloProblem, ii: int, heights: list[int], table: _Table) -> None:
        self._ii, self._heights, self._table = ii, heights, table
        self._free = [not op.uses for op in problem.ops]
        self._into: list[list[tuple[int, int]]] = [[] for _ in problem.ops]
        self._out_of: list[list[tuple[int, int]]] = [[] for _ in problem.ops]
        for producer, consumer, delay, distance in problem.arcs:
            if producer != consumer:  # an op's own cycle holds at every start once II is at least the MII
                self._into[consumer].append((producer, delay - distance * ii))
                self._out_of[producer].append((consumer, delay - distance * ii))
        self._starts: list[int | None] = [None] * len(problem.ops)
        self._last = [-1] * len(problem.ops)
        self._queue = [(-height, op) for op, height in enumerate(heights)]
        heapq.heapify(self._queue)

    def run(self, deadline: float | None) -> tuple[int, ...] | None:
        budget = PLACEMENTS_PER_OP * len(self._starts)
        while self._queue:
            if budget == 0:
                return None
            if budget % _LOOK_AT_CLOCK == 0:
                spend(_LOOK_AT_CLOCK * _SECONDS_PER_PLACEMENT)
                if deadline is not None and spent() >= deadline:
                    return None
            budget -= 1
            _, op = heapq.heappop(self._queue)
            self._place(op)
        starts = [start for start in self._starts if start is not None]
        shift = min(starts, default=0) // self._ii * self._ii
        return tuple(start - shift for start in starts)

    def _place(self, op: int) -> None:
        starts, table = self._starts, self._table
        earliest = 0
        for producer, weight in self._into[op]:
            start = starts[producer]
            if start is not None and start + weight > earliest:
                earliest = start + weight
        if self._free[op]:
            chosen = earliest
        else:
            fitting = table.first_fit(op, earliest)
            # By force it is placed later than the last time, or it would loop forever.
            chosen = table.aligned(op, max(earliest, self._last[op] + 1)) if fitting is None else fitting
            if fitting is None:
                for other in table.colliding(op, chosen):
                    self._remove(other)
            table.enter(op, chosen)
        starts[op] = self._last[op] = chosen
        for consumer, weight in self._out_of[op]:
            start = starts[consumer]
            if start is not None and start < chosen + weight:
                self._remove(consumer)

    def _remove(self, op: int) -> None:
        start = self._starts[op]
        if start is not None:
            if not self._free[op]:
                self._table.leave(op, start)
            self._starts[op] = None
            heapq.heappush(self._queue, (-self._heights[op], op))


_MOST_NAMED = 8  # a finding names this many edges; the rest is a number


def report_below_bound(problem: ModuloProblem, ii: int, mii: MII) -> OrderError:
    """O301 without a search: a resource or a cycle needs more."""
    concerns: list[Concern] = []
    evidence: list[tuple[str, str | int]] = [("II", ii), ("MII", mii.ii)]
    if mii.resource is not None and mii.resource.ii > ii:
        full = mii.resource
        evidence.append(
            (full.resource, f"held for {full.busy:,} slots per iteration; II {ii:,} has {full.capacity * ii:,}")
        )
    if mii.recurrence is not None and mii.recurrence.ii > ii:
        evidence.append(("recurrence", str(mii.recurrence)))
        concerns = [problem.ops[op].concern(op, "in the cycle") for op in mii.recurrence.cycle[:_MOST_NAMED]]
    return _refuse(problem, ii, concerns, evidence, (f"an initiation interval of at least {mii.ii}",))


def report_refuted(
    problem: ModuloProblem, ii: int, resources: Sequence[str], carried: Sequence[Arc], *, minimal: bool
) -> OrderError:
    """O301: these limits and these loop-carried edges leave no schedule, together with the edges of one iteration.

    `minimal` says that each of them was shown to be needed.
    """
    loads, capacities = resource_loads(problem), problem.capacities
    ops = problem.ops
    evidence: list[tuple[str, str | int]] = [("II", ii)]
    for name in resources:
        places = "1 place" if capacities[name] == 1 else f"{capacities[name]:,} places"
        evidence.append((f"limit {name}", f"{places}, held for {loads[name]:,} of {capacities[name] * ii:,} slots"))
    for arc in carried[:_MOST_NAMED]:
        room = arc.distance * ii - arc.delay
        first, last = (f"#{op} {ops[op].name}" for op in (arc.consumer, arc.producer))
        how = f"delay {arc.delay}, distance {arc.distance}"
        evidence.append(("carried edge", f"{last} starts at most {room:,} slots after {first} ({how})"))
    if len(carried) > _MOST_NAMED:
        evidence.append(("more carried edges", len(carried) - _MOST_NAMED))
    evidence.append(("smallest set", "yes: without any one of these there is a schedule" if minimal else "not shown"))
    evidence += [("horizon", ANY_HORIZON), ("grain", f"{len(ops)} ops as declared, whole slots")]
    touched = dict.fromkeys(op for arc in carried for op in (arc.producer, arc.consumer))
    concerns = [ops[op].concern(op, "at an end of a carried edge") for op in tuple(touched)[:_MOST_NAMED]]
    fixes = ("a larger initiation interval", *(f"one more place of {name}" for name in resources))
    return _refuse(problem, ii, concerns, evidence, fixes)


def report_never_fits(problem: ModuloProblem, ceiling: int) -> OrderError:
    """O301 at every II: within one iteration the edges force uses together that a resource can't take."""
    return _refuse(
        problem,
        None,
        [],
        [
            ("II", f"any; refuted at {ceiling:,}, at which iterations don't overlap"),
            ("horizon", ANY_HORIZON),
            ("grain", f"{len(problem.ops)} ops as declared, whole slots"),
        ],
        ("loosen the edges of distance 0 that keep ops close together", "a larger capacity"),
    )


def report_unscheduled(problem: ModuloProblem, ii: int | None, time_limit: float) -> OrderError:
    """O204: the time limit came before any schedule."""
    at = "" if ii is None else f" at II {ii}"
    return OrderError.of(
        "O204",
        f"no schedule of {len(problem.ops)} ops{at} was found in {time_limit:g} s; one may still exist",
        evidence=(("time limit", f"{time_limit:g} s"),),
        fixes=(f"ModuloScheduler(time_limit={max(time_limit, 1.0) * 10:g})",),
    )


def _refuse(
    problem: ModuloProblem,
    ii: int | None,
    concerns: Sequence[Concern],
    evidence: Sequence[tuple[str, str | int]],
    fixes: tuple[str, ...],
) -> OrderError:
    what = "any initiation interval" if ii is None else f"an initiation interval of {ii}"
    return OrderError.of(
        "O301",
        f"no schedule of {len(problem.ops)} ops has {what}",
        concerns=tuple(concerns),
        evidence=tuple(evidence),
        fixes=fixes,
    )


# Why an II is impossible.
#
# Separate from the search, and without a goal. Resources first, by assumption literals on one model: they leave the
# core as it is. Then carried edges, by deletion: a problem without some of them has other components and frames,
# and is decided afresh. What can't be decided in time stays in the set, which is then not called the smallest.

_LARGEST_MODEL = 200_000  # literals


def explain(problem: ModuloProblem, ii: int, seconds: float, *, seed: int = 0) -> OrderError:
    return _Deletion(problem, ii, seconds, seed).run()


class _Deletion:
    def __init__(self, problem: ModuloProblem, ii: int, seconds: float, seed: int) -> None:
        self._problem, self._ii, self._seed = problem, ii, seed
        self._deadline = spent() + seconds
        self._decided = True  # no question was left open by the clock

    def run(self) -> OrderError:
        problem = self._problem
        resources = self._resources_to_blame()
        inner = {arc for component in derive_structure(problem).components for arc in component.arcs}
        limited = _restrict_problem(problem, resources, inner)
        carried = self._shrink(limited, [arc for arc in dict.fromkeys(limited.arcs) if arc.distance > 0])
        kept = {arc for arc in inner if arc.distance == 0} | set(carried)
        for name in tuple(resources):  # a resource may have been blamed for what the carried edges alone leave out
            fewer = [other for other in resources if other != name]
            if self._refuted(_restrict_problem(problem, fewer, kept)):
                resources = fewer
        return report_refuted(problem, self._ii, resources, carried, minimal=self._decided)

    def _resources_to_blame(self) -> list[str]:
        core = derive_core(derive_structure(self._problem), self._ii)
        named = [contest.resource for contest in core.contests]
        if sum(len(contest.holds) for contest in core.contests) * self._ii > _LARGEST_MODEL:
            return named
        model = ModuloModel(core.ii, core.frames).apply(
            keep_gaps(core.gaps),
            keep_order(core.alike),
            *(count(contest, words=contest.resource) for contest in core.contests),
        )
        conflict = model.smallest_conflict(self._left() / 2, seed=self._seed)
        return named if conflict is None else [name for name in named if name in conflict]

    def _shrink(self, problem: ModuloProblem, items: list[Arc]) -> list[Arc]:
        """Drop what isn't needed, in ever smaller chunks: most isn't."""
        names = [resource.name for resource in problem.resources]
        within = {arc for arc in problem.arcs if arc.distance == 0}
        size = len(items)
        while size:
            for first in range(0, len(items), size)[::-1]:
                fewer = items[:first] + items[first + size :]
                if self._refuted(_restrict_problem(problem, names, within | set(fewer))):
                    items = fewer
            size //= 2
        return items

    def _refuted(self, problem: ModuloProblem) -> bool:
        if self._left() <= 0:
            self._decided = False
            return False
        core = derive_core(derive_structure(problem), self._ii)
        outcome = decide(core, self._left() / 4, seed=self._seed).outcome
        self._decided = self._decided and outcome is not Outcome.OPEN
        return outcome is Outcome.INFEASIBLE

    def _left(self) -> float:
        return self._deadline - spent()


def _restrict_problem(problem: ModuloProblem, resources: Iterable[str], arcs: set[Arc]) -> ModuloProblem:
    names = set(resources)
    return ModuloProblem(
        ops=tuple(replace(op, uses=tuple(use for use in op.uses if use.resource in names)) for op in problem.ops),
        edges=tuple(edge for edge, arc in zip(problem.edges, problem.arcs, strict=True) if arc in arcs),
        resources=tuple(resource for resource in problem.resources if resource.name in names),
    )


_GRACE = 10.0  # seconds for the heuristic once the time limit has come
_STRIDE = 16  # of the II, by a part of which it grows then


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuloScheduler:
    """Least initiation interval by constraint search, or the best found in `time_limit` seconds.

    Seconds are counted by the work done (`rota.solver.limits`), not by a clock: with one worker the answer depends on
    the problem, on `seed` and on `time_limit` alone, on whatever machine, busy or not.  With a time limit of 0 only the
    heuristic runs.  `time_limit` bounds the search, and once more an explanation of why
    there is no schedule; the heuristic gets a few seconds beyond it.  More workers than processors are not used.
    """

    time_limit: float = 60.0
    workers: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        check_ints(self, ("workers",), least=1)
        check_ints(self, ("seed",), most=LARGEST_SEED)
        check_seconds(self, "time_limit", zero=True)

    def schedule(self, problem: ModuloProblem, *, lower: int = 1) -> ModuloSchedule:
        """A schedule of the least II that was found, or an `OrderError` if there is none at any II.

        The caller knows that there is none below `lower`, of this problem or one that asks for less.
        """
        started = perf_counter()
        mii = derive_mii(expect("the problem", problem, ModuloProblem))
        lower = max(mii.ii, lower)
        starts = iterative_starts(problem, lower)
        if starts is not None:
            return _certify(problem, mii, lower, starts, lower=lower, by="ims", started=started)
        return self._climb(derive_structure(problem), mii, lower, started)

    def least_possible(self, problem: ModuloProblem, *, lower: int = 1) -> int:
        """A lower bound on II; the search begins at `lower`, and ends where it can't decide."""
        ii = max(derive_mii(expect("the problem", problem, ModuloProblem)).ii, lower)
        if iterative_starts(problem, ii) is not None:
            return ii
        structure, deadline = derive_structure(problem), spent() + self.time_limit
        if _may_never_fit(problem):
            self._check_ever_fits(structure, deadline)
        while (left := deadline - spent()) > 0 and not stopped():
            if self._search(structure, ii, left / 2) is not Outcome.INFEASIBLE:
                break
            ii += 1
        return ii

    def schedule_at(self, problem: ModuloProblem, ii: int) -> ModuloSchedule:
        """A schedule of exactly this II, or an `OrderError` that names the constraints which leave none."""
        started = perf_counter()
        mii = derive_mii(expect("the problem", problem, ModuloProblem))
        if not is_int(ii) or not 1 <= ii <= LONGEST:
            raise bad_field(self, "ii", ii, f"an integer, from 1 to {LONGEST}")
        if ii < mii.ii:
            raise report_below_bound(problem, ii, mii)
        starts = iterative_starts(problem, ii)
        if starts is not None:
            return _certify(problem, mii, ii, starts, lower=mii.ii, by="ims", started=started)
        found = self.starts_at(problem, ii)
        if found is Outcome.INFEASIBLE:
            raise explain(problem, ii, self.time_limit, seed=self.seed)
        if isinstance(found, Outcome):
            raise report_unscheduled(problem, ii, self.time_limit)
        return _certify(problem, mii, ii, found, lower=mii.ii, by="cpsat", started=started)

    def starts_at(self, problem: ModuloProblem, ii: int) -> tuple[int, ...] | Outcome:
        """Starts at exactly this II by search alone; or that there are none, or that the time came first."""
        return self._search(derive_structure(problem), ii, self.time_limit)

    def _climb(self, structure: Structure, mii: MII, lower: int, started: float) -> ModuloSchedule:
        """Try II from `lower` up; an undecided II ends the refutations, and the search goes on for any schedule."""
        problem, deadline = structure.problem, spent() + self.time_limit
        if _may_never_fit(problem):
            self._check_ever_fits(structure, deadline)
        ii, undecided = lower, False
        while (left := deadline - spent()) > 0 and not stopped():
            # Half of what is left: an II that can't be decided must not cost the schedule of a larger one.
            starts = self._search(structure, ii, left / 2)
            by = "cpsat"
            if starts is Outcome.OPEN:
                undecided = True
                found = iterative_starts(problem, ii, deadline)
                starts, by = (found, "ims") if found is not None else (Outcome.OPEN, "")
            if not isinstance(starts, Outcome):
                return _certify(problem, mii, ii, starts, lower=lower, by=by, started=started)
            ii += 1
            lower = lower if undecided else ii
        return self._fall_back(problem, mii, lower, started)

    def _search(self, structure: Structure, ii: int, seconds: float) -> tuple[int, ...] | Outcome:
        found = decide(derive_core(structure, ii), seconds, workers=self.workers, seed=self.seed)
        return found.outcome if found.starts is None else derive_starts(structure, ii, found.starts)

    def _check_ever_fits(self, structure: Structure, deadline: float) -> None:
        ceiling = _find_ceiling(structure.problem)
        seconds = (deadline - spent()) / 4
        found = decide(derive_core(structure, ceiling), seconds, workers=self.workers, seed=self.seed)
        if found.outcome is Outcome.INFEASIBLE:
            raise report_never_fits(structure.problem, ceiling)

    def _fall_back(self, problem: ModuloProblem, mii: MII, lower: int, started: float) -> ModuloSchedule:
        """Out of time: the heuristic at growing II, and one op after the other if even that fails."""
        ceiling, step, deadline = _find_ceiling(problem), 0, spent() + _GRACE
        while lower + step < ceiling and spent() < deadline:
            starts = iterative_starts(problem, lower + step, deadline)
            if starts is not None:
                return _certify(problem, mii, lower + step, starts, lower=lower, by="ims", started=started)
            step = 2 * step + max(1, lower // _STRIDE)
        if _may_never_fit(problem):
            raise report_unscheduled(problem, None, self.time_limit)
        in_turn = strong_components(len(problem.ops), [arc for arc in problem.arcs if arc.distance == 0])
        rank = {component[0]: place for place, component in enumerate(in_turn)}
        serial = tuple(rank[op] * (ceiling // len(rank)) for op in range(len(rank)))
        return _certify(problem, mii, ceiling, serial, lower=lower, by="one after the other", started=started)


def _may_never_fit(problem: ModuloProblem) -> bool:
    """True if ops that edges hold close together, or one long op, may overfill a resource at any II."""
    together = strong_components(len(problem.ops), [arc for arc in problem.arcs if arc.distance == 0])
    return len(together) < len(problem.ops) or any(
        len({use.resource for use in op.uses}) < len(op.uses) for op in problem.ops
    )


def _find_ceiling(problem: ModuloProblem) -> int:
    """An II at which there is a schedule if there is one at any.

    Let G be the longest delay or hold.  Take a schedule of any II and shorten every pause of more than G between two
    successive starts to G: edges of distance 0 and resources still hold, and n ops start within (n - 1) x G slots.  So
    at an II of n x G iterations don't overlap and the carried edges hold by themselves.
    """
    longest = max((abs(arc.delay) for arc in problem.arcs), default=1)
    held = max((use.offset + use.occupancy for op in problem.ops for use in op.uses), default=1)
    return len(problem.ops) * max(1, longest, held)


def _certify(
    problem: ModuloProblem, mii: MII, ii: int, starts: tuple[int, ...], *, lower: int, by: str, started: float
) -> ModuloSchedule:
    proof = ModuloProof.REFUTED if ii == lower else ModuloProof.OPEN
    if ii == mii.ii:
        proof = ModuloProof.MEETS_BOUND
    certificate = ModuloCertificate(
        proof=proof, mii=mii, lower=lower, refuted=tuple(range(mii.ii, lower)), by=by, seconds=perf_counter() - started
    )
    schedule = ModuloSchedule(ii=ii, starts=starts, certificate=certificate)
    check_modulo_schedule(problem, schedule)
    return schedule
