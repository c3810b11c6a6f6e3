from __future__ import annotations

from rota import DepEdge, DepKind, LoopBody, OpDesc
from tests.findings.smallest import raised


def test_an_op_before_itself_is_refused() -> None:
    raised("G102", lambda: LoopBody([OpDesc.logical(1)], [DepEdge(0, 0)]))


def test_over_the_loop_edge_it_is_fine() -> None:
    assert LoopBody([OpDesc.logical(1)], [DepEdge(0, 0, DepKind.FLOW, 1)]).compute_asap() == (0,)
