from __future__ import annotations

import pytest

from rota.program.kinds import Phase
from tests.audit.tiny import behind_a_branch, codes, tiny_audit, tiny_phases


def test_the_schedule_itself_is_exact() -> None:
    assert tiny_audit(tiny_phases()).exact


def test_a_missing_instruction_is_found() -> None:
    phases = tiny_phases()
    phases[Phase.KERNEL] = [line for line in phases[Phase.KERNEL] if not line.startswith("v_mfma")]
    audit = tiny_audit(phases)
    assert codes(audit) == {"I202"}
    assert audit.certificate is None


def test_a_moved_instruction_is_found() -> None:
    phases = tiny_phases()
    lines = phases[Phase.KERNEL]
    read, product = (next(n for n, line in enumerate(lines) if line.startswith(op)) for op in ("ds_read", "v_mfma"))
    lines[read], lines[product] = lines[product], lines[read]
    assert codes(tiny_audit(phases)) == {"I202"}


def test_an_instruction_too_many_is_found() -> None:
    phases = tiny_phases()
    phases[Phase.EPILOGUE].append("ds_read_b128 v[4:7], v2")
    assert codes(tiny_audit(phases)) == {"I202"}


@pytest.mark.parametrize("opcode", ["buffer_load", "ds_read", "v_mfma"])
def test_an_instruction_that_a_branch_may_skip_is_found(opcode: str) -> None:
    phases = tiny_phases()
    phases[Phase.KERNEL] = behind_a_branch(phases[Phase.KERNEL], opcode)
    audit = tiny_audit(phases)
    assert codes(audit) == {"I202"}
    assert audit.certificate is None


def test_the_branch_of_zero_trips_skips_the_loop_alone() -> None:
    phases = tiny_phases()
    over, end = "s_cbranch_scc0 .LBB0_9", ".LBB0_9:"
    phases[Phase.EPILOGUE].insert(0, end)
    phases[Phase.PROLOGUE].append(over)
    assert tiny_audit(phases).exact
    phases[Phase.PROLOGUE].remove(over)
    read = next(number for number, line in enumerate(phases[Phase.PROLOGUE]) if line.startswith("ds_read"))
    phases[Phase.PROLOGUE].insert(read, over)
    assert "I202" in codes(tiny_audit(phases))
