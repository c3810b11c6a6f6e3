from __future__ import annotations

from dataclasses import replace

from rota import DeclarativeSchedule, KernelGeometry, compile_schedule
from rota.compiler.loop import compile_loop
from rota.emit.hip_gemm import emit_gemm
from rota.targets.machine import GFX942
from tests.emit.kernels import SHAPES, SMALL_MI300X
from tests.findings.smallest import raised


def test_tokens_that_are_not_the_emitted_instructions_are_refused() -> None:
    finding = raised("T202", lambda: emit_gemm(compile_schedule(DeclarativeSchedule()), KernelGeometry()))
    rows, bytes_a_row, waves, lanes, bytes_a_lane = 128, 128, 8, 64, 16
    assert ("tokens", 4) in finding.evidence
    assert ("instructions", rows * bytes_a_row // (waves * lanes * bytes_a_lane)) in finding.evidence


def test_matrix_instructions_that_are_not_the_emitted_ones_are_refused() -> None:
    shape = SHAPES[SMALL_MI300X]
    spec = shape.loop(instructions=False)
    ops = tuple(replace(op, instructions=op.instructions - 1) if op.instruction else op for op in spec.ops)
    finding = raised("T202", lambda: emit_gemm(compile_loop(replace(spec, ops=ops), GFX942), shape.geometry))
    parts, steps = 2 * 2, 64 // 16
    assert finding.evidence == (("declared", parts * steps - 1), ("instructions", parts * steps))
