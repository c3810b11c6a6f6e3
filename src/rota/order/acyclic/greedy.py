"""Schedulers without search (body order, or the lowest-index ready op), and schedulers by name."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from rota.errors import OrderError
from rota.order.acyclic.problem import (
    LoopBody,
    OrderCertificate,
    Ordering,
    OrderProblem,
    Proof,
    Scheduler,
    SchedulingStrategy,
    evaluate_order,
    makespan_lower_bound,
    peak_lower_bound,
)
from rota.registry import Registry


class IdentityScheduler:
    """The body's own order, untouched."""

    def order(self, problem: OrderProblem) -> Ordering:
        return measured(problem, tuple(range(len(problem.body.ops))), "identity")


class GreedyScheduler:
    """Partition by partition, always the lowest-index op whose distance-0 predecessors are placed.

    It knows no budgets; it is the seed of the exact search.
    """

    def order(self, problem: OrderProblem) -> Ordering:
        return measured(problem, greedy_order(problem), "greedy")


def greedy_order(problem: OrderProblem) -> tuple[int, ...]:
    body = problem.body
    check_partitions_forward(problem)
    missing = [len(producers) for producers in body.predecessors()]
    after: list[list[int]] = [[] for _ in body.ops]
    for index, producers in enumerate(body.predecessors()):
        for producer in producers:
            after[producer].append(index)
    part = [problem.partition_of(index) for index in range(len(body.ops))]
    ready = [(part[index], index) for index, count in enumerate(missing) if count == 0]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        _, index = heapq.heappop(ready)
        order.append(index)
        for consumer in after[index]:
            missing[consumer] -= 1
            if missing[consumer] == 0:
                heapq.heappush(ready, (part[consumer], consumer))
    return tuple(order)


def check_partitions_forward(problem: OrderProblem) -> None:
    """Partitions are kept apart, so a distance-0 edge must not point from a later one to an earlier one."""
    ops = problem.body.ops
    for edge in problem.body.edges:
        first, second = problem.partition_of(edge.producer_idx), problem.partition_of(edge.consumer_idx)
        if edge.loop_distance == 0 and first > second:
            raise OrderError.of(
                "O103",
                f"partition {second} would have to wait for partition {first} of the same iteration",
                concerns=(
                    ops[edge.producer_idx].concern(edge.producer_idx, f"partition {first}, must come first"),
                    ops[edge.consumer_idx].concern(edge.consumer_idx, f"partition {second}, must come later"),
                ),
                evidence=(
                    ("edge", f"{edge.dep_kind.value} distance {edge.loop_distance}"),
                    ("partitions", problem.partitions),
                ),
                fixes=(
                    "scheduling=SchedulingStrategy.IDENTITY keeps the body's order",
                    "loop_distance=1 if the later partition of the iteration before is meant",
                ),
            )


def _drop_broken_edges(body: LoopBody, order: tuple[int, ...]) -> LoopBody:
    """The body without the edges that the order breaks, as the body's own order may."""
    place = {index: number for number, index in enumerate(order)}
    kept = [edge for edge in body.edges if edge.loop_distance or place[edge.producer_idx] < place[edge.consumer_idx]]
    return body if len(kept) == len(body.edges) else LoopBody(body.ops, kept)


def measured(problem: OrderProblem, order: tuple[int, ...], by: str) -> Ordering:
    """An order with its cost and its lower bounds, which hold for orders that keep the same edges."""
    cost = evaluate_order(problem.body, order, problem.lds_contention_penalty)
    problem = replace(problem, body=_drop_broken_edges(problem.body, order))
    return Ordering(
        order=order,
        makespan=cost.makespan,
        vgpr_peak=cost.vgpr_peak,
        certificate=OrderCertificate(
            proof=Proof.NONE,
            bound=makespan_lower_bound(problem.body, problem.lds_contention_penalty),
            vgpr_bound=peak_lower_bound(problem),
            by=by,
        ),
    )


ENTRY_POINT_GROUP = "rota.schedulers"

BUILT_IN: Mapping[str, str] = MappingProxyType(
    {
        SchedulingStrategy.IDENTITY: "rota.order.acyclic.greedy:IdentityScheduler",
        SchedulingStrategy.GREEDY: "rota.order.acyclic.greedy:GreedyScheduler",
        SchedulingStrategy.CSP: "rota.order.acyclic.cpsat:CpSatScheduler",
    }
)

SCHEDULERS: Registry[Scheduler] = Registry(
    what="scheduler",
    group=ENTRY_POINT_GROUP,
    own=BUILT_IN,
    expected="a class or function that makes a Scheduler",
    lacks=lambda made: None if callable(getattr(made, "order", None)) else "has no method order(problem)",
    make=lambda factory: factory(),
)
"""All of them."""


def scheduler_named(name: str) -> Scheduler:
    """A new scheduler of that name."""
    return SCHEDULERS.named(name)
