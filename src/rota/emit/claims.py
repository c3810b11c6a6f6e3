"""How good a schedule is said to be: takes one that was read, gives it with what can be shown again.

A search that found nothing better is no proof that can be read; a bound of the loop itself is.
"""

from __future__ import annotations

from dataclasses import replace

from rota.compiler.build import order_problem
from rota.compiler.claim import Claim
from rota.compiler.compiled import CompiledSchedule
from rota.compiler.depth import allowances
from rota.declare.values import LoopSpec
from rota.emit.disagreement import demand, derived_again, disagreement
from rota.graph.handover import derive_deliveries, derive_handovers
from rota.graph.loop_problem import modulo_problem, without_turns
from rota.graph.modulo import LONGEST, ModuloProblem
from rota.graph.timing import time_loop
from rota.order.greedy import measured
from rota.order.modulo_check import check_starts
from rota.order.modulo_schedule import ModuloSchedule
from rota.order.problem import Ordering, OrderProblem, Proof
from rota.order.settle import Choice, Settled
from rota.order.settle_check import check_settled
from rota.program.unroll import Placement
from rota.targets.timing import timing_of

CLAIMED = "the document"
"""Who says that nothing better was found, where rota hasn't shown it."""


def as_claimed(schedule: CompiledSchedule) -> CompiledSchedule:
    """The schedule with certificates of its quality that hold; those of a search are left open."""
    if schedule.ordering is not None:
        with derived_again("edges"):
            problem = order_problem(schedule.body, schedule.config, schedule.schedule_config, schedule.edges)
        return replace(schedule, ordering=_order(problem, schedule.ordering))
    if schedule.loop is not None and schedule.placement is not None:
        return replace(schedule, modulo=_modulo(schedule, schedule.loop, schedule.placement))
    return schedule


def _order(problem: OrderProblem, ordering: Ordering) -> Ordering:
    """The order was checked; of the bounds on its cost those remain that hold for any order of this body."""
    claimed = ordering.certificate
    known = measured(problem, ordering.order, claimed.by).certificate
    if claimed.proof is Proof.OPTIMAL and (known.bound, known.vgpr_bound) == (ordering.makespan, ordering.vgpr_peak):
        return ordering
    proof = Proof.NONE if claimed.proof is Proof.NONE else Proof.FEASIBLE
    held = replace(claimed, proof=proof, bound=known.bound, vgpr_bound=known.vgpr_bound)
    return ordering if held == claimed else replace(ordering, certificate=replace(held, by=CLAIMED))


def _modulo(schedule: CompiledSchedule, loop: LoopSpec, placement: Placement) -> ModuloSchedule | None:
    """Starts keep every edge and unit at the interval, with the slack that is said; then the bound is derived again."""
    found = schedule.modulo
    if placement.interval > LONGEST or max(placement.starts, default=0) > LONGEST:
        raise disagreement("placement", f"takes more than {LONGEST} slots")
    if found is None:
        _check_no_slack(placement, "no interval was searched for")
        return None
    demand("modulo.ii", found.ii, placement.interval)
    demand("modulo.starts", found.starts, placement.starts)
    groups = 2 if schedule.config.warp_stagger.enabled else 1
    with derived_again("loop"):
        times = time_loop(loop, timing_of(schedule.machine), groups=groups)
        behind = placement.barriers[1] - placement.barriers[0] if groups > 1 and placement.barriers[1:] else 0
        problem = modulo_problem(loop, times, dict(placement.copies), behind)
    with derived_again("placement"):
        check_starts(without_turns(problem) if placement.turns_left else problem, found)
        _check_slack(loop, placement, problem, behind)
    with derived_again("loop"):
        deep, few = allowances(loop, schedule.machine, times)
        claim = Claim(loop=loop, machine=schedule.machine, times=times, deep=deep, few=few)
        shown = claim.certify(found, placement)
    if shown.certificate.optimal:  # by bounds alone
        for name in ("mii", "limits", "proof", "lower", "refuted"):
            demand(f"modulo.certificate.{name}", getattr(found.certificate, name), getattr(shown.certificate, name))
        return found
    return replace(shown, certificate=replace(shown.certificate, by=CLAIMED))


def _check_no_slack(placement: Placement, why: str) -> None:
    for name in ("landing_slack", "read_slack"):
        demand(f"placement.{name}", getattr(placement, name), 0, f"{why}, so nothing is known about slack")


def _check_slack(loop: LoopSpec, placement: Placement, problem: ModuloProblem, behind: int) -> None:
    if not placement.barriers:
        _check_no_slack(placement, "no barriers were placed")
        return
    choice = Choice(
        problem=problem,
        copies=placement.copies,
        handovers=tuple(derive_handovers(loop, dict(placement.copies))),
        deliveries=tuple(derive_deliveries(loop)),
        stages=range(0),
        behind=behind,
    )
    settled = Settled(
        choice=0,
        starts=placement.starts,
        barriers=placement.barriers,
        landing_slack=placement.landing_slack,
        read_slack=placement.read_slack,
    )
    check_settled(choice, settled, placement.interval)
