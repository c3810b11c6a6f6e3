from __future__ import annotations

from rota import SingleBufferSchedule, compile_schedule
from rota.compiled.proved import CompiledProgram
from rota.emit.document.exchange import to_json
from tests.findings.smallest import raised


def test_a_program_that_came_lowered_has_nothing_to_derive_it_from() -> None:
    program = CompiledProgram.of(compile_schedule(SingleBufferSchedule(2)).lowered)
    finding = raised("T208", lambda: to_json(program))
    assert "CompiledProgram" in finding.message
    assert dict(finding.evidence)["known"] == "CompiledPipeline, CompiledLoop"
