from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rota.errors import DeclarationError, GraphError
from rota.order.graph import Arc, Cycle, longest_gaps, longest_starts, strong_components
from rota.order.modulo.modulo_problem import ModuloEdge, ModuloOp, ModuloProblem, Resource, Use

A, B = ModuloOp(name="a", latency=2), ModuloOp(name="b", latency=3)


def test_problems_are_values() -> None:
    first = ModuloProblem(ops=(A, B), edges=(ModuloEdge(producer=0, consumer=1),))
    again = ModuloProblem(ops=(A, B), edges=(ModuloEdge(producer=0, consumer=1),))
    assert first == again
    assert hash(first) == hash(again)
    assert first.arcs == (Arc(0, 1, 2, 0),)  # without a delay the producer's latency


@pytest.mark.parametrize(
    ("edge", "code"),
    [
        (ModuloEdge(producer=0, consumer=2), "G101"),
        (ModuloEdge(producer=-1, consumer=0), "G101"),
        (ModuloEdge(producer=0, consumer=1, distance=-1), "G104"),
        (ModuloEdge(producer=0, consumer=0), "G102"),
    ],
)
def test_malformed_edges_are_found(edge: ModuloEdge, code: str) -> None:
    with pytest.raises(GraphError) as caught:
        ModuloProblem(ops=(A, B), edges=(edge,))
    assert caught.value.findings[0].code == code


def test_a_cycle_within_one_iteration_is_named() -> None:
    edges = (
        ModuloEdge(producer=0, consumer=1),
        ModuloEdge(producer=1, consumer=2),
        ModuloEdge(producer=2, consumer=1, delay=-2),
    )
    with pytest.raises(GraphError) as caught:
        ModuloProblem(ops=(A, B, A), edges=edges)
    finding = caught.value.findings[0]
    assert finding.code == "G103"
    assert dict(finding.evidence)["cycle"] == "#1 b -> #2 a -> #1 b"
    assert dict(finding.evidence)["delay around it"] == 1


def test_a_cycle_that_asks_for_nothing_is_allowed() -> None:
    together = (ModuloEdge(producer=0, consumer=1, delay=3), ModuloEdge(producer=1, consumer=0, delay=-3))
    assert ModuloProblem(ops=(A, B), edges=together).arcs[1].delay == -3


@pytest.mark.parametrize(
    "make",
    [
        lambda: Resource(name="unit", capacity=0),
        lambda: Resource(name=3, capacity=1),  # type: ignore[arg-type]
        lambda: Use(resource="unit", occupancy=0),
        lambda: Use(resource="unit", offset=-1),
        lambda: ModuloOp(name="a", latency=-1),
        lambda: ModuloOp(name="a", uses=("unit",)),  # type: ignore[arg-type]
        lambda: ModuloEdge(producer=0, consumer=1, delay=1.5),  # type: ignore[arg-type]
        lambda: ModuloEdge(producer="a", consumer=1),  # type: ignore[arg-type]
        lambda: ModuloEdge(producer=0, consumer=1, distance=10**9),
        lambda: ModuloProblem(ops=(A,), resources=(Resource(name="u"), Resource(name="u"))),
        lambda: ModuloProblem(ops=("a",)),  # type: ignore[arg-type]
    ],
)
def test_malformed_values_are_findings(make: Any) -> None:
    with pytest.raises(DeclarationError) as caught:
        make()
    assert caught.value.findings[0].code in {"D102", "D104"}


def test_components_come_in_the_order_of_their_edges() -> None:
    arcs = [Arc(3, 1, 1, 0), Arc(1, 3, 1, 1), Arc(1, 0, 1, 0), Arc(0, 2, 1, 0), Arc(2, 2, 1, 1), Arc(3, 4, 1, 0)]
    found = strong_components(5, arcs)
    assert set(found) == {(1, 3), (0,), (2,), (4,)}
    place = {op: number for number, ops in enumerate(found) for op in ops}
    assert all(place[arc.producer] <= place[arc.consumer] for arc in arcs)


def test_longest_starts_follow_the_interval() -> None:
    arcs = [Arc(0, 1, 4, 0), Arc(1, 2, 3, 0), Arc(2, 0, 2, 1)]
    assert longest_starts(3, arcs, 9) == [0, 4, 7]
    cycle = longest_starts(3, arcs, 8)
    assert isinstance(cycle, Cycle)
    assert (cycle.ops, cycle.delay, cycle.distance) == ((0, 1, 2), 9, 1)


def test_gaps_pass_by_the_other_ops_and_drop_what_follows() -> None:
    arcs = [Arc(0, 1, 4, 0), Arc(1, 2, 3, 0), Arc(2, 3, 1, 0), Arc(0, 3, 2, 0), Arc(3, 0, 0, 1)]
    starts = longest_starts(4, arcs, 10)
    assert isinstance(starts, list)
    gaps = longest_gaps((0, 2, 3), arcs, 10, dict(enumerate(starts)))
    assert gaps.least == {0: {2: 7, 3: 8}, 2: {3: 1, 0: -9}, 3: {0: -10, 2: -3}}
    assert sorted(gaps.direct) == [(0, 2, 7), (2, 3, 1), (3, 0, -10)]


def test_ops_tied_rigidly_keep_their_gaps() -> None:
    """At the critical II all gaps of a cycle follow from one another; some must stay."""
    arcs = [Arc(0, 1, 1, 0), Arc(1, 2, 1, 0), Arc(2, 0, 1, 1)]
    gaps = longest_gaps((0, 1, 2), arcs, 3, {0: 0, 1: 1, 2: 2})
    assert {(0, 1, 1), (1, 2, 1), (2, 0, -2)} <= set(gaps.direct)


def test_replacing_a_field_checks_again() -> None:
    with pytest.raises(GraphError):
        replace(ModuloProblem(ops=(A, B)), edges=(ModuloEdge(producer=0, consumer=7),))
