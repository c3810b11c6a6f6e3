"""The free functions, and the reorder between barriers."""

from __future__ import annotations

import pytest

from rota.check import expect
from rota.errors import GraphError, OrderError
from rota.order.acyclic.greedy import IdentityScheduler
from rota.order.acyclic.problem import DepEdge, Proof
from rota.pipeline.body import (
    greedy_schedule,
    optimal_schedule,
    optimal_schedule_with_halves,
    optimize_within_barriers,
    simple_greedy_schedule,
)
from rota.pipeline.op import OpDesc
from tests.order.bodies import body, op

IMPROVABLE = body([op("mma", 10), op("mma", 10), op("valu", 10), op("frag", 30)], (1, 3), (0, 2))


def test_optimal_schedule_knows_no_partitions() -> None:
    found = optimal_schedule(IMPROVABLE)
    assert (found.makespan, found.certificate.proof) == (40, Proof.OPTIMAL)
    assert found.order[0] == 1


def test_optimal_schedule_keeps_to_the_budget() -> None:
    graph = body([op("frag", 1, 8), op("frag", 1, 8), op("mma", 4, 0, 8), op("mma", 4, 0, 8)], (0, 2), (1, 3))
    assert optimal_schedule(graph, 8).vgpr_peak == 8
    with pytest.raises(OrderError) as caught:
        optimal_schedule(graph, max_vgpr=7)
    assert caught.value.findings[0].code == "O201"


def test_optimal_schedule_takes_another_scheduler() -> None:
    assert optimal_schedule(IMPROVABLE, scheduler=IdentityScheduler()).order == (0, 1, 2, 3)


def test_halves_are_kept_apart() -> None:
    graph = body([op("mma", 10), op("mma", 10), op("frag", 5), op("mma", 1)], (2, 3))
    assert set(optimal_schedule_with_halves(graph).order[:2]) == {0, 1}
    assert optimal_schedule_with_halves(graph, partitions=1).makespan == 21


def test_halves_take_all_knobs() -> None:
    graph = body([op("load", 9, 4), op("load", 9, 4), op("mma", 4, 0, 8), op("mma", 4, 0, 8)], (0, 2), (1, 2))
    found = optimal_schedule_with_halves(graph, partitions=1, max_globals=1, lds_contention_penalty=5, max_vgpr=4)
    assert found.order == (0, 3, 1, 2)
    assert (found.makespan, found.vgpr_peak) == (18, 4)
    with pytest.raises(OrderError) as caught:
        optimal_schedule_with_halves(graph, partitions=2, max_vgpr=7)
    assert caught.value.findings[0].code == "O201"


def test_greedy_with_and_without_partitions() -> None:
    graph = body([op("mma"), op("frag"), op("frag"), op("mma")], (1, 0), (2, 3))
    assert greedy_schedule(graph).order == (1, 0, 2, 3)
    graph = body([op("mma"), op("frag"), op("frag"), op("mma")], (2, 0))
    assert simple_greedy_schedule(graph).order == (1, 2, 0, 3)
    with pytest.raises(OrderError) as caught:
        greedy_schedule(graph)
    assert caught.value.findings[0].code == "O103"


def test_greedy_counts_the_penalty() -> None:
    graph = body([op("frag", 5), op("frag", 5)])
    assert greedy_schedule(graph, 1, 7).makespan == simple_greedy_schedule(graph, 7).makespan == 12


class TestWithinBarriers:
    """Barriers stay, segments become optimal, optimal segments stay."""

    def test_an_optimal_segment_is_kept_as_it_stands(self) -> None:
        ops = [op("mma", 4), op("frag", 1), op("mma", 3), op("sync"), op("load", 9), op("frag", 1)]
        assert optimize_within_barriers(ops, []) == tuple(ops)

    def test_an_optimal_segment_above_its_bounds_is_kept_too(self) -> None:
        ops = [op("mma", 10), op("mma", 11), op("frag", 31), op("frag", 30)]
        edges = [DepEdge(0, 2), DepEdge(1, 3)]
        assert optimize_within_barriers(ops, edges) == tuple(ops)

    def test_a_segment_is_shortened(self) -> None:
        ops = [op("sync"), *(expect("an op", each, OpDesc) for each in IMPROVABLE.ops), op("sync")]
        edges = [DepEdge(edge.producer_idx + 1, edge.consumer_idx + 1) for edge in IMPROVABLE.edges]
        found = optimize_within_barriers(ops, edges)
        assert (found[0], found[5]) == (ops[0], ops[5])
        assert found[1] is ops[2]
        assert sorted(map(id, found)) == sorted(map(id, ops))

    def test_a_segment_that_breaks_its_own_edges_is_mended(self) -> None:
        ops = [op("mma", 4), op("frag", 5)]
        assert optimize_within_barriers(ops, [DepEdge(1, 0)]) == (ops[1], ops[0])

    def test_no_op_crosses_a_barrier(self) -> None:
        ops = [op("mma", 10), op("sync"), op("mma", 1), op("frag", 99)]
        found = optimize_within_barriers(ops, [DepEdge(2, 3), DepEdge(0, 2)])
        assert found == tuple(ops)

    @pytest.mark.parametrize("ops", [[], [op("sync")], [op("sync"), op("sync")], [op("mma", 4)]])
    def test_nothing_to_order_is_nothing_to_do(self, ops: list[OpDesc]) -> None:
        assert optimize_within_barriers(ops, []) == tuple(ops)

    def test_an_edge_over_the_loop_edge_may_point_back(self) -> None:
        ops = [op("mma", 4), op("sync"), op("frag", 1)]
        assert optimize_within_barriers(ops, [DepEdge(2, 0, loop_distance=1)]) == tuple(ops)

    def test_an_edge_backwards_across_a_barrier_is_O103(self) -> None:
        ops = [op("mma", 4), op("sync"), op("frag", 1)]
        with pytest.raises(OrderError) as caught:
            optimize_within_barriers(ops, [DepEdge(2, 0)])
        finding = caught.value.findings[0]
        assert finding.code == "O103"
        assert [concern.index for concern in finding.concerns] == [2, 1, 0]

    def test_an_edge_outside_the_body_is_G101(self) -> None:
        with pytest.raises(GraphError):
            optimize_within_barriers([op("mma", 4)], [DepEdge(0, 1)])
