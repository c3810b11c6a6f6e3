"""Ordering as free functions: takes a `LoopBody` and budgets, gives an `Ordering`; or reorders between barriers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from rota.errors import Finding, OrderError
from rota.order.acyclic.bounds import peak_lower_bound
from rota.order.acyclic.edge import DepEdge
from rota.order.acyclic.evaluate import evaluate_order, makespan_lower_bound
from rota.order.acyclic.greedy import GreedyScheduler
from rota.order.acyclic.loop_body import LoopBody
from rota.order.acyclic.problem import UNLIMITED_VGPR, Ordering, OrderProblem, Scheduler, SchedulingStrategy
from rota.order.acyclic.registry import scheduler_named
from rota.pipeline.op import OpDesc
from rota.printing import WrappedTuple
from rota.program.kinds import OpRole


def optimal_schedule(body: LoopBody, max_vgpr: int = UNLIMITED_VGPR, scheduler: Scheduler | None = None) -> Ordering:
    """Least makespan, then least register peak, over all orders within the budget."""
    return (scheduler or scheduler_named(SchedulingStrategy.CSP)).order(OrderProblem(body=body, max_vgpr=max_vgpr))


def optimal_schedule_with_halves(
    body: LoopBody,
    *,
    partitions: int = 2,
    max_globals: int = 0,
    lds_contention_penalty: int = 0,
    max_vgpr: int = UNLIMITED_VGPR,
) -> Ordering:
    """The same with the partitions kept apart, at most `max_globals` loads between two computes, and port conflicts."""
    return scheduler_named(SchedulingStrategy.CSP).order(
        OrderProblem(
            body=body,
            partitions=partitions,
            max_globals=max_globals,
            lds_contention_penalty=lds_contention_penalty,
            max_vgpr=max_vgpr,
        )
    )


def greedy_schedule(body: LoopBody, partitions: int = 2, lds_contention_penalty: int = 0) -> Ordering:
    """Partition by partition, always the lowest-index ready op."""
    return GreedyScheduler().order(
        OrderProblem(body=body, partitions=partitions, lds_contention_penalty=lds_contention_penalty)
    )


def simple_greedy_schedule(body: LoopBody, lds_contention_penalty: int = 0) -> Ordering:
    """Always the lowest-index ready op of the whole body."""
    return greedy_schedule(body, 1, lds_contention_penalty)


def optimize_within_barriers(ops: Sequence[OpDesc], edges: Sequence[DepEdge]) -> tuple[OpDesc, ...]:
    """Order the ops between two barriers optimally; the barriers stay, and no op crosses one.

    A segment that is already as short and needs as few registers as any order of it is kept as it stands.
    """
    graph = LoopBody(ops, edges)
    given = tuple(ops)
    cuts = [index for index, op in enumerate(given) if op.role is OpRole.SYNC]
    bounds = [-1, *cuts, len(given)]
    _check_barriers_kept(graph, cuts)
    result: list[OpDesc] = []
    for before, after in pairwise(bounds):
        members = range(before + 1, after)
        result += [given[members[place]] for place in _best_order(_segment(graph, members))]
        result += given[after : after + 1]
    return WrappedTuple(result)


def _segment(graph: LoopBody, members: range) -> LoopBody:
    """The ops of one segment with the dependencies among them."""
    first = members.start
    edges = [
        DepEdge(edge.producer_idx - first, edge.consumer_idx - first, edge.dep_kind)
        for edge in graph.edges
        if edge.loop_distance == 0 and edge.producer_idx in members and edge.consumer_idx in members
    ]
    return LoopBody(graph.ops[first : members.stop], edges)


def _best_order(segment: LoopBody) -> tuple[int, ...]:
    problem = OrderProblem(body=segment)
    given = tuple(range(len(segment.ops)))
    if any(producer > index for index, producers in enumerate(segment.predecessors()) for producer in producers):
        return scheduler_named(SchedulingStrategy.CSP).order(problem).order
    cost = evaluate_order(segment, given)
    if cost == (makespan_lower_bound(segment), peak_lower_bound(problem)):
        return given
    best = scheduler_named(SchedulingStrategy.CSP).order(problem)
    return given if cost == (best.makespan, best.vgpr_peak) else best.order


def _check_barriers_kept(graph: LoopBody, cuts: Sequence[int]) -> None:
    """A barrier stays where it is, so no dependency may point backward across one."""
    for edge in graph.edges:
        producer, consumer = edge.producer_idx, edge.consumer_idx
        if edge.loop_distance or producer < consumer:
            continue
        crossed = next((cut for cut in cuts if consumer <= cut <= producer), None)
        if crossed is not None:
            ops = graph.ops
            raise OrderError(
                Finding(
                    code="O103",
                    message=f"{ops[consumer]} stands before a barrier and depends on {ops[producer]} behind it",
                    concerns=(
                        ops[producer].concern(producer, "must come first"),
                        ops[crossed].concern(crossed, "the barrier between them"),
                        ops[consumer].concern(consumer, "must come later"),
                    ),
                    evidence=(("edge", f"{edge.dep_kind.value} distance 0"), ("barriers", len(cuts))),
                    fixes=("loop_distance=1 if the result of the iteration before is meant",),
                )
            )
