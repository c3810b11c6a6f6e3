"""The evaluation model by hand-counted examples, and its bounds against all orders."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from rota.order.acyclic.problem import Evaluation, OrderProblem, evaluate_order, makespan_lower_bound
from tests.order.bodies import body, op, problems
from tests.order.exhaustive import legal_orders


def test_an_op_starts_when_its_predecessors_have_finished() -> None:
    graph = body([op("frag", 20), op("frag", 5), op("mma", 16)], (0, 2), (1, 2))
    assert evaluate_order(graph, (0, 1, 2)).makespan == 36


def test_an_edge_over_the_loop_edge_delays_nothing() -> None:
    assert evaluate_order(body([op("frag", 20), op("frag", 5)], (0, 1, 1)), (0, 1)).makespan == 20


@pytest.mark.parametrize("kind", ["mma", "valu"])
def test_a_serial_unit_runs_one_op_at_a_time(kind: str) -> None:
    assert evaluate_order(body([op(kind, 16), op(kind, 4)]), (0, 1)).makespan == 20


def test_the_two_serial_units_run_beside_each_other() -> None:
    assert evaluate_order(body([op("mma", 16), op("valu", 20)]), (0, 1)).makespan == 20


def test_memory_ops_overlap_freely_without_a_penalty() -> None:
    assert evaluate_order(body([op("load", 200), op("frag", 20)]), (0, 1)).makespan == 200


def test_the_penalty_counts_from_the_previous_port_ops_start() -> None:
    graph = body([op("load", 200), op("frag", 20), op("frag", 20)])
    assert evaluate_order(graph, (1, 2, 0), 50).makespan == 300
    assert evaluate_order(graph, (0, 1, 2), 50).makespan == 200


def test_the_penalty_leaves_computes_alone() -> None:
    assert evaluate_order(body([op("frag", 1), op("mma", 8)]), (0, 1), 100).makespan == 8


def test_a_predecessor_that_comes_later_is_ignored() -> None:
    graph = body([op("frag", 20), op("mma", 16)], (0, 1))
    assert evaluate_order(graph, (1, 0)).makespan == 20


def test_the_order_on_a_unit_decides_the_makespan() -> None:
    graph = body([op("mma", 10), op("mma", 10), op("frag", 100)], (1, 2))
    assert evaluate_order(graph, (0, 1, 2)).makespan == 120
    assert evaluate_order(graph, (1, 0, 2)).makespan == 110


def test_registers_are_defined_then_counted_then_freed() -> None:
    graph = body([op("frag", 1, define=8), op("mma", 1, define=4, kill=8), op("mma", 1, define=4)])
    assert evaluate_order(graph, (0, 1, 2)).vgpr_peak == 12
    assert evaluate_order(graph, (0, 2, 1)).vgpr_peak == 16


def test_the_live_count_may_fall_below_zero_and_the_peak_not() -> None:
    graph = body([op("mma", 1, kill=8), op("frag", 1, define=4)])
    assert evaluate_order(graph, (0, 1)).vgpr_peak == 0
    assert evaluate_order(graph, (1, 0)).vgpr_peak == 4


def test_an_empty_body_costs_nothing() -> None:
    assert evaluate_order(body([]), ()) == Evaluation(0, 0)
    assert makespan_lower_bound(body([]), 4) == 0


def test_the_bound_is_the_longest_chain() -> None:
    assert makespan_lower_bound(body([op("frag", 20), op("mma", 16)], (0, 1))) == 36


def test_the_bound_is_the_busiest_unit_from_its_earliest_start() -> None:
    graph = body([op("frag", 20), op("mma", 16), op("mma", 16), op("mma", 16)], (0, 1), (0, 2), (0, 3))
    assert makespan_lower_bound(graph) == 20 + 48


def test_the_last_port_op_needs_no_penalty_of_its_own() -> None:
    graph = body([op("frag", 20), op("frag", 20), op("frag", 20)])
    assert makespan_lower_bound(graph, 50) == 2 * 50 + 20
    assert makespan_lower_bound(graph, 50) == evaluate_order(graph, (0, 1, 2), 50).makespan


@given(problems())
@settings(max_examples=60, deadline=None)
def test_no_order_undercuts_the_makespan_bound(problem: OrderProblem) -> None:
    penalty = problem.lds_contention_penalty
    best = min(evaluate_order(problem.body, order, penalty).makespan for order in legal_orders(problem))
    assert makespan_lower_bound(problem.body, penalty) <= best
