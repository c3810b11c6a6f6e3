from __future__ import annotations

import pytest

from rota import compile_schedule, verify
from rota.verify import prove
from tests.findings.smallest import Small


def test_a_proof_that_comes_to_no_end_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = compile_schedule(Small())
    monkeypatch.setattr(prove, "_MOST_TRIPS", 1)
    report = verify(compiled)
    assert report.certificate is None
    assert [finding.code for finding in report.errors] == ["V111"]
