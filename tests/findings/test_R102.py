from __future__ import annotations

import pytest

from rota import OpDesc
from tests.findings.proofs import found, fragment, load, loop
from tests.wording.golden import mentions


@pytest.mark.parametrize(
    ("between", "names"),
    [
        ([], ("vmcnt", "0")),
        ([OpDesc.barrier()], ("vmcnt", "0")),
        ([OpDesc.wait_vm(0)], ("epoch 0",)),
        ([OpDesc.wait_vm(4), OpDesc.barrier()], ("wait_vm(4)", "prologue[1]", "vmcnt", "0")),
        ([OpDesc.barrier(), OpDesc.wait_vm(0)], ("epoch 1",)),
        ([OpDesc.wait_vm(63), OpDesc.barrier()], ("vmcnt", "0")),
    ],
)
def test_a_read_before_every_wave_has_landed_its_part_is_a_race(between: list[OpDesc], names: tuple[str, ...]) -> None:
    (finding,) = found("R102", loop(prologue=[load(0), *between, fragment(0)]))
    assert mentions(dict(finding.evidence)["found"], *names)
    assert finding.witness is not None
    assert finding.witness.kind == "RAW"


def test_a_wait_and_then_a_barrier_are_enough() -> None:
    found("R102", loop(prologue=[load(0), OpDesc.wait_vm(0), OpDesc.barrier(), fragment(0)]), times=0)


def test_younger_loads_may_stay_in_flight() -> None:
    ops = [load(0), load(1), OpDesc.wait_vm(4), OpDesc.barrier(), fragment(0)]
    found("R102", loop(prologue=ops), times=0)
    (finding,) = found("R102", loop(prologue=[*ops[:2], OpDesc.wait_vm(5), *ops[3:]]))
    assert mentions(dict(finding.evidence)["found"], "wait_vm(5)", "vmcnt", 4)


def test_a_staggered_group_needs_one_barrier_more() -> None:
    ops = [load(0), OpDesc.wait_vm(0), OpDesc.barrier(), fragment(0)]
    found("R102", loop(prologue=ops, stagger=0))
    found("R102", loop(prologue=[*ops[:2], OpDesc.barrier(), *ops[2:]], stagger=0), times=0)
