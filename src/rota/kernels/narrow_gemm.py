"""GEMMs of 4-bit floats (OCP e2m1) and of scaled blocks (OCP MX, or fp32) on MI355X: gives a `GemmShape` each.

Named in full, as `rota.kernels.narrow_gemm:FP4_SMALL`.
"""

from __future__ import annotations

from typing import Any

from rota.kernels.gemm import GemmShape

_SCALED = "v_mfma_scale_f32_16x16x128_f8f6f4"
_FP4: dict[str, Any] = {"mma": (16, 128), "depth": 256, "element_bytes": 1, "packed": 2}
_FP8: dict[str, Any] = {"mma": (16, 128), "depth": 128, "element_bytes": 1}
_SMALL: dict[str, Any] = {"rows": 128, "columns": 128, "waves": 4}

FP4_LARGE = GemmShape(name="gemm_fp4_256x256x256_8wave", instruction="v_mfma_f32_16x16x128_f8f6f4", **_FP4)
FP4_SMALL = GemmShape(name="gemm_fp4_128x128x256_4wave", instruction=FP4_LARGE.instruction, **_FP4, **_SMALL)
MXFP4_LARGE = GemmShape(name="gemm_mxfp4_256x256x128_8wave", instruction=_SCALED, **(_FP4 | {"depth": 128}))
MXFP4_SMALL = GemmShape(name="gemm_mxfp4_128x128x256_4wave", instruction=_SCALED, **_FP4, **_SMALL)
MXFP8_LARGE = GemmShape(name="gemm_mxfp8_128x256x128_8wave", instruction=_SCALED, rows=128, **_FP8)
MXFP8_SMALL = GemmShape(name="gemm_mxfp8_128x128x128_4wave", instruction=_SCALED, **_FP8, **_SMALL)
"""Those with scales are smaller than those without: what a lane needs besides its data must fit into 256 registers."""

_BLOCKS: dict[str, Any] = {**_FP8, "instruction": FP4_LARGE.instruction, "block_scales": True}
BLOCK_FP8_LARGE = GemmShape(name="gemm_block_fp8_128x256x128_8wave", rows=128, **_BLOCKS)
BLOCK_FP8_SMALL = GemmShape(name="gemm_block_fp8_128x128x128_4wave", **_BLOCKS, **_SMALL)
"""Of fp8 with a scale in fp32 for each 128 elements of a row, as of DeepSeek-V3's weights and activations."""
