"""GEMMs of 4-bit floats (OCP e2m1), two in a byte, on MI355X: takes nothing, gives a `GemmShape` for each.

Named in full, as `rota.kernels.narrow_gemm:FP4_SMALL`.
"""

from __future__ import annotations

from typing import Any

from rota.kernels.gemm import GemmShape

_FP4: dict[str, Any] = {
    "instruction": "v_mfma_f32_16x16x128_f8f6f4",
    "mma": (16, 128),
    "depth": 256,
    "element_bytes": 1,
    "packed": 2,
}

FP4_LARGE = GemmShape(name="gemm_fp4_256x256x256_8wave", **_FP4)
FP4_SMALL = GemmShape(name="gemm_fp4_128x128x256_4wave", rows=128, columns=128, waves=4, **_FP4)
