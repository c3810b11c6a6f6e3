from __future__ import annotations

from rota import OpDesc, Severity, compile_schedule
from tests.findings.smallest import reported
from tests.programs.ported import Plain, Rotating


def test_minimal_barriers_without_rotation_leave_no_barrier_and_a_note_says_so() -> None:
    (finding,) = reported("P117", Plain(minimal_barriers=True))
    assert finding.severity is Severity.NOTE
    written = compile_schedule(Plain(minimal_barriers=True), sync="as_written")
    assert OpDesc.barrier() not in [entry.op for entry in written.kernel]


def test_the_offered_fixes_work() -> None:
    repaired = compile_schedule(Plain(minimal_barriers=True))
    assert repaired.certificate is not None
    assert OpDesc.barrier() in [entry.op for entry in repaired.kernel]
    assert OpDesc.barrier() in [entry.op for entry in compile_schedule(Plain(), sync="as_written").kernel]


def test_with_rotation_the_entry_waits_bring_barriers() -> None:
    written = compile_schedule(Rotating(), sync="as_written")
    assert "P117" not in {finding.code for finding in written.findings}
    assert OpDesc.barrier() in [entry.op for entry in written.kernel]
