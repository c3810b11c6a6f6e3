"""Why the exact search has no answer: takes what its solves showed, gives an error with the numbers on both sides."""

from __future__ import annotations

from dataclasses import dataclass

from rota.errors import Concern, Finding, OrderError
from rota.order.acyclic.cpsat_model import Facts, Limits, Solution
from rota.order.acyclic.evaluate import Evaluation
from rota.solver.outcome import Outcome

_KEEP_SEED = "scheduling=SchedulingStrategy.GREEDY takes the list order and knows no limits"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """No order keeps to `limits`: whether one keeps to each limit alone, and the least that each could be set to.

    When each alone can be kept, the least of one is under the other; else it is on its own.
    """

    limits: Limits
    budget_alone: Outcome
    loads_alone: Outcome
    least_peak: Solution | None = None
    least_loads: Solution | None = None


def over_budget(facts: Facts) -> OrderError:
    """O201 without a search: no op frees a register, so every order has the same peak."""
    total, budget = facts.most_registers, facts.problem.max_vgpr
    return OrderError(
        Finding(
            code="O201",
            message=f"the ops define {total} registers and free none, but max_vgpr is {budget}",
            concerns=_at_the_peak(facts, facts.seed),
            evidence=(("max_vgpr", budget), ("registers live at the end of any order", total)),
            fixes=(f"max_vgpr={total}", "declare vgpr_kill on the ops that use a register last"),
        )
    )


def cannot_fit(facts: Facts, refusal: Refusal) -> OrderError:
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
        concerns = _at_the_peak(facts, refusal.least_peak.order)
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
    return OrderError(
        Finding(code=code, message=message, concerns=concerns, evidence=tuple(evidence), fixes=(*fixes, _KEEP_SEED))
    )


def unanswered(facts: Facts, seed: Evaluation, fullest_gap: int, time_limit: float) -> OrderError:
    """O204: the time limit came before any order, and the greedy order breaks a limit."""
    problem = facts.problem
    evidence: list[tuple[str, str | int]] = [("time limit", f"{time_limit:g} s")]
    if seed.vgpr_peak > problem.max_vgpr:
        evidence += [("register peak of the greedy order", seed.vgpr_peak), ("max_vgpr", problem.max_vgpr)]
    if 0 < problem.max_globals < fullest_gap:
        evidence += [("loads in the greedy order's fullest gap", fullest_gap), ("max_globals", problem.max_globals)]
    return OrderError(
        Finding(
            code="O204",
            message=f"no order of {len(problem.body.ops)} ops was found in {time_limit:g} s; one may still exist",
            evidence=tuple(evidence),
            fixes=(f"CpSatScheduler(time_limit={time_limit * 10:g})", _KEEP_SEED),
        )
    )


def _at_the_peak(facts: Facts, order: tuple[int, ...] | None) -> tuple[Concern, ...]:
    """The op at which an order needs most registers."""
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
