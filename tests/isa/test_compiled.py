"""Plain kernels as -O3 compiles them give what NumPy gives: addressing, conversions, divergence, LDS, bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from rota.isa.launch.interleaving import LATEST, draw_order
from rota.isa.launch.run import run_kernel
from tests.isa.sources import program

N = 256
RNG = np.random.default_rng(7)
WHOLE = RNG.integers(-(2**31), 2**31, N).astype(np.int32)
SMALL = RNG.integers(0, 12, N).astype(np.int32)
REAL = (RNG.standard_normal(N) * 100).astype(np.float32)
QUADS = (RNG.standard_normal((N, 4)) * 100).astype(np.float32)
LONG = RNG.integers(-(2**62), 2**62, N)
SHARED = "SHARED {0} s[{1}]; int i = ID; s[{2}] = a[i]; SYNC o[i] = s[{3}];"


def bf16(values: np.ndarray) -> np.ndarray:
    """Rounded to nearest even: the nearer of the two neighbours, computed on the value and not on its bits."""
    down = (values.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    up = ((values.view(np.uint32) & np.uint32(0xFFFF0000)) + np.uint32(0x10000)).view(np.float32)
    below, above = np.abs(values.astype(float) - down), np.abs(up.astype(float) - values)
    even = (down.view(np.uint32) >> np.uint32(16)) % 2 == 0
    chosen = np.where((below < above) | ((below == above) & even), down, up)
    return (chosen.view(np.uint32) >> np.uint32(16)).astype(np.uint16)


def diverged(values: np.ndarray, n: int) -> np.ndarray:
    out = []
    for value in values.tolist():
        total = n
        for step in range(value) if value > 3 else ():
            total = (total * 3 + step) % 2**32
        out.append(total if value > 3 else -n % 2**32)
    return np.array(out, np.uint32)


def c_division(values: np.ndarray, n: int) -> np.ndarray:
    return np.array([int(v / n) if abs(v) < 2**50 else 0 for v in values.tolist()], np.int32)


class Case(NamedTuple):
    source: str
    inputs: tuple[Any, ...]
    out: np.ndarray
    expected: Callable[[], np.ndarray]


CASES = {
    "store bf16": Case(
        "KERNEL(const float* a, bf16* o) { o[ID] = (bf16)a[ID]; }",
        (REAL,), np.zeros(N, np.uint16), lambda: bf16(REAL)),
    "store four bf16": Case(
        "KERNEL(const vec<float, 4>* a, vec<bf16, 4>* o) { auto x = a[ID]; "
        "o[ID] = vec<bf16, 4>{(bf16)x[0], (bf16)x[1], (bf16)x[2], (bf16)x[3]}; }",
        (QUADS,), np.zeros((N, 4), np.uint16), lambda: bf16(QUADS)),
    "store four f16 of a product": Case(
        "KERNEL(const vec<float, 4>* a, vec<f16, 4>* o, float s) { auto x = a[ID] * s; "
        "o[ID] = vec<f16, 4>{(f16)x[0], (f16)x[1], (f16)x[2], (f16)x[3]}; }",
        (QUADS, 0.25), np.zeros((N, 4), np.float16), lambda: (QUADS * np.float32(0.25)).astype(np.float16)),
    "load bf16": Case(
        "KERNEL(const bf16* a, float* o) { o[ID] = (float)a[ID]; }",
        (bf16(REAL),), np.zeros(N, np.float32), lambda: (bf16(REAL).astype(np.uint32) << 16).view(np.float32)),
    "load f16 in some lanes": Case(
        "KERNEL(const f16* a, float* o, int n) { if (ID < n) o[ID] = (float)a[ID] * 2.0f; }",
        (REAL.astype(np.float16), 100), np.full(N, -1, np.float32),
        lambda: np.where(np.arange(N) < 100, REAL.astype(np.float16).astype(np.float32) * 2, np.float32(-1))),
    "loops of different lengths": Case(
        "KERNEL(const int* a, u32* o, u32 n) { int x = a[ID]; "
        "if (x > 3) { for (int j = 0; j < x; j++) n = n * 3 + j; } else n = -n; o[ID] = n; }",
        (SMALL, 5), np.zeros(N, np.uint32), lambda: diverged(SMALL, 5)),
    "division": Case(
        "KERNEL(const int* a, int* o, int n) { o[ID] = a[ID] / n; }",
        (WHOLE, 77), np.zeros(N, np.int32), lambda: c_division(WHOLE, 77)),
    "alpha, beta": Case(
        "KERNEL(const vec<float, 4>* a, vec<float, 4>* o, float s, float t) { o[ID] = a[ID] * s + o[ID] * t; }",
        (QUADS, None, 0.5, 2.0), np.ones((N, 4), np.float32), lambda: QUADS * np.float32(0.5) + np.float32(2)),
    "exponential": Case(
        "KERNEL(const float* a, float* o) { o[ID] = __builtin_amdgcn_exp2f(__builtin_fabsf(a[ID]) * -0.125f); }",
        (REAL,), np.zeros(N, np.float32), lambda: np.exp2(np.abs(REAL) * np.float32(-0.125))),
    "64 bits": Case(
        "KERNEL(const long* a, long* o, long s) { o[ID] = a[ID] * s + (a[ID] >> 3) - (a[ID] << 5); }",
        (LONG, 123456789123), np.zeros(N, np.int64), lambda: LONG * np.int64(123456789123) + (LONG >> 3) - (LONG << 5)),
    "bytes": Case(
        "KERNEL(const u8* a, u8* o, int s) { o[ID] = a[ID] + s; }",
        (WHOLE.astype(np.uint8), 200), np.zeros(N, np.uint8), lambda: (WHOLE.astype(np.uint8) + 200).astype(np.uint8)),
    "signed bytes": Case(
        "KERNEL(const signed char* a, int* o) { o[ID] = a[ID] * 3; }",
        (WHOLE.astype(np.int8),), np.zeros(N, np.int32), lambda: WHOLE.astype(np.int8).astype(np.int32) * 3),
    "clamped": Case(
        "KERNEL(const int* a, int* o, int s) { int x = a[ID]; o[ID] = x < s ? (x > -s ? x : -s) : s; }",
        (WHOLE, 2**29), np.zeros(N, np.int32), lambda: np.clip(WHOLE, -(2**29), 2**29)),
    "bits": Case(
        "KERNEL(const u32* a, u32* o) { u32 x = a[ID]; "
        "o[ID] = (((x >> 5) & 31) | ((x << 3) & 0xff00)) + __builtin_popcount(x) + __builtin_bitreverse32(x); }",
        (WHOLE.view(np.uint32),), np.zeros(N, np.uint32),
        lambda: np.array([
            ((x >> 5 & 31 | x << 3 & 0xFF00) + x.bit_count() + int(f"{x:032b}"[::-1], 2)) % 2**32
            for x in WHOLE.view(np.uint32).tolist()], np.uint32)),
    "logic of three": Case(
        "KERNEL(const u32* a, u32* o, u32 s) { u32 x = a[ID], y = x * 7; o[ID] = ((x & s) ^ y) + ((x | y) ^ ID); }",
        (WHOLE.view(np.uint32), 0x12345678), np.zeros(N, np.uint32),
        lambda: np.array([
            (((x & 0x12345678) ^ (x * 7 % 2**32)) + ((x | (x * 7 % 2**32)) ^ i)) % 2**32
            for i, x in enumerate(WHOLE.view(np.uint32).tolist())], np.uint32)),
    "through LDS": Case(
        "KERNEL(const vec<float, 4>* a, vec<float, 4>* o) {" + SHARED.format("vec<float, 4>", N, "i", "255 - i") + "}",
        (QUADS,), np.zeros((N, 4), np.float32), lambda: QUADS[::-1]),
    "halves through LDS": Case(
        "KERNEL(const u16* a, u16* o) {" + SHARED.format("u16", N, "i", "255 - i") + "}",
        (WHOLE.astype(np.uint16),), np.zeros(N, np.uint16), lambda: WHOLE.astype(np.uint16)[::-1]),
    "transposed in LDS": Case(
        "KERNEL(const float* a, float* o) {"
        + SHARED.format("float", 16 * 17, "(i & 15) * 17 + (i >> 4)", "(i >> 4) * 17 + (i & 15)") + "}",
        (REAL,), np.zeros(N, np.float32), lambda: REAL.reshape(16, 16).T.ravel()),
    "sum over lanes": Case(
        "KERNEL(const float* a, float* o) { int i = ID; float x = a[i]; for (int d = 32; d; d >>= 1) x += "
        "__builtin_bit_cast(float, __builtin_amdgcn_ds_bpermute((i ^ d) * 4, __builtin_bit_cast(int, x))); o[i] = x; }",
        (SMALL.astype(np.float32),), np.zeros(N, np.float32),
        lambda: np.repeat(SMALL.reshape(4, 64).sum(axis=1), 64).astype(np.float32)),
    "buffer ends early": Case(
        "KERNEL(vec<u32, 4>* a, vec<u32, 4>* o) { auto in = __builtin_amdgcn_make_buffer_rsrc(a, 0, 1000, 0x27000); "
        "auto out = __builtin_amdgcn_make_buffer_rsrc(o, 0, 2000, 0x27000); "
        "auto x = __builtin_amdgcn_raw_buffer_load_b128(in, ID * 16, 0, 0); "
        "__builtin_amdgcn_raw_buffer_store_b128(x, out, ID * 16, 0, 0); }",
        (QUADS,), np.full(N * 4, -1, np.float32),
        lambda: np.concatenate([QUADS.ravel()[:250], np.zeros(250), np.full(524, -1)]).astype(np.float32)),
}  # fmt: skip


@pytest.mark.thorough  # compiles, or starts commands
@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize("name", CASES)
def test_a_compiled_kernel_gives_what_numpy_gives(name: str, arch: str) -> None:
    case = CASES[name]
    first, *rest = case.inputs
    numbers = [value for value in rest if value is not None]
    for interleaving in (LATEST, draw_order(3)):
        outcome = run_kernel(
            program(case.source, arch), args=[first, case.out, *numbers], block=(N, 1, 1), interleaving=interleaving
        )
        assert outcome.findings == ()
        if case.expected().dtype == np.float32:
            np.testing.assert_allclose(outcome.buffers[1], case.expected(), rtol=3e-7)
        else:
            np.testing.assert_array_equal(outcome.buffers[1], case.expected())
        np.testing.assert_array_equal(outcome.buffers[0], first)


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_work_items_and_workgroups_are_numbered_in_three_directions(arch: str) -> None:
    source = """KERNEL(int* o) {
      int x = ID, y = __builtin_amdgcn_workitem_id_y(), z = __builtin_amdgcn_workitem_id_z();
      int gx = __builtin_amdgcn_workgroup_id_x(), gy = __builtin_amdgcn_workgroup_id_y();
      int gz = __builtin_amdgcn_workgroup_id_z();
      int workgroup = gx + 10 * gy + 100 * gz;
      o[((((gz * 3 + gy) * 2 + gx) * 2 + z) * 4 + y) * 16 + x] = x + 100 * y + 1000 * z + 10000 * workgroup;
    }"""
    outcome = run_kernel(
        program(source, arch), args=[np.full((2, 3, 2, 2, 4, 16), -1, np.int32)], grid=(2, 3, 2), block=(16, 4, 2)
    )
    gz, gy, gx, z, y, x = np.indices((2, 3, 2, 2, 4, 16))
    np.testing.assert_array_equal(outcome.buffers[0], x + 100 * y + 1000 * z + 10000 * (gx + 10 * gy + 100 * gz))
    assert outcome.findings == ()


def test_a_last_wave_that_is_not_full_leaves_its_other_lanes_alone() -> None:
    source = "KERNEL(int* o) { o[ID] = ID; }"
    outcome = run_kernel(program(source, "gfx950"), args=[np.full(128, -1, np.int32)], block=(100, 1, 1))
    np.testing.assert_array_equal(outcome.buffers[0], np.where(np.arange(128) < 100, np.arange(128), -1))
    assert outcome.findings == ()


def test_hidden_arguments_hold_the_sizes_of_the_launch() -> None:
    source = "KERNEL(u32* o) { o[__builtin_amdgcn_workgroup_id_x()] = __builtin_amdgcn_workgroup_size_x(); }"
    outcome = run_kernel(program(source, "gfx942"), args=[np.zeros(3, np.uint32)], grid=(3, 1, 1), block=(192, 1, 1))
    assert outcome.buffers[0].tolist() == [192, 192, 192]
