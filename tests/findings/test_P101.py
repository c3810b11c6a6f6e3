from __future__ import annotations

from rota import PipelineConfig, compile_schedule
from tests.findings.smallest import Small, raised, two_tiles


def test_a_grid_that_does_not_match_the_computes_is_refused() -> None:
    finding = raised("P101", lambda: compile_schedule(Small(pipeline=PipelineConfig(m_mmas=2, n_mmas=1))))
    assert ("computes", 2) in finding.evidence
    assert ("blocks", 4) in finding.evidence


def test_an_empty_body_is_refused() -> None:
    raised("P101", lambda: compile_schedule(Small(ops=two_tiles()[:0])))
