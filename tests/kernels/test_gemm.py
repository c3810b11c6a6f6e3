from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from rota import DeclarationError
from rota.emit.gemm.gemm_tile import BLayout
from rota.kernels.gemm import GEMM_SHAPES, MI300X_GEMM_SHAPES, GemmShape
from rota.program.kinds import OpKind

READS = (OpKind.LDS_READ, OpKind.LDS_READ_TRANSPOSED)


@pytest.mark.parametrize("shape", [*GEMM_SHAPES, *MI300X_GEMM_SHAPES], ids=lambda shape: shape.name)
def test_geometry_and_loop_are_about_the_same_tile(shape: GemmShape) -> None:
    geometry, loop = shape.geometry, shape.loop(instructions=True)
    assert loop.value("A").size == geometry.BM * geometry.BK * geometry.elem_bytes
    assert loop.value("B").size == geometry.BN * geometry.BK * geometry.elem_bytes
    assert f"{geometry.MMA_M}x{geometry.MMA_N}x{geometry.MMA_K}_" in shape.instruction
    assert geometry.is_fp8 == shape.instruction.endswith("f8f6f4")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"rows": 96}, "rows"),
        ({"columns": 100}, "columns"),
        ({"depth": 48}, "depth"),
        ({"mma": (32, 16)}, "mma"),
        ({"instruction": "v_mfma_f32_32x32x16_bf16"}, "mma"),
        ({"element_bytes": 1}, "element_bytes"),
        ({"dma_bytes": 3}, "dma_bytes"),
        ({"read_bytes": 12}, "read_bytes"),
    ],
)
@pytest.mark.parametrize("instructions", [False, True])
def test_a_tile_that_no_whole_instructions_make_is_refused(
    changes: dict[str, Any], field: str, instructions: bool
) -> None:
    shape = replace(GEMM_SHAPES[2], **changes)
    if changes == {"rows": 96} and instructions:
        assert shape.loop(instructions=True).value("A").size == 96 * 64 * 2  # three MFMAs a wave: no halves
        return
    with pytest.raises(DeclarationError, match=rf"D102.*GemmShape\.{field} "):
        shape.loop(instructions=instructions)


@pytest.mark.parametrize(
    ("rows", "waves", "instructions", "loads", "size"),
    [
        (224, 8, True, 4, 256 * 128),
        (32, 8, True, 1, 64 * 128),
        (192, 8, False, 2, 128 * 128),
        (192, 8, True, 3, 192 * 128),
    ],
)
def test_rows_that_end_within_a_dma_take_a_whole_one(
    rows: int, waves: int, instructions: bool, loads: int, size: int
) -> None:
    """A DMA of eight waves brings 64 rows of 128 bytes, of four 32; in quadrants each half has its own."""
    loop = replace(GEMM_SHAPES[2], rows=rows, columns=256, waves=waves).loop(instructions=instructions)
    name = "A" if instructions else "A0"
    assert loop.value(name).size == size
    assert sum(op.instructions for op in loop.writers(name)) == loads
    assert sum(op.moved for op in loop.writers(name)) == size


@pytest.mark.parametrize("instructions", [False, True])
def test_a_transposed_read_brings_half_as_much(instructions: bool) -> None:
    plain, turned = (replace(GEMM_SHAPES[2], b_layout=layout).loop(instructions=instructions) for layout in BLayout)
    counts = [
        {kind: sum(op.instructions for op in loop.ops if op.kind is kind) for kind in READS} for loop in (plain, turned)
    ]
    assert counts[0][READS[1]] == 0
    assert counts[1][READS[0]] * 2 == counts[0][READS[0]]
    assert counts[1][READS[1]] == counts[0][READS[0]]


@pytest.mark.parametrize("instructions", [False, True])
def test_pairs_of_columns_take_twice_the_reads_and_a_vector_instruction_a_register(instructions: bool) -> None:
    """A lane gets 4 bytes of B with a read instead of 8; 64 columns of 64 k are 32 registers."""
    shape = replace(MI300X_GEMM_SHAPES[-1], b_layout=BLayout.KN)
    loop = shape.loop(instructions=instructions)
    count = Counter[tuple[OpKind, str]]()
    for op in loop.ops:
        count[op.kind, op.writes[0][0]] += op.instructions
    assert (count[OpKind.LDS_READ, "a"], count[OpKind.LDS_READ, "b"], count[OpKind.VALU, "b"]) == (16, 32, 32)
    assert not count[OpKind.LDS_READ_TRANSPOSED, "b"]
    assert sum(op.moved for op in loop.ops if op.kind is OpKind.LDS_READ) == 2 * 4 * 64 * 64 * 2


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"instruction": "v_mfma_f32_16x16x32_fp8_fp8", "mma": (16, 32), "element_bytes": 1, "depth": 128}, "b_pairs"),
        ({"columns": 32}, "columns"),
    ],
)
def test_pairs_that_no_register_or_wave_holds_are_refused(changes: dict[str, Any], field: str) -> None:
    shape = replace(MI300X_GEMM_SHAPES[-1], b_layout=BLayout.KN, **changes)
    with pytest.raises(DeclarationError, match=rf"D102.*GemmShape\.{field} "):
        shape.loop()
