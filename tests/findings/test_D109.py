from __future__ import annotations

from typing import Any

import pytest

from rota import KernelGeometry, compile_schedule
from rota.cycles.predict import predict
from rota.kernels.four_wave import Pipeline4Wave
from rota.kernels.gemm import BF16
from rota.pipeline.geometry import TileShape
from tests.findings.smallest import Small, raised
from tests.wording.golden import mentions


def test_cycles_of_a_body_in_tiles_need_a_shape() -> None:
    finding = raised("D109", lambda: predict(compile_schedule(Small())))
    assert "TileShape" in finding.fixes[0]


@pytest.mark.parametrize(
    ("changes", "instruction", "names"),
    [
        ({"BM": 100}, BF16, ("BM", "BN")),
        ({"BN": 250}, BF16, ("BM", "BN")),
        ({"BK": 16}, BF16, ("BK", "MMA_K")),
        ({}, "v_mfma_f32_32x32x16_bf16", ("16x16x32", "v_mfma_f32_32x32x16_bf16")),
        ({"MMA_K": 128, "BK": 128}, "v_mfma_f32_16x16x128_f8f6f4", ("elem_bytes", 2)),
        ({"BM": 32, "BN": 32, "BK": 32}, BF16, ("MFMAs",)),
    ],
)
def test_whole_instructions_must_follow_from_the_shape(
    changes: dict[str, Any], instruction: str, names: tuple[object, ...]
) -> None:
    compiled = compile_schedule(Pipeline4Wave(KernelGeometry()))
    shape = TileShape(geometry=KernelGeometry(**changes), waves=4, instruction=instruction)
    finding = raised("D109", lambda: predict(compiled, shape, band=False))
    assert any(mentions(rule, *names) for _, rule in finding.evidence)
