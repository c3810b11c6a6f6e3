from __future__ import annotations

from rota import compile_loop
from tests.findings.smallest import raised
from tests.findings.test_L106 import gemm


def test_more_waves_than_a_workgroup_has_are_refused() -> None:
    finding = raised("L105", lambda: compile_loop(gemm(waves=1000)))
    assert finding.evidence == (("waves", 1000), ("limit", 16))
    assert compile_loop(gemm(waves=16)).certificate is not None
