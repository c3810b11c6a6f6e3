from __future__ import annotations

from dataclasses import replace

from tests.findings.smallest import Small, reported, two_tiles


def test_a_fragment_of_the_other_stage_without_rotation_is_reported() -> None:
    first, *others = two_tiles()
    (finding,) = reported("P103", Small(ops=(replace(first, stage=1), *others)))
    assert ("stage", 1) in finding.evidence
    assert ("expected", 0) in finding.evidence
