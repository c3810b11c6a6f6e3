"""Loops that rota emitted, lifted from their machine code: they are the schedules that they came from."""

from __future__ import annotations

from rota.cycles.predict import predict
from rota.emit.gemm.hip_gemm import emit_gemm
from rota.isa.binary.toolchain import find_toolchain
from rota.lift.lifted_loop import lift_kernel
from rota.pipeline.geometry import TileShape
from rota.program.kinds import OpKind
from rota.program.lowered import LoweredProgram
from rota.targets.device import device_of
from tests.emit.kernels import ping_pong

_ORDERED = frozenset({OpKind.DMA, OpKind.LDS_READ, OpKind.MMA, OpKind.BARRIER, OpKind.PRIORITY})
_MORE = 0.03  # of the clocks: scalar instructions, which a schedule doesn't list


def order(program: LoweredProgram) -> list[str]:
    """What the loop issues, one word an instruction; waits with their counts."""
    words: list[str] = []
    for entry in program.kernel:
        effect = entry.effect
        if effect.kind is OpKind.WAIT:
            words.append(f"{effect.counter}({effect.wait_value})")
        elif effect.kind in _ORDERED:
            words += [effect.kind.word] * (entry.op.work.instructions if entry.op.work else 1)
    return words


def test_the_loop_is_the_schedule() -> None:
    """Two groups of waves, one a barrier behind: `python -m benchmarks.lift_kernels --own` has others."""
    (compiled, geometry), waves = ping_pong(), 8
    code = find_toolchain().compile(emit_gemm(compiled, geometry), compiled.machine.arch)
    lifted = lift_kernel(code.kernel(), code.instructions(), device_of(compiled.machine)).program
    shape = TileShape(geometry=geometry, waves=waves, instruction="v_mfma_f32_16x16x32_bf16")
    scheduled = shape.fill(compiled.lowered)
    assert order(lifted) == order(scheduled)
    assert [role.waves for role in lifted.roles] == [waves // len(lifted.roles)] * len(compiled.lowered.roles)
    before = predict(compiled, shape, band=False).cycles * compiled.lowered.tiles_per_trip
    after = predict(lifted, band=False).cycles * lifted.tiles_per_trip
    assert before <= after <= (1 + _MORE) * before
