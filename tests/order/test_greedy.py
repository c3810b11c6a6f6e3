"""Orders without search: lowest-index ready op, partition by partition, and the author's own."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from rota.errors import OrderError
from rota.order.acyclic.check_ordering import check_ordering
from rota.order.acyclic.greedy import GreedyScheduler, IdentityScheduler, greedy_order, measured
from rota.order.acyclic.problem import OrderProblem, Proof
from tests.order.bodies import body, op, problems


def test_the_lowest_index_ready_op_comes_first() -> None:
    graph = body([op("mma"), op("frag"), op("frag"), op("mma")], (2, 0), (1, 3))
    assert greedy_order(OrderProblem(body=graph)) == (1, 2, 0, 3)


def test_an_op_becomes_ready_when_its_last_predecessor_is_placed() -> None:
    graph = body([op("mma"), op("frag"), op("frag")], (1, 0), (2, 0))
    assert greedy_order(OrderProblem(body=graph)) == (1, 2, 0)


def test_no_op_leaves_its_partition() -> None:
    graph = body([op("mma"), op("frag"), op("frag"), op("mma")], (1, 0))
    assert greedy_order(OrderProblem(body=graph, partitions=2)) == (1, 0, 2, 3)


def test_greedy_ignores_the_budgets() -> None:
    graph = body([op("load", define=8), op("load", define=8), op("mma")])
    ordering = GreedyScheduler().order(OrderProblem(body=graph, max_globals=1, max_vgpr=8))
    assert ordering.order == (0, 1, 2)
    assert ordering.vgpr_peak == 16


def test_the_cost_comes_with_the_order() -> None:
    graph = body([op("frag", 20, define=8), op("mma", 16, kill=8)], (0, 1))
    ordering = GreedyScheduler().order(OrderProblem(body=graph))
    assert (ordering.makespan, ordering.vgpr_peak, ordering.gap) == (36, 8, 0)
    assert ordering.certificate.proof is Proof.NONE
    assert ordering.certificate.by == "greedy"


def test_the_penalty_counts_in_the_cost() -> None:
    graph = body([op("frag", 20), op("frag", 20)])
    ordering = GreedyScheduler().order(OrderProblem(body=graph, lds_contention_penalty=7))
    assert ordering.makespan == 27


def test_identity_keeps_an_order_that_breaks_its_own_edges() -> None:
    graph = body([op("mma", 16), op("frag", 20)], (1, 0))
    ordering = IdentityScheduler().order(OrderProblem(body=graph))
    assert ordering.order == (0, 1)
    assert ordering.makespan == 20
    assert ordering.certificate.bound == 20  # 36 only for orders that keep the edge
    assert ordering.gap == 0


@given(problems(most_ops=8), st.data())
@settings(max_examples=60, deadline=None)
def test_no_order_undercuts_its_bounds_whichever_edges_it_breaks(problem: OrderProblem, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(problem.body.ops))))
    ordering = measured(replace(problem, partitions=1), tuple(order), "anybody")
    assert ordering.gap >= 0
    assert ordering.certificate.vgpr_bound <= ordering.vgpr_peak


def test_an_edge_backwards_across_partitions_is_O103() -> None:
    graph = body([op("load"), op("frag")], (1, 0))
    with pytest.raises(OrderError) as caught:
        GreedyScheduler().order(OrderProblem(body=graph, partitions=2))
    finding = caught.value.findings[0]
    assert finding.code == "O103"
    assert [concern.index for concern in finding.concerns] == [1, 0]


def test_an_edge_backwards_over_the_loop_edge_is_fine() -> None:
    graph = body([op("load"), op("frag")], (1, 0, 1))
    assert greedy_order(OrderProblem(body=graph, partitions=2)) == (0, 1)


@given(problems(most_ops=12))
@settings(max_examples=60, deadline=None)
def test_every_greedy_order_is_legal(problem: OrderProblem) -> None:
    check_ordering(problem, GreedyScheduler().order(problem), budgets=False)
