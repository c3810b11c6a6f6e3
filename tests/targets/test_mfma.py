from __future__ import annotations

import pytest

from rota.targets.cdna import element_bytes_named, shape_named


@pytest.mark.parametrize(
    ("instruction", "shape", "element_bytes"),
    [
        ("v_mfma_f32_16x16x32_bf16", (16, 16, 32), 2),
        ("v_mfma_f32_32x32x8_f16", (32, 32, 8), 2),
        ("v_mfma_f32_32x32x8f16", (32, 32, 8), 2),  # as LLVM spelt it before gfx940
        ("v_mfma_f32_16x16x128_f8f6f4", (16, 16, 128), 1),
        ("v_mfma_f32_16x16x32_fp8_fp8", (16, 16, 32), 1),
        ("v_mfma_i32_32x32x16_i8", (32, 32, 16), 1),
        ("v_add_f16", None, 2),
    ],
)
def test_a_name_says_shape_and_element(
    instruction: str, shape: tuple[int, int, int] | None, element_bytes: int
) -> None:
    assert shape_named(instruction) == shape
    assert element_bytes_named(instruction) == element_bytes
