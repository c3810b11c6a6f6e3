from __future__ import annotations

from rota import DepEdge, LoopBody, OpDesc, greedy_schedule, optimal_schedule_with_halves
from tests.findings.smallest import raised

BODY = LoopBody([OpDesc.logical(1), OpDesc.logical(2)], [DepEdge(1, 0)])


def test_an_edge_from_the_second_half_to_the_first_is_refused() -> None:
    raised("O103", lambda: greedy_schedule(BODY))


def test_the_exact_search_refuses_it_too() -> None:
    raised("O103", lambda: optimal_schedule_with_halves(BODY))


def test_without_halves_it_is_just_an_order() -> None:
    assert greedy_schedule(BODY, partitions=1).order == (1, 0)
