from __future__ import annotations

import pytest

from rota.program.kinds import Phase
from tests.audit.tiny import behind_a_branch, codes, tiny_audit, tiny_phases


@pytest.mark.parametrize("counter", ["vmcnt", "lgkmcnt"])
@pytest.mark.parametrize("missing", [True, False])
def test_a_weaker_or_missing_wait_is_found_and_the_proof_fails(counter: str, missing: bool) -> None:
    phases = tiny_phases()
    lines = phases[Phase.KERNEL]
    number = next(n for n, line in enumerate(lines) if counter in line)
    count = int(lines[number].removesuffix(")").rpartition("(")[2])
    lines[number] = "s_nop 0" if missing else f"s_waitcnt {counter}({count + 1})"
    audit = tiny_audit(phases)
    assert "I204" in codes(audit)
    assert any(code.startswith("R") for code in codes(audit))
    assert audit.certificate is None
    assert not audit.clean


@pytest.mark.parametrize("counter", ["vmcnt", "lgkmcnt"])
def test_a_wait_that_a_branch_may_skip_is_none(counter: str) -> None:
    phases = tiny_phases()
    phases[Phase.KERNEL] = behind_a_branch(phases[Phase.KERNEL], counter)
    audit = tiny_audit(phases)
    assert "I204" in codes(audit)
    assert audit.certificate is None
