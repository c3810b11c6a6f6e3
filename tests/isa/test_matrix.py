"""Every MFMA that the interpreter knows, in the layout of the ISA, against a product of whole matrices.

The layout is spelt out element by element here, from the ISA's tables; the kernel is what the compiler makes of the
builtin, so that operand order and register counts are its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from rota.isa.launch.run import run_kernel
from rota.isa.valu.convert import float_values
from rota.targets.architecture import Float8
from tests.isa.sources import program

RNG = np.random.default_rng(5)


class Shape(NamedTuple):
    arch: str
    builtin: str
    operand: str
    size: int
    depth: int
    kind: str
    more: str = "0, 0, 0"


SHAPES = [
    Shape("gfx942", "mfma_f32_16x16x16f16", "vec<f16, 4>", 16, 16, "f16"),
    Shape("gfx942", "mfma_f32_16x16x16bf16_1k", "vec<short, 4>", 16, 16, "bf16"),
    Shape("gfx942", "mfma_f32_32x32x8f16", "vec<f16, 4>", 32, 8, "f16"),
    Shape("gfx942", "mfma_f32_32x32x8bf16_1k", "vec<short, 4>", 32, 8, "bf16"),
    Shape("gfx942", "mfma_f32_16x16x32_fp8_fp8", "long", 16, 32, "fnuz fp8"),
    Shape("gfx942", "mfma_f32_32x32x16_bf8_bf8", "long", 32, 16, "fnuz bf8"),
    Shape("gfx942", "mfma_i32_16x16x32_i8", "long", 16, 32, "i8"),
    Shape("gfx942", "mfma_i32_32x32x16_i8", "long", 32, 16, "i8"),
    Shape("gfx942", "mfma_f32_16x16x4f32", "float", 16, 4, "f32"),
    Shape("gfx942", "mfma_f32_32x32x2f32", "float", 32, 2, "f32"),
    Shape("gfx950", "mfma_f32_16x16x4f32", "float", 16, 4, "f32"),
    Shape("gfx950", "mfma_f32_16x16x32_bf16", "vec<bf16, 8>", 16, 32, "bf16"),
    Shape("gfx950", "mfma_f32_16x16x32_f16", "vec<f16, 8>", 16, 32, "f16"),
    Shape("gfx950", "mfma_f32_32x32x16_bf16", "vec<bf16, 8>", 32, 16, "bf16"),
    Shape("gfx950", "mfma_f32_32x32x16_f16", "vec<f16, 8>", 32, 16, "f16"),
    Shape("gfx950", "mfma_i32_16x16x64_i8", "vec<int, 4>", 16, 64, "i8"),
    Shape("gfx950", "mfma_i32_32x32x32_i8", "vec<int, 4>", 32, 32, "i8"),
    Shape("gfx950", "mfma_f32_16x16x32_fp8_fp8", "long", 16, 32, "ocp fp8"),
    Shape("gfx950", "mfma_scale_f32_16x16x128_f8f6f4", "vec<int, 8>", 16, 128, "ocp fp8", "0, 0, 0, 0, 0, 0"),
    Shape("gfx950", "mfma_scale_f32_32x32x64_f8f6f4", "vec<int, 8>", 32, 64, "ocp fp8", "0, 0, 0, 0, 0, 0"),
    Shape("gfx950", "mfma_scale_f32_16x16x128_f8f6f4", "vec<int, 8>", 16, 128, "ocp bf8", "1, 1, 0, 0, 0, 0"),
]
TABLES = {
    "fnuz fp8": float_values("fp8", Float8.FNUZ),
    "fnuz bf8": float_values("bf8", Float8.FNUZ),
    "ocp fp8": float_values("fp8", Float8.OCP),
    "ocp bf8": float_values("bf8", Float8.OCP),
}


def matrix(kind: str, rows: int, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """Raw elements, and what they are worth."""
    if kind == "i8":
        raw = RNG.integers(-128, 128, (rows, depth)).astype(np.int8)
        return raw, raw.astype(np.float64)
    if kind in TABLES:
        raw = RNG.integers(0, 256, (rows, depth)).astype(np.uint8)
        raw[~np.isfinite(TABLES[kind][raw])] = 0
        return raw, TABLES[kind][raw].astype(np.float64)
    values = RNG.standard_normal((rows, depth)).astype(np.float32)
    if kind == "bf16":
        values = (values.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
        return (values.view(np.uint32) >> np.uint32(16)).astype(np.uint16), values.astype(np.float64)
    rounded = values.astype(np.float16) if kind == "f16" else values
    return rounded, rounded.astype(np.float64)


def in_lanes(raw: np.ndarray, size: int, depth: int) -> np.ndarray:
    """Lane l holds row l mod size, and from k = (l div size) * part on, `part` elements that follow each other."""
    part = depth * size // 64
    return np.stack([raw[lane % size, lane // size * part :][:part] for lane in range(64)])


def from_lanes(registers: np.ndarray, size: int) -> np.ndarray:
    """D as a matrix, from registers of lanes."""
    out = np.zeros((size, size), registers.dtype)
    for lane in range(64):
        for r in range(registers.shape[1]):
            row = 4 * (lane // 16) + r if size == 16 else 8 * (r // 4) + 4 * (lane // 32) + r % 4
            out[row, lane % size] = registers[lane, r]
    return out


@pytest.mark.thorough  # compiles, or starts commands
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape.arch} {shape.builtin} {shape.kind}")
def test_an_mfma_multiplies_matrices(shape: Shape) -> None:
    total = "int" if shape.kind == "i8" else "float"
    count = shape.size * shape.size // 64
    source = (
        f"KERNEL(const {shape.operand}* a, const {shape.operand}* b, vec<{total}, {count}>* o) {{"
        f"  o[ID] = __builtin_amdgcn_{shape.builtin}(a[ID], b[ID], o[ID], {shape.more}); }}"
    )
    (raw_a, a), (raw_b, b) = (matrix(shape.kind, shape.size, shape.depth) for _ in range(2))
    start = RNG.integers(-9, 9, (64, count)).astype(np.int32 if shape.kind == "i8" else np.float32)
    outcome = run_kernel(
        program(source, shape.arch),
        args=[in_lanes(raw_a, shape.size, shape.depth), in_lanes(raw_b, shape.size, shape.depth), start],
        block=(64, 1, 1),
    )
    assert outcome.findings == ()
    wanted = a @ b.T + from_lanes(start, shape.size)
    terms = 0 if shape.kind == "i8" else shape.depth + 1
    bound = terms * 2.0**-24 * (np.abs(a) @ np.abs(b).T + 9)
    assert (np.abs(from_lanes(outcome.buffers[2], shape.size) - wanted) <= bound).all()


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("ocp fp8", {0x7E: 448.0, 0x01: 2.0**-9, 0x38: 1.0, 0xB8: -1.0, 0x08: 2.0**-6}),
        ("ocp bf8", {0x7B: 57344.0, 0x01: 2.0**-16, 0x3C: 1.0, 0xFC: -np.inf}),
        ("fnuz fp8", {0x7F: 240.0, 0x01: 2.0**-10, 0x40: 1.0, 0xC0: -1.0}),
        ("fnuz bf8", {0x7F: 57344.0, 0x01: 2.0**-17, 0x40: 1.0}),
    ],
)
def test_eight_bit_floats_have_the_values_of_their_specification(kind: str, values: dict[int, float]) -> None:
    table = TABLES[kind]
    assert {code: float(table[code]) for code in values} == values
    nans = set(np.flatnonzero(np.isnan(table)).tolist())
    assert nans == {"ocp fp8": {0x7F, 0xFF}, "ocp bf8": {0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF}}.get(kind, {0x80})


def test_a_literal_can_be_added() -> None:
    source = (
        "KERNEL(const vec<f16, 8>* a, vec<float, 4>* o) { auto x = a[ID]; vec<float, 4> c; "
        'asm volatile("v_mfma_f32_16x16x32_f16 %0, %1, %1, 1.0\\n\\ts_nop 15" : "=v"(c) : "v"(x)); o[ID] = c; }'
    )
    raw, values = matrix("f16", 16, 32)
    outcome = run_kernel(
        program(source, "gfx950"), args=[in_lanes(raw, 16, 32), np.zeros((64, 4), np.float32)], block=(64, 1, 1)
    )
    assert outcome.findings == ()
    np.testing.assert_allclose(from_lanes(outcome.buffers[1], 16), values @ values.T + 1, rtol=1e-5, atol=1e-5)
