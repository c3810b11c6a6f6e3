from __future__ import annotations

from rota import DepEdge, LoopBody, OpDesc
from tests.findings.smallest import raised


def test_a_cycle_is_refused_and_named_without_its_tail() -> None:
    ops = [OpDesc.logical(tag) for tag in range(4)]
    edges = [DepEdge(0, 1), DepEdge(1, 2), DepEdge(2, 1), DepEdge(2, 3)]
    finding = raised("G103", lambda: LoopBody(ops, edges))
    assert {concern.index for concern in finding.concerns} == {1, 2}
