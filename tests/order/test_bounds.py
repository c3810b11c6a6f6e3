"""The register floor against all orders, also where the live count falls below zero."""

from __future__ import annotations

from hypothesis import given, settings

from rota.order.acyclic.problem import OrderProblem, ancestors, evaluate_order, peak_lower_bound
from tests.order.bodies import body, op, problems
from tests.order.exhaustive import legal_orders


def test_ancestors_are_transitive_whatever_the_body_order() -> None:
    assert ancestors(body([op("mma"), op("mma"), op("mma")], (2, 1), (1, 0))) == (0b110, 0b100, 0)


def test_ancestors_ignore_edges_over_the_loop_edge() -> None:
    assert ancestors(body([op("mma"), op("mma")], (0, 1, 1))) == (0, 0)


def test_an_empty_body_needs_no_registers() -> None:
    assert peak_lower_bound(OrderProblem(body=body([]))) == 0


def test_without_frees_the_floor_is_the_sum() -> None:
    problem = OrderProblem(body=body([op("frag", 1, define=8), op("mma", 1, define=4)]))
    assert peak_lower_bound(problem) == 12


def test_an_op_meets_what_its_ancestors_left_live() -> None:
    graph = body([op("frag", define=8), op("mma", define=4), op("mma", kill=12)], (0, 1), (1, 2))
    assert peak_lower_bound(OrderProblem(body=graph)) == 12


def test_an_op_that_frees_foreign_registers_lowers_the_floor() -> None:
    graph = body([op("frag", define=8), op("mma", kill=20)])
    assert peak_lower_bound(OrderProblem(body=graph)) == 0


def test_an_earlier_partition_comes_first() -> None:
    graph = body([op("frag", define=8), op("mma", kill=20)])
    assert peak_lower_bound(OrderProblem(body=graph, partitions=2)) == 8


def test_the_last_op_stands_in_the_last_partition() -> None:
    graph = body([op("nop"), op("nop"), op("mma", 1, 4, 1), op("mma", 1, 4, 1)])
    assert peak_lower_bound(OrderProblem(body=graph, partitions=2)) == 7


@given(problems())
@settings(max_examples=100, deadline=None)
def test_no_order_undercuts_the_floor(problem: OrderProblem) -> None:
    peaks = [evaluate_order(problem.body, order).vgpr_peak for order in legal_orders(problem)]
    assert peak_lower_bound(problem) <= min(peaks)
