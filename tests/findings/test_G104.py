from __future__ import annotations

from rota import DepEdge, DepKind, LoopBody, OpDesc
from tests.findings.smallest import raised


def test_a_negative_distance_is_refused() -> None:
    ops = [OpDesc.logical(1), OpDesc.logical(2)]
    raised("G104", lambda: LoopBody(ops, [DepEdge(0, 1, DepKind.FLOW, -1)]))
