from __future__ import annotations

from rota import Severity, verify
from tests.findings.proofs import load, loop


def test_more_loads_than_the_counter_holds_are_noted() -> None:
    many = [load(stage, subtile=subtile) for stage in range(2) for subtile in range(8)]
    (note,) = (finding for finding in verify(loop(prologue=many)).findings if finding.code == "L102")
    assert note.severity is Severity.NOTE
    assert ("tokens", 64) in note.evidence
    assert ("counter holds", 63) in note.evidence
    assert "L102" not in {finding.code for finding in verify(loop(prologue=many[1:])).findings}
