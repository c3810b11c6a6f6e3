from __future__ import annotations

from rota.tune.space import sift, space_of
from tests.findings.smallest import raised


def test_nothing_can_be_a_kernel() -> None:
    finding = raised("S102", lambda: sift(space_of({"tile": "48x48x64", "waves": 4})))
    assert any("D102" in str(value) for _, value in finding.evidence)
