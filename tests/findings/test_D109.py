from __future__ import annotations

from typing import Any

import pytest

from rota import KernelGeometry, compile_schedule
from rota.cycles.predict import predict
from rota.kernels.four_wave import Pipeline4Wave
from rota.kernels.gemm import BF16
from rota.pipeline.geometry import TileShape
from tests.findings.smallest import Small, raised


def test_cycles_of_a_body_in_tiles_need_a_shape() -> None:
    finding = raised("D109", lambda: predict(compile_schedule(Small())))
    assert "TileShape" in finding.fixes[0]


@pytest.mark.parametrize(
    ("changes", "instruction", "broken"),
    [
        ({"BM": 100}, BF16, "in whole MFMAs"),
        ({"BN": 250}, BF16, "in whole MFMAs"),
        ({"BK": 16}, BF16, "BK is a multiple of MMA_K"),
        ({}, "v_mfma_f32_32x32x16_bf16", "16x16x32, are those of v_mfma_f32_32x32x16_bf16"),
        ({"MMA_K": 128, "BK": 128}, "v_mfma_f32_16x16x128_f8f6f4", "elem_bytes, 2"),
        ({"BM": 32, "BN": 32, "BK": 32}, BF16, "compute ops share the MFMAs evenly"),
    ],
)
def test_whole_instructions_must_follow_from_the_shape(changes: dict[str, Any], instruction: str, broken: str) -> None:
    compiled = compile_schedule(Pipeline4Wave(KernelGeometry()))
    shape = TileShape(geometry=KernelGeometry(**changes), waves=4, instruction=instruction)
    finding = raised("D109", lambda: predict(compiled, shape, band=False))
    assert any(broken in str(rule) for _, rule in finding.evidence)
