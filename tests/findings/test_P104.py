from __future__ import annotations

from dataclasses import replace

from rota import KOffsetKind, OpRole
from tests.findings.smallest import Small, reported, two_tiles


def test_loads_that_never_fetch_ahead_are_reported() -> None:
    ops = [replace(op, k_offset=KOffsetKind.K_PREV) if op.role is OpRole.GLOBAL_LOAD else op for op in two_tiles()]
    (finding,) = reported("P104", Small(ops=ops))
    assert ("loads", 4) in finding.evidence
