from __future__ import annotations

import pytest

from rota import DepEdge, LoopBody, OpDesc
from tests.findings.smallest import raised


@pytest.mark.parametrize("edge", [DepEdge(0, 1), DepEdge(1, 0), DepEdge(-1, 0), DepEdge(0, -1)])
def test_an_edge_outside_the_body_is_refused(edge: DepEdge) -> None:
    finding = raised("G101", lambda: LoopBody([OpDesc.logical(1)], [edge]))
    assert ("ops", 1) in finding.evidence
