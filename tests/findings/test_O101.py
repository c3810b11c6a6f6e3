from __future__ import annotations

import pytest

from rota import LoopBody, OpDesc, evaluate_order
from tests.findings.smallest import raised


@pytest.mark.parametrize("order", [(0,), (0, 0), (0, 2), (0, 1, 1)])
def test_something_that_is_not_an_order_is_refused(order: tuple[int, ...]) -> None:
    body = LoopBody([OpDesc.logical(1), OpDesc.logical(2)], [])
    finding = raised("O101", lambda: evaluate_order(body, order))
    assert ("ops", 2) in finding.evidence
