from __future__ import annotations

from rota.prove.verdict import Status
from tests.prove.written import judged
from tests.wording.golden import worded


def test_an_instruction_that_the_proof_does_not_know() -> None:
    verdict = judged("ds_append v1")
    assert verdict.status is Status.INCONCLUSIVE
    (finding,) = verdict.findings
    assert finding.code == "I401"
    worded(finding)
    assert "ds_append" in finding.message
    assert finding.concerns[0].label == "ds_append v1"


def test_a_jump_that_goes_nobody_knows_where() -> None:
    verdict = judged("s_load_dwordx2 s[4:5], s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\ns_setpc_b64 s[4:5]")
    assert verdict.status is Status.INCONCLUSIVE
    assert [finding.code for finding in verdict.findings] == ["I401"]
