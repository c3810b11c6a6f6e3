from __future__ import annotations

import pytest

from tests.audit.tiny import codes, tiny_audit, tiny_phases


@pytest.mark.parametrize("facts", [{"vgpr_spills": 1}, {"sgpr_spills": 2}, {"private_bytes": 16}])
def test_spilled_registers_are_found(facts: dict[str, int]) -> None:
    assert codes(tiny_audit(tiny_phases(), **facts)) == {"I206"}
