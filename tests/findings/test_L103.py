from __future__ import annotations

from dataclasses import replace

import pytest

from rota import GFX942, KernelGeometry, Pipeline4Wave, ProofError, compile_schedule, mi355x_target


def test_tiles_larger_than_lds_are_refused() -> None:
    target = replace(mi355x_target(), machine=GFX942)
    with pytest.raises(ProofError) as caught:
        compile_schedule(Pipeline4Wave(KernelGeometry(), target=target))
    (finding,) = caught.value.findings
    assert finding.code == "L103"
    assert ("bytes", 2 * (256 + 256) * 64 * 2) in finding.evidence
    assert ("limit", 64 * 1024) in finding.evidence
