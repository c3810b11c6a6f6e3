from __future__ import annotations

import pytest

from rota import GFX942, GFX950, Loop, LoopSpec, Machine, compile_loop
from tests.findings.smallest import raised
from tests.wording.golden import mentions

MFMA = {GFX950.arch: "v_mfma_f32_16x16x32_bf16", GFX942.arch: "v_mfma_f32_16x16x16_bf16"}


def gemm(
    *,
    waves: int = 4,
    machine: Machine = GFX950,
    size: int | None = None,
    instructions: int = 1,
    registers: int = 4,
    width: int = 16,
) -> LoopSpec:
    """One tile, one fragment, one sum; a lane moves `width` bytes of the tile."""
    moved = width * 64 * waves
    loop = Loop("small", waves=waves)
    loop.load(loop.tile("A", size=size or moved), moved=moved, instructions=instructions)
    a = loop.fragment("a", "A", registers=registers)
    loop.mma(loop.accumulator("c", registers=4), a, a, instruction=MFMA[machine.arch])
    return loop.build()


@pytest.mark.parametrize(("machine", "widest"), [(GFX950, 16), (GFX942, 4)])
def test_a_dma_wider_than_the_machines_is_refused(machine: Machine, widest: int) -> None:
    finding = raised("L106", lambda: compile_loop(gemm(machine=machine, width=2 * widest), machine))
    assert mentions(finding.message, widest)
    assert finding.fixes == ("instructions=2",)
    assert compile_loop(gemm(machine=machine, width=2 * widest, instructions=2), machine).certificate is not None


def test_an_lds_read_wider_than_any_is_refused() -> None:
    raised("L106", lambda: compile_loop(gemm(registers=8)))
