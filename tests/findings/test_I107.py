from __future__ import annotations

from rota.simulate.isa.run import run_kernel
from tests.findings.smallest import raised
from tests.simulate.isa.single import loaded


def test_too_many_arguments() -> None:
    finding = raised("I107", lambda: run_kernel(loaded("s_nop 0"), args=[1], block=(64, 1, 1)))
    assert finding.message == "the launch doesn't fit kernel k"
    assert dict(finding.evidence)["arguments"] == "1 given, 0 declared"


def test_too_many_work_items() -> None:
    finding = raised("I107", lambda: run_kernel(loaded("s_nop 0"), args=[], block=(64, 5, 1)))
    assert dict(finding.evidence)["workgroup"] == "(64, 5, 1) work-items, at most 256 in all"
