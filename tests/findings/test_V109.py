from __future__ import annotations

from dataclasses import replace

import pytest

from rota import OpDesc, OpRole, compile_schedule
from rota.errors import ProofError
from tests.findings.proofs import found, fragment, load, loop, mma
from tests.findings.smallest import Small, two_tiles
from tests.wording.golden import mentions, worded


def test_a_compute_outside_the_grid_is_reported_and_the_missing_cell_too() -> None:
    """A 2x1 grid declared with (2, 0) where (1, 0) is due."""
    body = two_tiles()
    astray = [replace(op, stage=1) if op.role is OpRole.COMPUTE else op for op in body]
    with pytest.raises(ProofError) as caught:
        compile_schedule(Small(ops=astray))
    codes = {finding.code for finding in caught.value.findings}
    assert codes >= {"V103", "V109"}
    finding = next(each for each in caught.value.findings if each.code == "V109")
    worded(finding)
    assert "mma[1,0]" in finding.message


def test_a_cell_that_no_phase_computes_is_missed() -> None:
    """What is missing everywhere is missing all the same."""
    fill = [load(0), load(0, channel=1), OpDesc.wait_vm(0), OpDesc.barrier()]
    read = [fragment(0), fragment(0, channel=1), OpDesc.wait_lgkm(0)]
    made = loop(prologue=[*fill, *read, mma()])
    found("V109", made, times=0)
    missing = found("V103", replace(made, config=replace(made.config, n_mmas=2)), times=None)
    assert any(mentions(finding.message, "[0,1]", "K-tile 0") for finding in missing)
