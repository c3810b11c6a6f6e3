from __future__ import annotations

from rota import KOffsetKind, OpDesc
from tests.findings.proofs import found, fragment, load, loop, mma
from tests.wording.golden import mentions

DRAIN = [OpDesc.wait_vm(0), OpDesc.barrier()]


def test_operands_of_different_k_tiles_are_reported() -> None:
    ops = [load(0), load(0, KOffsetKind.K1, channel=1), *DRAIN, fragment(0), fragment(0, channel=1), mma()]
    (finding,) = found("V101", loop(prologue=ops))
    assert mentions(dict(finding.evidence)["operands"], "A[0] of K-tile 0", "B[0] of K-tile 1")
