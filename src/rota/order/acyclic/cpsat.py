"""The exact scheduler: the order of least makespan, then least register peak, proved.

One of the three modules that use the solver, and only when a search is needed. The solver is outside the trusted base:
its answer is rebuilt as an order, measured by `evaluate_order` and checked by `check_ordering`.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from time import perf_counter
from typing import TYPE_CHECKING

from rota.check import bad_field, check_ints, check_seconds
from rota.errors import Concern, GraphError, OrderError
from rota.order.acyclic.check_ordering import check_ordering, loads_between_computes, surplus_note
from rota.order.acyclic.greedy import greedy_order, measured
from rota.order.acyclic.problem import (
    LDS_PORT,
    SERIAL_UNITS,
    DepEdge,
    Evaluation,
    LoopBody,
    OrderCertificate,
    Ordering,
    OrderProblem,
    Proof,
    ancestors,
    evaluate_order,
    makespan_lower_bound,
    peak_lower_bound,
)
from rota.program.kinds import OpRole
from rota.solver.cp_sat import make_ready
from rota.solver.limits import LARGEST_SEED, LARGEST_SUM, Outcome, solve, spent, units

if TYPE_CHECKING:
    from ortools.sat.python import cp_model


# The facts of an exact search.
#
# Nothing here touches the solver. A search asks for one `Goal` under some `Limits`; which ops need a place of their
# own in the order follows from both: without a limit on loads or registers the start times say everything.


class Goal(enum.Enum):
    """What one solve minimises."""

    MAKESPAN = "makespan"
    PEAK = "register peak"
    LOADS = "loads between two computes"
    NONE = "nothing: any order will do"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one solve obeys besides dependencies and partitions; None lifts a limit.

    Without a `horizon` times play no part: every order has some makespan.
    """

    horizon: int | None = None
    max_globals: int | None = None
    max_vgpr: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """What a solve found: an order if there is one, the goal's value there, and the bound proved for any order."""

    outcome: Outcome
    order: tuple[int, ...] | None = None
    value: int | None = None
    bound: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SerialGroup:
    """Ops that a unit or the LDS port takes one after the other, and how long each delays the next."""

    members: tuple[int, ...]
    spacing: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What holds for every order of a problem.

    `before[i]` is the bit mask of the ops that precede op i in every order that the search considers: dependencies,
    earlier partitions, and of two interchangeable ops the one with the lower index.
    """

    problem: OrderProblem
    seed: tuple[int, ...]
    part: tuple[int, ...]
    before: tuple[int, ...]
    twins: tuple[tuple[int, int], ...]
    serial: tuple[SerialGroup, ...]
    computes: tuple[int, ...]
    loads: tuple[int, ...]
    makespan_bound: int
    peak_bound: int
    longest: int
    most_registers: int

    @property
    def peak_varies(self) -> bool:
        """False if no op frees a register: then every order ends with all of them live and has the same peak."""
        return any(op.vgpr_kill for op in self.problem.body.ops)

    def known(self, first: int, second: int) -> bool | None:
        """True if `first` precedes `second` in every order, False if in none, None if it is open."""
        if self.before[second] >> first & 1:
            return True
        return False if self.before[first] >> second & 1 else None

    def binding(self) -> Limits:
        """The problem's limits, without those that no order can break."""
        problem = self.problem
        loads_bind = 0 < problem.max_globals < len(self.loads)
        registers_bind = self.peak_varies and problem.max_vgpr < self.most_registers
        return Limits(
            max_globals=problem.max_globals if loads_bind else None,
            max_vgpr=problem.max_vgpr if registers_bind else None,
        )

    def ordered(self, goal: Goal, limits: Limits) -> tuple[int, ...]:
        """The ops whose mutual order the solver must decide, in body order; all others follow from dependencies.

        Any cycle through a dropped op shortens to one among the kept ops, since `before` is closed.
        """
        loads_matter = goal is Goal.LOADS or limits.max_globals is not None
        registers_matter = goal is Goal.PEAK or limits.max_vgpr is not None
        members: set[int] = set()
        if loads_matter:
            members.update(self.computes, self.loads)
        if registers_matter:
            members.update(i for i, op in enumerate(self.problem.body.ops) if op.vgpr_def or op.vgpr_kill)
        if members and limits.horizon is not None:
            members.update(*(group.members for group in self.serial))
        return tuple(sorted(members))

    def follow(self, chains: Iterable[Sequence[int]]) -> tuple[int, ...]:
        """The order that keeps each chain's sequence and otherwise takes the lowest-index ready op."""
        body = self.problem.body
        links = tuple(DepEdge(first, second) for chain in chains for first, second in pairwise(chain))
        try:
            chained = LoopBody(body.ops, body.edges + links)
        except GraphError as error:
            raise OrderError.of(
                "O101",
                "the solver's answer is not an order: some ops would come before each other",
                evidence=(("cycle", str(dict(error.findings[0].evidence).get("cycle", ""))),),
            ) from error
        return greedy_order(OrderProblem(body=chained, partitions=self.problem.partitions))


def gather_facts(problem: OrderProblem) -> Facts:
    """All facts of a problem; O103 where dependencies point backward across partitions."""
    body, penalty = problem.body, problem.lds_contention_penalty
    ops = body.ops
    seed = greedy_order(problem)
    part = tuple(problem.partition_of(index) for index in range(len(ops)))
    twins = _find_twins(body, part)
    port = [op for op in ops if op.resource in LDS_PORT]
    longest = sum(op.latency for op in ops) + penalty * len(port)
    most_registers = sum(op.vgpr_def for op in ops)
    freed = sum(op.vgpr_kill for op in ops)
    for name, total in (("latency plus penalty", longest), ("vgpr_def", most_registers), ("vgpr_kill", freed)):
        if total > LARGEST_SUM:
            raise bad_field(body, name, total, f"a sum over all ops of at most {LARGEST_SUM}")
    return Facts(
        problem=problem,
        seed=seed,
        part=part,
        before=_precedences(body, part, twins),
        twins=twins,
        serial=_serial_groups(body, penalty),
        computes=tuple(i for i, op in enumerate(ops) if op.role is OpRole.COMPUTE),
        loads=tuple(i for i, op in enumerate(ops) if op.role is OpRole.GLOBAL_LOAD),
        makespan_bound=makespan_lower_bound(body, penalty),
        peak_bound=peak_lower_bound(problem),
        longest=longest,
        most_registers=most_registers,
    )


def _find_twins(body: LoopBody, part: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Neighbouring pairs of ops that are interchangeable: alike, with the same dependencies."""
    after: list[set[int]] = [set() for _ in body.ops]
    for index, producers in enumerate(body.predecessors()):
        for producer in producers:
            after[producer].add(index)
    alike: dict[object, list[int]] = {}
    for index, op in enumerate(body.ops):
        cost = (op.role, op.resource, op.latency, op.vgpr_def, op.vgpr_kill)
        place = (part[index], frozenset(body.predecessors()[index]), frozenset(after[index]))
        alike.setdefault((cost, place), []).append(index)
    return tuple(pair for indices in alike.values() for pair in pairwise(indices))


def _precedences(body: LoopBody, part: Sequence[int], twins: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    links = tuple(DepEdge(first, second) for first, second in twins)
    masks = ancestors(LoopBody(body.ops, body.edges + links))
    earlier: dict[int, int] = {}
    for number in set(part):
        earlier[number] = sum(1 << index for index, other in enumerate(part) if other < number)
    return tuple(mask | earlier[number] for mask, number in zip(masks, part, strict=True))


def _serial_groups(body: LoopBody, penalty: int) -> tuple[SerialGroup, ...]:
    groups = []
    for unit in SERIAL_UNITS:
        members = tuple(index for index, op in enumerate(body.ops) if op.resource is unit)
        groups.append(SerialGroup(members=members, spacing=tuple(body.ops[i].latency for i in members)))
    if penalty:
        members = tuple(index for index, op in enumerate(body.ops) if op.resource in LDS_PORT)
        groups.append(SerialGroup(members=members, spacing=(penalty,) * len(members)))
    return tuple(group for group in groups if len(group.members) > 1)


_KEEP_SEED = "scheduling=SchedulingStrategy.GREEDY takes the list order and knows no limits"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """No order obeys `limits`: whether one obeys each limit alone, and the least value each could have.

    When each alone can be obeyed, the least of one is under the other; else it is on its own.
    """

    limits: Limits
    budget_alone: Outcome
    loads_alone: Outcome
    least_peak: Solution | None = None
    least_loads: Solution | None = None


def report_over_budget(facts: Facts) -> OrderError:
    """O201 without a search: no op frees a register, so every order has the same peak."""
    total, budget = facts.most_registers, facts.problem.max_vgpr
    return OrderError.of(
        "O201",
        f"the ops define {total} registers and free none, but max_vgpr is {budget}",
        concerns=_find_peak_op(facts, facts.seed),
        evidence=(("max_vgpr", budget), ("registers live at the end of any order", total)),
        fixes=(f"max_vgpr={total}", "declare vgpr_kill on the ops that use a register last"),
    )


def report_no_order(facts: Facts, refusal: Refusal) -> OrderError:
    """O201, O202 or O203: the budget, the load limit, or both leave no order."""
    problem, limits = facts.problem, refusal.limits
    budget_fails = refusal.budget_alone is Outcome.INFEASIBLE
    loads_fail = refusal.loads_alone is Outcome.INFEASIBLE
    budget, loads = f"max_vgpr {limits.max_vgpr}", f"max_globals {limits.max_globals}"
    if budget_fails and not loads_fail:
        code, message = "O201", f"no order fits {budget}"
    elif loads_fail and not budget_fails:
        code, message = "O202", f"no order keeps to {loads}"
    elif loads_fail:
        code, message = "O203", f"no order fits {budget}, and none keeps to {loads}"
    else:
        code, message = "O203", f"no order fits {budget} and keeps to {loads} as well"
    together = not budget_fails and not loads_fail
    concerns: tuple[Concern, ...] = ()
    evidence: list[tuple[str, str | int]] = []
    fixes: list[str] = []
    if refusal.least_peak is not None:
        under = f" that keeps to {loads}" if together else ""
        evidence += [("max_vgpr", problem.max_vgpr), (f"least peak of any order{under}", _least(refusal.least_peak))]
        concerns = _find_peak_op(facts, refusal.least_peak.order)
        fixes += _set_to("max_vgpr", refusal.least_peak)
    if refusal.least_loads is not None:
        under = f" that fits {budget}" if together else ""
        evidence += [
            ("max_globals", problem.max_globals),
            (f"least loads between two computes of any order{under}", _least(refusal.least_loads)),
            ("global loads", len(facts.loads)),
            ("computes", len(facts.computes)),
        ]
        fixes += _set_to("max_globals", refusal.least_loads)
    evidence += [
        (f"{name} alone", "not decided within the time limit")
        for name, outcome in (("max_vgpr", refusal.budget_alone), ("max_globals", refusal.loads_alone))
        if outcome is Outcome.OPEN
    ]
    return OrderError.of(code, message, concerns=concerns, evidence=tuple(evidence), fixes=(*fixes, _KEEP_SEED))


def report_time_limit(facts: Facts, seed: Evaluation, fullest_gap: int, time_limit: float) -> OrderError:
    """O204: the time limit came before any order, and the greedy order breaks a limit."""
    problem = facts.problem
    evidence: list[tuple[str, str | int]] = [("time limit", f"{time_limit:g} s")]
    if seed.vgpr_peak > problem.max_vgpr:
        evidence += [("register peak of the greedy order", seed.vgpr_peak), ("max_vgpr", problem.max_vgpr)]
    if 0 < problem.max_globals < fullest_gap:
        evidence += [("loads in the greedy order's fullest gap", fullest_gap), ("max_globals", problem.max_globals)]
    return OrderError.of(
        "O204",
        f"no order of {len(problem.body.ops)} ops was found in {time_limit:g} s; one may still exist",
        evidence=tuple(evidence),
        fixes=(f"CpSatScheduler(time_limit={time_limit * 10:g})", _KEEP_SEED),
    )


def _find_peak_op(facts: Facts, order: tuple[int, ...] | None) -> tuple[Concern, ...]:
    live, peak, worst = 0, -1, None
    for index in order or ():
        op = facts.problem.body.ops[index]
        live += op.vgpr_def
        if live > peak:
            peak, worst = live, index
        live -= op.vgpr_kill
    if worst is None:
        return ()
    return (facts.problem.body.ops[worst].concern(worst, f"{peak} registers are live here"),)


def _least(solution: Solution) -> str | int:
    if solution.outcome is Outcome.OPTIMAL and solution.value is not None:
        return solution.value
    if solution.value is not None:
        return f"from {solution.bound} to {solution.value}; the time limit came first"
    return f"at least {solution.bound}; the time limit came first"


def _set_to(name: str, solution: Solution) -> tuple[str, ...]:
    return (f"{name}={solution.value}",) if solution.value is not None else ()


_ROUNDING = 1e-6  # the solver states integers as floats


@dataclass(frozen=True, slots=True, kw_only=True)
class CpSatScheduler:
    """Least makespan, then least register peak, by constraint search.

    `time_limit` (seconds) bounds the search, and once more the explanation of why no order exists.  Seconds are counted
    by the work done (`rota.solver.limits`): with one worker the answer depends on the problem, on `seed` and on
    `time_limit` alone, on whatever machine.
    """

    time_limit: float = 60.0
    workers: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        check_ints(self, ("workers",), least=1)
        check_ints(self, ("seed",), most=LARGEST_SEED)
        check_seconds(self, "time_limit", zero=False)

    def order(self, problem: OrderProblem) -> Ordering:
        """The best order, or an `OrderError` that says which limits leave none."""
        started = perf_counter()
        seed = measured(problem, greedy_order(problem), "greedy")
        surplus = surplus_note(problem, seed.order)
        known = seed.certificate
        within_budget = seed.vgpr_peak <= problem.max_vgpr
        if within_budget and (seed.makespan, seed.vgpr_peak) == (known.bound, known.vgpr_bound):
            # No order is better, so there is nothing to search for; redistribution deals with surplus loads.
            notes = (surplus,) if surplus else ()
            seconds = perf_counter() - started
            return replace(seed, certificate=replace(known, proof=Proof.OPTIMAL, seconds=seconds, notes=notes))
        facts = gather_facts(problem)
        if not facts.peak_varies and not within_budget:
            raise report_over_budget(facts)
        answer = self._search(facts, seed_fits=surplus is None and within_budget, started=started)
        check_ordering(problem, answer)
        return answer

    def _search(self, facts: Facts, *, seed_fits: bool, started: float) -> Ordering:
        limits, deadline = facts.binding(), spent() + self.time_limit
        best, bound = self._shortest(facts, limits, deadline, seed_fits=seed_fits)
        makespan, peak = _measure(facts, best)
        peak_bound = facts.peak_bound
        if makespan == bound and peak > peak_bound:
            keep = Limits(horizon=makespan, max_globals=limits.max_globals, max_vgpr=peak)
            found = self._solve(facts, Goal.PEAK, keep, deadline, hint=best)
            best, peak_bound = _choose_better(facts, best, found.order), max(peak_bound, found.bound)
        return _certify(facts, best, Evaluation(bound, peak_bound), by="cpsat", started=started)

    def _shortest(
        self, facts: Facts, limits: Limits, deadline: float, *, seed_fits: bool
    ) -> tuple[tuple[int, ...], int]:
        """An order of least makespan and the bound proved for any; keeps the greedy order if it is as short."""
        cost = _measure(facts, facts.seed)
        if seed_fits and cost.makespan == facts.makespan_bound:
            return facts.seed, facts.makespan_bound
        horizon = cost.makespan if seed_fits else facts.longest
        found = self._solve(facts, Goal.MAKESPAN, replace(limits, horizon=horizon), deadline, hint=facts.seed)
        if seed_fits:
            return _choose_better(facts, facts.seed, found.order), max(found.bound, facts.makespan_bound)
        if found.outcome is Outcome.INFEASIBLE:
            raise self._explain(facts, limits)
        if found.order is None:
            fullest_gap = max(map(len, loads_between_computes(facts.problem, facts.seed)))
            raise report_time_limit(facts, cost, fullest_gap, self.time_limit)
        return found.order, max(found.bound, facts.makespan_bound)

    def _explain(self, facts: Facts, limits: Limits) -> OrderError:
        """Which limit leaves no order: solve for each alone, then for the least value each could have."""
        deadline = spent() + self.time_limit
        budget, loads = Limits(max_vgpr=limits.max_vgpr), Limits(max_globals=limits.max_globals)
        if limits.max_globals is None:
            budget_alone, loads_alone = Outcome.INFEASIBLE, Outcome.OPTIMAL
        elif limits.max_vgpr is None:
            budget_alone, loads_alone = Outcome.OPTIMAL, Outcome.INFEASIBLE
        else:
            budget_alone = self._solve(facts, Goal.NONE, budget, deadline).outcome
            loads_alone = self._solve(facts, Goal.NONE, loads, deadline).outcome
        together = Outcome.INFEASIBLE not in (budget_alone, loads_alone)
        refusal = Refusal(limits=limits, budget_alone=budget_alone, loads_alone=loads_alone)
        if together or budget_alone is Outcome.INFEASIBLE:
            least_peak = self._solve(facts, Goal.PEAK, loads if together else Limits(), deadline)
            refusal = replace(refusal, least_peak=least_peak)
        if together or loads_alone is Outcome.INFEASIBLE:
            least_loads = self._solve(facts, Goal.LOADS, budget if together else Limits(), deadline)
            refusal = replace(refusal, least_loads=least_loads)
        return report_no_order(facts, refusal)

    def _solve(
        self, facts: Facts, goal: Goal, limits: Limits, deadline: float, hint: tuple[int, ...] | None = None
    ) -> Solution:
        make_ready()
        from ortools.sat.python import cp_model

        model = _Model(cp_model.CpModel(), facts, goal, limits)
        if hint is not None:
            model.suggest(hint)
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = self.workers
        solver.parameters.random_seed = self.seed
        seconds = deadline - spent()
        if seconds <= 0:
            return Solution(outcome=Outcome.OPEN)
        solver.parameters.max_deterministic_time = units(seconds)
        status = solve(solver, model.model)
        if status == cp_model.INFEASIBLE:
            return Solution(outcome=Outcome.INFEASIBLE)
        proved = solver.best_objective_bound
        bound = max(0, math.ceil(proved - _ROUNDING)) if goal is not Goal.NONE and math.isfinite(proved) else 0
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return Solution(outcome=Outcome.OPEN, bound=bound)
        return Solution(
            outcome=Outcome.OPTIMAL if status == cp_model.OPTIMAL else Outcome.FEASIBLE,
            order=model.read(solver),
            value=round(solver.objective_value) if goal is not Goal.NONE else None,
            bound=bound,
        )


class _Model:
    """One solve as variables and constraints.

    An open pair of ops gets one literal, "the first precedes the second"; among the ops that need a place of their own
    the literals are kept free of cycles.  Start times follow the dependencies and, on a serial unit or the LDS port,
    the literals; where no op needs a place, the start times are the order.
    """

    def __init__(self, model: cp_model.CpModel, facts: Facts, goal: Goal, limits: Limits) -> None:
        self.model = model
        self._facts = facts
        self._ops = facts.problem.body.ops
        self._ordered = facts.ordered(goal, limits)
        self._literals: dict[tuple[int, int], cp_model.BoolVarT] = {}
        self._starts: list[cp_model.IntVar] = []
        self._order_ops()
        if limits.horizon is not None:
            self._time_ops(limits.horizon)
            if goal is Goal.MAKESPAN:
                model.minimize(self._makespan(limits.horizon))
        if goal is Goal.PEAK:
            most = facts.most_registers if limits.max_vgpr is None else limits.max_vgpr
            peak = model.new_int_var(facts.peak_bound, most, "peak")
            self._bound_registers(peak)
            model.minimize(peak)
        elif limits.max_vgpr is not None:
            self._bound_registers(limits.max_vgpr)
        if goal is Goal.LOADS:
            fullest = model.new_int_var(1, len(facts.loads), "fullest gap")
            self._bound_loads(fullest)
            model.minimize(fullest)
        elif limits.max_globals is not None:
            self._bound_loads(limits.max_globals)

    def suggest(self, order: tuple[int, ...]) -> None:
        place = {index: position for position, index in enumerate(order)}
        for (first, second), literal in self._literals.items():
            if first < second:
                self.model.add_hint(literal, place[first] < place[second])

    def read(self, solver: cp_model.CpSolver) -> tuple[int, ...]:
        """The order of the solution, with ops that the solver left open in body order."""
        facts = self._facts
        if self._ordered:
            rank = {
                index: sum(
                    solver.boolean_value(self._literals[other, index])
                    if facts.known(other, index) is None
                    else facts.known(other, index) is True
                    for other in self._ordered
                    if other != index
                )
                for index in self._ordered
            }
            return facts.follow([sorted(self._ordered, key=rank.__getitem__)])
        place = {index: position for position, index in enumerate(facts.seed)}

        def when(index: int) -> tuple[int, int, bool, int]:
            # An op that takes no time may share its start with one that does; it must come first, or it would wait.
            return facts.part[index], solver.value(self._starts[index]), self._ops[index].latency > 0, place[index]

        return facts.follow([sorted(group.members, key=when) for group in facts.serial])

    def _order_ops(self) -> None:
        facts, literals = self._facts, self._literals
        by_part: dict[int, list[int]] = {}
        for index in self._ordered:
            by_part.setdefault(facts.part[index], []).append(index)
        for members in by_part.values():
            for first, second in combinations(members, 2):
                if facts.known(first, second) is None:
                    literal = self.model.new_bool_var(f"{first} precedes {second}")
                    literals[first, second], literals[second, first] = literal, ~literal
            for a, b, c in combinations(members, 3):
                self._forbid_cycle((a, b), (b, c), (c, a))
                self._forbid_cycle((a, c), (c, b), (b, a))

    def _forbid_cycle(self, *pairs: tuple[int, int]) -> None:
        known = {pair: self._facts.known(*pair) for pair in pairs}
        if False not in known.values():
            self.model.add_bool_or([~self._literals[pair] for pair, fact in known.items() if fact is None])

    def _time_ops(self, horizon: int) -> None:
        body, model = self._facts.problem.body, self.model
        domains = zip(body.compute_asap(), body.compute_alap(horizon), strict=True)
        self._starts = [model.new_int_var(*domain, f"start {i}") for i, domain in enumerate(domains)]
        for index, producers in enumerate(body.predecessors()):
            for producer in producers:
                model.add(self._starts[index] >= self._starts[producer] + self._ops[producer].latency)
        for first, second in self._facts.twins:
            model.add(self._starts[first] <= self._starts[second])
        for group in self._facts.serial:
            self._serialise(group)

    def _serialise(self, group: SerialGroup) -> None:
        model, starts = self.model, self._starts
        spaced = tuple(zip(group.members, group.spacing, strict=True))
        model.add_no_overlap([model.new_fixed_size_interval_var(starts[i], gap, f"turn {i}") for i, gap in spaced])
        for first, gap in spaced:
            for second in group.members:
                if self._facts.known(first, second):
                    model.add(starts[second] >= starts[first] + gap)
                elif (first, second) in self._literals:
                    model.add(starts[second] >= starts[first] + gap).only_enforce_if(self._literals[first, second])

    def _makespan(self, horizon: int) -> cp_model.IntVar:
        makespan = self.model.new_int_var(self._facts.makespan_bound, horizon, "makespan")
        for start, op in zip(self._starts, self._ops, strict=True):
            self.model.add(makespan >= start + op.latency)
        return makespan

    def _bound_registers(self, most: cp_model.IntVar | int) -> None:
        """At each op that defines registers, what is live before it and what it defines is at most `most`."""
        net = {index: self._ops[index].vgpr_def - self._ops[index].vgpr_kill for index in self._ordered}
        for index in self._ordered:
            if not self._ops[index].vgpr_def:
                continue  # what an op meets, the op before it has left: no higher than that one's own peak
            sides = {other: self._facts.known(other, index) for other in self._ordered if net[other]}
            earlier = sum(net[other] for other, side in sides.items() if side is True)
            open_pairs = [other for other, side in sides.items() if side is None and other != index]
            met = sum(net[other] * self._literals[other, index] for other in open_pairs)
            self.model.add(met <= most - earlier - self._ops[index].vgpr_def)

    def _bound_loads(self, most: cp_model.IntVar | int) -> None:
        """A load's gap is numbered by the computes before it; a gap holds at most `most` loads."""
        facts, model = self._facts, self.model
        in_gap: list[list[cp_model.IntVar]] = [[] for _ in range(len(facts.computes) + 1)]
        for load in facts.loads:
            sides = {compute: facts.known(compute, load) for compute in facts.computes}
            earlier = sum(side is True for side in sides.values())
            undecided = [self._literals[compute, load] for compute, side in sides.items() if side is None]
            gaps = range(earlier, earlier + len(undecided) + 1)
            chosen = [model.new_bool_var(f"load {load} in gap {gap}") for gap in gaps]
            model.add_exactly_one(chosen)
            model.add(sum(step * here for step, here in enumerate(chosen)) == sum(undecided))
            for gap, here in zip(gaps, chosen, strict=True):
                in_gap[gap].append(here)
        for standing in in_gap:
            model.add(sum(standing) <= most)


def _measure(facts: Facts, order: tuple[int, ...]) -> Evaluation:
    return evaluate_order(facts.problem.body, order, facts.problem.lds_contention_penalty)


def _choose_better(facts: Facts, kept: tuple[int, ...], found: tuple[int, ...] | None) -> tuple[int, ...]:
    """The cheaper of two orders; `kept` on a tie, so that the author's ops move only for a gain."""
    return found if found is not None and _measure(facts, found) < _measure(facts, kept) else kept


def _certify(facts: Facts, order: tuple[int, ...], proved: Evaluation, *, by: str, started: float) -> Ordering:
    cost = _measure(facts, order)
    return Ordering(
        order=order,
        makespan=cost.makespan,
        vgpr_peak=cost.vgpr_peak,
        certificate=OrderCertificate(
            proof=Proof.OPTIMAL if cost == proved else Proof.FEASIBLE,
            bound=proved.makespan,
            vgpr_bound=proved.vgpr_peak,
            by=by,
            seconds=perf_counter() - started,
        ),
    )
