from __future__ import annotations

from rota import KOffsetKind, OpDesc
from tests.findings.proofs import found, fragment, load, loop, mma


def test_a_k_tile_beyond_the_end_is_reported() -> None:
    ops = [load(0, KOffsetKind.K_NEXT), load(0, KOffsetKind.K_NEXT, channel=1), OpDesc.wait_vm(0), OpDesc.barrier()]
    epilogue = [*ops, fragment(0), fragment(0, channel=1), mma()]
    found("V105", loop(epilogue=epilogue), times=None)
