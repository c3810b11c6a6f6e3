from __future__ import annotations

from rota import compile_schedule
from tests.findings.smallest import Small, raised


def test_a_listing_too_few_is_refused() -> None:
    finding = raised("P111", lambda: compile_schedule(Small(explicit=lambda program: [program.blocks[0].expand()])))
    assert ("listings", 1) in finding.evidence
    assert ("blocks", 2) in finding.evidence
