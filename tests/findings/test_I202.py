from __future__ import annotations

from rota.declare.vocabulary import Phase
from tests.audit.tiny import codes, tiny_audit, tiny_phases


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
