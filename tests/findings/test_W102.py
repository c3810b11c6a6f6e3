from __future__ import annotations

import pytest

from rota import KernelGeometry, Pipeline4Wave, Severity, compile_schedule, verify
from rota.sync import repair


def test_a_repair_cut_short_is_safe_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repair, "EFFORT", 1e-9)
    compiled = compile_schedule(Pipeline4Wave(KernelGeometry()))
    (note,) = (finding for finding in compiled.findings if finding.code == "W102")
    assert note.severity is Severity.NOTE
    assert note.fixes
    assert verify(compiled).clean


def test_with_time_it_is_the_smallest() -> None:
    compiled = compile_schedule(Pipeline4Wave(KernelGeometry()))
    assert "W102" not in {finding.code for finding in compiled.findings}
    assert len(compiled.repairs) == 4
