from __future__ import annotations

from rota import DeclarativeSchedule, KernelGeometry, compile_schedule
from rota.emit.hip_gemm import emit_gemm
from tests.findings.smallest import raised


def test_tokens_that_are_not_the_emitted_instructions_are_refused() -> None:
    finding = raised("T202", lambda: emit_gemm(compile_schedule(DeclarativeSchedule()), KernelGeometry()))
    rows, bytes_a_row, waves, lanes, bytes_a_lane = 128, 128, 8, 64, 16
    assert ("tokens", 4) in finding.evidence
    assert ("instructions", rows * bytes_a_row // (waves * lanes * bytes_a_lane)) in finding.evidence
