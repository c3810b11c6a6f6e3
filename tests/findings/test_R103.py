from __future__ import annotations

import pytest

from rota import KOffsetKind, OpDesc
from tests.findings.proofs import found, fragment, load, loop

FILL = [load(0), OpDesc.wait_vm(0), OpDesc.barrier()]


@pytest.mark.parametrize(
    "between", [[], [OpDesc.barrier()], [OpDesc.wait_lgkm(0)], [OpDesc.wait_lgkm(1), OpDesc.barrier()]]
)
def test_a_tile_overwritten_while_it_may_be_read_is_a_race(between: list[OpDesc]) -> None:
    (finding,) = found("R103", loop(prologue=[*FILL, fragment(0), *between, load(0, KOffsetKind.K1)]))
    assert finding.witness is not None
    assert finding.witness.kind == "WAR"
    assert finding.concerns[0].role.endswith("reads LDS A[0][0]")
    assert finding.concerns[1].role.endswith("writes LDS A[0][0]")


def test_a_wait_and_then_a_barrier_are_enough() -> None:
    between = [OpDesc.wait_lgkm(0), OpDesc.barrier()]
    found("R103", loop(prologue=[*FILL, fragment(0), *between, load(0, KOffsetKind.K1)]), times=0)
