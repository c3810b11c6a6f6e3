"""What is known of the reference's schedules shows in their machine code, emitted as they were written."""

from __future__ import annotations

import numpy as np
import pytest

from rota import CompiledSchedule, KernelGeometry, ScheduleConfig, mi355x_target, verify
from rota.emit import planning
from rota.emit.gemm import hip_gemm
from rota.isa.binary.toolchain import find_toolchain
from rota.isa.decoded import load_program
from rota.isa.launch.interleaving import LATEST, Interleaving, backwards
from rota.isa.launch.run import run_kernel
from rota.kernels.ping_pong import DeclarativeSchedule
from tests.execute.loops import as_written

pytestmark = pytest.mark.no_cover  # many cases: what they run is covered where it is tested by itself


@pytest.fixture(autouse=True)
def unrepaired(monkeypatch: pytest.MonkeyPatch) -> None:
    """Emission plans register waits, and so mends what it can; here it must not."""
    monkeypatch.setattr(planning, "with_register_waits", lambda compiled: compiled)


def ping_pong(scheduling: str) -> CompiledSchedule:
    knobs = ScheduleConfig(scheduling=scheduling, lgkm_per_load_a=8, lgkm_per_load_b=4)
    return as_written(DeclarativeSchedule(knobs, mi355x_target(2, 2, 1)))


def faults(compiled: CompiledSchedule, interleavings: tuple[Interleaving, ...]) -> list[set[str]]:
    """What executions of the schedule's machine code do wrong, after two trips; a wrong product counts as V."""
    source = hip_gemm.emit_gemm(compiled, KernelGeometry(vm_per_load_a=2, vm_per_load_b=2))
    code = find_toolchain().compile(source, "gfx950")
    program = load_program(code.kernel(), code.instructions())
    depth = compiled.lowered.total_tiles(2) * 64
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((256, depth)).astype(np.float32).view(np.uint32) >> 16 for _ in range(2))
    wanted = (a << 16).view(np.float32).astype(np.float64) @ (b << 16).view(np.float32).astype(np.float64).T
    found = []
    for interleaving in interleavings:
        outcome = run_kernel(
            program,
            args=[a.astype(np.uint16), b.astype(np.uint16), np.zeros((256, 256), np.float32), 256, depth],
            block=(512, 1, 1),
            interleaving=interleaving,
        )
        wrong = not np.allclose(outcome.buffers[2], wanted, rtol=0, atol=1e-3)
        found.append({finding.code for finding in outcome.findings} | ({"V"} if wrong else set()))
    return found


def test_ping_pong_in_the_order_of_its_declaration_races_in_the_loop() -> None:
    """The proof's R103 is a race that one interleaving suffers, and that the other one shows though its C is right."""
    compiled = ping_pong("IDENTITY")
    assert {finding.code for finding in verify(compiled).errors} == {"R103"}
    late, lucky = faults(compiled, (LATEST, backwards(8)))
    assert late == {"V", "I109"}
    assert lucky == {"I109"}


def test_ping_pong_in_the_order_of_the_search_is_clean() -> None:
    compiled = ping_pong("CSP")
    assert verify(compiled).clean
    assert faults(compiled, (LATEST, backwards(8))) == [set(), set()]
