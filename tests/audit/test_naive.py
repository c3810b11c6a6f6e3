from __future__ import annotations

from benchmarks.naive import audits
from rota.audit.compare import Verdict
from tests.emit.kernels import SMALL, by_values


def test_what_the_usual_way_of_writing_costs() -> None:
    """The reason for the idiom: fences drain every prefetch, and without any the compiler reorders."""
    report = audits(by_values(SMALL))
    assert report["as emitted"].exact
    fenced = report["with __syncthreads() too"]
    drains = [match for match in fenced.waits if match.verdict is Verdict.STRONGER]
    assert drains
    assert {match.found for match in drains} == {0}
    assert fenced.clean
    naive = report["naive: builtins, no fences"]
    assert not naive.clean
    assert "I202" in {finding.code for finding in naive.findings}
