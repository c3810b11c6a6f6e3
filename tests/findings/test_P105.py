from __future__ import annotations

from dataclasses import replace

from rota import OpRole
from tests.findings.smallest import Small, reported, two_tiles


def test_a_lopsided_completion_is_reported() -> None:
    ops = list(two_tiles())
    index = next(i for i, op in enumerate(ops) if op.role is OpRole.GLOBAL_LOAD)
    ops[index] = replace(ops[index], stage=1)
    (finding,) = reported("P105", Small(ops=ops))
    assert "partition 1" in finding.message
