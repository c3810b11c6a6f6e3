from __future__ import annotations

from dataclasses import replace

from rota import compile_schedule
from tests.findings.smallest import Small, raised, two_tiles


def test_an_op_that_names_a_missing_stage_is_refused() -> None:
    first, *others = two_tiles()
    finding = raised("D107", lambda: compile_schedule(Small(ops=(replace(first, stage=2), *others))))
    assert ("stage", 2) in finding.evidence
    assert ("largest stage", 1) in finding.evidence


def test_an_op_that_names_a_missing_channel_is_refused() -> None:
    first, *others = two_tiles()
    finding = raised("D107", lambda: compile_schedule(Small(ops=(replace(first, channel=2), *others))))
    assert ("channel", 2) in finding.evidence
    assert ("largest channel", 1) in finding.evidence
    assert finding.fixes
