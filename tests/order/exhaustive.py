"""The oracle of the order tests: takes an `OrderProblem`, gives every legal order, or the cheapest one's cost."""

from __future__ import annotations

from collections.abc import Iterator

from rota.order.acyclic.problem import Evaluation, OrderProblem, evaluate_order
from rota.program.kinds import OpRole


def legal_orders(problem: OrderProblem) -> Iterator[tuple[int, ...]]:
    """Every order that keeps dependencies and partitions."""
    before = problem.body.predecessors()

    def extend(order: tuple[int, ...], left: frozenset[int]) -> Iterator[tuple[int, ...]]:
        if not left:
            yield order
            return
        current = min(problem.partition_of(index) for index in left)
        for index in sorted(left):
            if problem.partition_of(index) == current and left.isdisjoint(before[index]):
                yield from extend((*order, index), left - {index})

    return extend((), frozenset(range(len(problem.body.ops))))


def fullest_gap(problem: OrderProblem, order: tuple[int, ...]) -> int:
    """The most global loads between two computes, before the first or after the last."""
    most = current = 0
    for index in order:
        role = problem.body.ops[index].role
        current = 0 if role is OpRole.COMPUTE else current + (role is OpRole.GLOBAL_LOAD)
        most = max(most, current)
    return most


def best_cost(problem: OrderProblem) -> Evaluation | None:
    """The least (makespan, peak) of all orders within the limits; None where there is none."""
    costs = [
        evaluate_order(problem.body, order, problem.lds_contention_penalty)
        for order in legal_orders(problem)
        if not problem.max_globals or fullest_gap(problem, order) <= problem.max_globals
    ]
    return min((cost for cost in costs if cost.vgpr_peak <= problem.max_vgpr), default=None)
