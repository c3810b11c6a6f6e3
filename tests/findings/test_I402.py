from __future__ import annotations

from rota.prove.verdict import Budget, Status
from tests.prove.written import judged
from tests.wording.golden import worded

LOOP = """
s_load_dword s4, s[0:1], 0x0
s_waitcnt lgkmcnt(0)
again:
s_add_i32 s4, s4, -1
s_cmp_eq_u32 s4, 0
s_cbranch_scc0 again
"""


def test_a_budget_of_states() -> None:
    assert judged(LOOP).proved
    verdict = judged(LOOP, budget=Budget(states=1))
    assert verdict.status is Status.INCONCLUSIVE
    (finding,) = verdict.findings
    assert finding.code == "I402"
    assert dict(worded(finding).evidence)["ended by"] == "states"
    assert dict(finding.evidence)["states"] == 2


def test_a_budget_of_steps() -> None:
    (finding,) = judged(LOOP, budget=Budget(steps=3)).findings
    assert finding.code == "I402"
    assert dict(worded(finding).evidence)["ended by"] == "steps"
