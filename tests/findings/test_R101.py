from __future__ import annotations

from rota import KOffsetKind, OpDesc
from tests.findings.proofs import found, load, loop


def test_two_loads_into_one_tile_at_once_are_a_race() -> None:
    first, second = load(0, KOffsetKind.K0), load(0, KOffsetKind.K0)
    (finding,) = found("R101", loop(prologue=[first, second]))
    assert [end.index for end in finding.concerns] == [0, 1]


def test_a_wait_between_them_is_enough() -> None:
    found("R101", loop(prologue=[load(0, KOffsetKind.K0), OpDesc.wait_vm(0), load(0, KOffsetKind.K0)]), times=0)
