"""The facts of a search: fixed precedences, twins, serial groups, and how an answer becomes an order."""

from __future__ import annotations

import pytest

from rota.errors import DeclarationError, OrderError
from rota.order.acyclic.cpsat import Goal, Limits, SerialGroup, gather_facts
from rota.order.acyclic.problem import OrderProblem
from tests.order.bodies import body, op


def test_precedence_is_known_through_dependencies_and_partitions() -> None:
    graph = body([op("frag", 1), op("mma", 2), op("mma", 3), op("frag", 1)], (0, 1))
    facts = gather_facts(OrderProblem(body=graph, partitions=2))
    assert facts.known(0, 1) is True
    assert facts.known(1, 0) is False
    assert facts.known(1, 2) is True  # partition 0 before partition 1
    assert facts.known(2, 3) is None


def test_interchangeable_ops_keep_their_body_order() -> None:
    facts = gather_facts(OrderProblem(body=body([op("mma", 4), op("mma", 4), op("mma", 4)])))
    assert facts.twins == ((0, 1), (1, 2))
    assert facts.known(0, 2) is True


@pytest.mark.parametrize(
    "other", [op("mma", 5), op("mma", 4, define=1), op("mma", 4, kill=1), op("vcompute", 4), op("valu", 4)]
)
def test_ops_that_differ_in_cost_are_no_twins(other: object) -> None:
    assert isinstance(other, type(op("mma")))
    assert gather_facts(OrderProblem(body=body([op("mma", 4), other]))).twins == ()


def test_ops_with_other_dependencies_or_partitions_are_no_twins() -> None:
    alike = [op("mma", 4), op("mma", 4), op("frag", 1)]
    assert gather_facts(OrderProblem(body=body(alike, (0, 2)))).twins == ()
    assert gather_facts(OrderProblem(body=body(alike, (2, 0)))).twins == ()
    assert gather_facts(OrderProblem(body=body([op("mma", 4)] * 2), partitions=2)).twins == ()


def test_the_port_is_serial_only_with_a_penalty() -> None:
    graph = body([op("load", 9), op("frag", 5), op("mma", 4)])
    assert gather_facts(OrderProblem(body=graph)).serial == ()
    port = SerialGroup(members=(0, 1), spacing=(3, 3))
    assert gather_facts(OrderProblem(body=graph, lds_contention_penalty=3)).serial == (port,)


def test_a_limit_that_cannot_be_broken_does_not_bind() -> None:
    graph = body([op("load", 9, 4), op("load", 9, 4), op("mma", 4, 0, 8)])
    assert gather_facts(OrderProblem(body=graph, max_globals=2, max_vgpr=8)).binding() == Limits()
    limits = gather_facts(OrderProblem(body=graph, max_globals=1, max_vgpr=7)).binding()
    assert limits == Limits(max_globals=1, max_vgpr=7)


def test_only_ops_that_matter_get_a_place() -> None:
    facts = gather_facts(OrderProblem(body=body([op("load", 9), op("frag", 5, 8), op("mma", 4, 0, 8), op("nop", 1)])))
    assert facts.ordered(Goal.MAKESPAN, Limits(horizon=50)) == ()
    assert facts.ordered(Goal.PEAK, Limits()) == (1, 2)
    assert facts.ordered(Goal.LOADS, Limits()) == (0, 2)


def test_serial_ops_get_a_place_when_times_and_places_both_count() -> None:
    facts = gather_facts(OrderProblem(body=body([op("valu", 9), op("valu", 5), op("mma", 4, 0, 8)])))
    assert facts.ordered(Goal.PEAK, Limits()) == (2,)
    assert facts.ordered(Goal.PEAK, Limits(horizon=50)) == (0, 1, 2)


def test_an_answer_becomes_the_body_order_with_the_chain_kept() -> None:
    facts = gather_facts(OrderProblem(body=body([op("mma", 1), op("nop"), op("mma", 2)])))
    assert facts.follow([(2, 0)]) == (1, 2, 0)


def test_a_circular_answer_is_O101() -> None:
    facts = gather_facts(OrderProblem(body=body([op("mma", 1), op("mma", 2)], (0, 1))))
    with pytest.raises(OrderError) as caught:
        facts.follow([(1, 0)])
    assert caught.value.findings[0].code == "O101"


@pytest.mark.parametrize("huge", [op("mma", 2**41), op("mma", 1, 2**41), op("mma", 1, 0, 2**41)])
def test_sums_beyond_the_solvers_range_are_D102(huge: object) -> None:
    assert isinstance(huge, type(op("mma")))
    with pytest.raises(DeclarationError) as caught:
        gather_facts(OrderProblem(body=body([huge])))
    assert caught.value.findings[0].code == "D102"
