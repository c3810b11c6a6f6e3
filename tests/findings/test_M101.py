from __future__ import annotations

from rota import GFX950
from rota.predict.predict_problem import tiled_gemm
from tests.cycles.timed_loops import only_mfmas
from tests.findings.smallest import raised


def test_a_loop_that_is_not_the_tile_s_product_is_refused() -> None:
    loop = only_mfmas("v_mfma_f32_16x16x32_bf16", GFX950)
    finding = raised("M101", lambda: tiled_gemm(loop, (256, 256, 64)))
    assert ("of a GEMM with that tile", f"{2 * 256 * 256 * 64:,}") in finding.evidence
    assert tiled_gemm(loop, (16, 16, 32 * 64 * 4)).element == "bf16"
