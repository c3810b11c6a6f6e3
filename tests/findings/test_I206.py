from __future__ import annotations

from typing import Any

import pytest

from tests.audit.tiny import codes, tiny_audit, tiny_phases
from tests.wording.golden import worded


@pytest.mark.parametrize("facts", [{"vgpr_spills": 1}, {"sgpr_spills": 2}, {"private_bytes": 16}])
def test_spilled_registers_are_found(facts: dict[str, Any]) -> None:
    assert codes(tiny_audit(tiny_phases(), **facts)) == {"I206"}


@pytest.mark.parametrize(
    "facts", [{"vgpr_spills": None}, {"sgpr_spills": None}, {"vgpr_spills": None, "sgpr_spills": 3}]
)
def test_counts_that_the_notes_leave_out_are_not_taken_for_none(facts: dict[str, Any]) -> None:
    audit = tiny_audit(tiny_phases(), **facts)
    (finding,) = audit.findings
    assert finding.code == "I206"
    worded(finding)
    worded(str(audit))
