from __future__ import annotations

from rota.program.kinds import Phase
from tests.audit import sabotage
from tests.audit.tiny import codes, tiny_audit, tiny_phases
from tests.emit.kernels import ping_pong
from tests.wording.golden import worded


def test_a_missing_barrier_is_found() -> None:
    phases = tiny_phases()
    phases[Phase.KERNEL].remove("s_barrier")
    assert "I205" in codes(tiny_audit(phases))


def test_a_barrier_too_many_is_found() -> None:
    phases = tiny_phases()
    phases[Phase.EPILOGUE].append("s_barrier")
    assert codes(tiny_audit(phases)) == {"I205"}


def test_a_barrier_inside_an_op_has_no_place_in_a_schedule() -> None:
    phases = tiny_phases()
    read = next(n for n, line in enumerate(phases[Phase.KERNEL]) if line.startswith("ds_read"))
    phases[Phase.KERNEL].insert(read + 1, "s_barrier")
    audit = tiny_audit(phases)
    assert codes(audit) == {"I205"}
    assert audit.certificate is None


def test_a_barrier_that_keeps_wave_groups_apart_is_missed() -> None:
    compiled, geometry = ping_pong()
    source = sabotage.source_of(compiled, geometry)
    audit = sabotage.audited(compiled, geometry, source.replace("if (wave_group == 1) { ROTA_BARRIER }", ""))
    first, last = (worded(finding) for finding in audit.findings if finding.code == "I205")
    assert first.evidence == (("planned", 2), ("found", 1))
    assert [count for _, count in last.evidence] == [1, 0]
