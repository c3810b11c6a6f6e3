from __future__ import annotations

from rota import OpDesc
from tests.findings.proofs import found, fragment, load, loop, mma


def test_a_k_tile_taken_in_twice_is_reported() -> None:
    ops = [load(0), load(0, channel=1), OpDesc.wait_vm(0), OpDesc.barrier(), fragment(0), fragment(0, channel=1)]
    (finding,) = found("V102", loop(prologue=[*ops, mma(), mma()]))
    assert "mma[0,0]" in finding.message
