"""How good an order is said to be: takes a schedule by stages that was read, gives it with what can be shown again.

A search that found nothing better is no proof that can be read; a bound that holds for any order of the body is.
"""

from __future__ import annotations

from dataclasses import replace

from rota.emit.document.derived_again import CLAIMED
from rota.emit.document.disagreement import derived_again
from rota.order.acyclic.greedy import measured
from rota.order.acyclic.problem import Ordering, OrderProblem, Proof
from rota.pipeline.build import order_problem
from rota.pipeline.compiled_pipeline import CompiledPipeline


def with_order_as_claimed(schedule: CompiledPipeline) -> CompiledPipeline:
    """The schedule with a certificate of its order that holds; what a search has shown is left open."""
    if schedule.ordering is None:
        return schedule
    with derived_again("edges"):
        problem = order_problem(schedule.body, schedule.config, schedule.schedule_config, schedule.edges)
    return replace(schedule, ordering=_order(problem, schedule.ordering))


def _order(problem: OrderProblem, ordering: Ordering) -> Ordering:
    """The order was checked; of the bounds on its cost those remain that hold for any order of this body."""
    claimed = ordering.certificate
    known = measured(problem, ordering.order, claimed.by).certificate
    if claimed.proof is Proof.OPTIMAL and (known.bound, known.vgpr_bound) == (ordering.makespan, ordering.vgpr_peak):
        return ordering
    proof = Proof.NONE if claimed.proof is Proof.NONE else Proof.FEASIBLE
    held = replace(claimed, proof=proof, bound=known.bound, vgpr_bound=known.vgpr_bound)
    return ordering if held == claimed else replace(ordering, certificate=replace(held, by=CLAIMED))
