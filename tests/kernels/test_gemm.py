from __future__ import annotations

import pytest

from rota.kernels.gemm import GEMM_SHAPES, MI300X_GEMM_SHAPES, GemmShape


@pytest.mark.parametrize("shape", [*GEMM_SHAPES, *MI300X_GEMM_SHAPES], ids=lambda shape: shape.name)
def test_geometry_and_loop_are_about_the_same_tile(shape: GemmShape) -> None:
    geometry, loop = shape.geometry, shape.loop(instructions=True)
    assert loop.value("A").size == geometry.BM * geometry.BK * geometry.elem_bytes
    assert loop.value("B").size == geometry.BN * geometry.BK * geometry.elem_bytes
    assert f"{geometry.MMA_M}x{geometry.MMA_N}x{geometry.MMA_K}_" in shape.instruction
    assert geometry.is_fp8 == shape.instruction.endswith("f8f6f4")
