from __future__ import annotations

from rota.tune.space import space_of
from tests.findings.smallest import raised


def test_a_name_that_is_no_dimension() -> None:
    finding = raised("S101", lambda: space_of({"tiles": "256x256x64"}))
    assert "'tile'" in finding.fixes[0]
