"""Memory as -O3 uses it: atomics, private arrays, generic pointers and buffers, against NumPy, in several orders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from rota.isa.launch.interleaving import LATEST, draw_order
from rota.isa.launch.run import run_kernel
from rota.isa.wave.operand import SHARED_BASE
from tests.isa.sources import program

N = 256
RNG = np.random.default_rng(11)
KEYS = RNG.integers(0, 32, N).astype(np.uint32)
WHOLE = RNG.integers(0, 2**32, N, dtype=np.uint32)
EIGHTHS = (RNG.integers(-99, 99, N) / 8).astype(np.float32)  # sums of them are exact
ADD = "__hip_atomic_fetch_add(&{0}, {1}, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_{2})"
LOOP = '_Pragma("clang loop unroll(disable)") '
RESOURCE = "__builtin_amdgcn_make_buffer_rsrc((void*){}, {}, {}, 0x27000)"


def chained(values: np.ndarray) -> np.ndarray:
    """A walk through a table of 128 that each work-item keeps for itself."""
    out = []
    for item, value in enumerate(values.tolist()):
        table = [((value >> place % 32) * 3 + item) % 2**32 for place in range(128)]
        at = value % 128
        for _ in range(7):
            table[at] = (table[at] * 5 + 1) % 2**32
            at = table[at] >> 7 & 127
        out.append(sum(table) % 2**32)
    return np.array(out, np.uint32)


class Case(NamedTuple):
    source: str
    inputs: tuple[Any, ...]
    out: np.ndarray
    expected: Callable[[], np.ndarray]
    uses: str  # an instruction that it is about


def summed(kind: type) -> np.ndarray:
    out: np.ndarray = np.zeros(32, kind)
    np.add.at(out, KEYS, EIGHTHS.astype(kind))
    return out


CASES = {
    "histogram in LDS": Case(
        "KERNEL(const u32* a, u32* o) { SHARED u32 s[32]; if (ID < 32) s[ID] = 0; SYNC "
        + ADD.format("s[a[ID]]", "1u", "WORKGROUP") + "; SYNC if (ID < 32) o[ID] = s[ID]; }",
        (KEYS,), np.zeros(32, np.uint32), lambda: np.bincount(KEYS, minlength=32).astype(np.uint32), "ds_add_u32"),
    "float sums in LDS": Case(
        "KERNEL(const u32* a, const float* b, float* o) { SHARED float s[32]; if (ID < 32) s[ID] = 0; SYNC "
        "__builtin_amdgcn_ds_faddf((LDS float*)&s[a[ID]], b[ID], 0, 0, false); SYNC if (ID < 32) o[ID] = s[ID]; }",
        (KEYS, EIGHTHS), np.zeros(32, np.float32), lambda: summed(np.float32), "ds_add_f32"),
    "tickets in LDS": Case(
        "KERNEL(const u32* a, u32* o) { SHARED u32 s; if (ID == 0) s = 0; SYNC u32 t = "
        + ADD.format("s", "1u", "WORKGROUP") + "; o[t] = a[0] + t; }",
        (WHOLE,), np.zeros(N, np.uint32), lambda: WHOLE[0] + np.arange(N, dtype=np.uint32), "ds_add_rtn_u32"),
    "64 bits in LDS": Case(
        "KERNEL(const u32* a, u64* o) { SHARED u64 s[4]; if (ID < 4) s[ID] = 0; SYNC "
         "__hip_atomic_fetch_max(&s[a[ID] % 4], (u64)a[ID] << 20, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);"
        "SYNC if (ID < 4) o[ID] = s[ID]; }",
        (WHOLE,), np.zeros(4, np.uint64),
        lambda: np.array([int(WHOLE[k == WHOLE % 4].max()) << 20 for k in range(4)], np.uint64), "ds_max_u64"),
    "bytes of LDS": Case(
        "KERNEL(const u32* a, u32* o) { SHARED u8 s[1024]; for (int j = 0; j < 4; j++) s[ID * 4 + j] = a[ID] >> 8 * j; "
        "SYNC u32 x = 0; for (int j = 0; j < 4; j++) x = x * 7 + s[(ID * 5 + j * 3 + 1) % 1024]; o[ID] = x; }",
        (WHOLE,), np.zeros(N, np.uint32),
        lambda: np.array([
            sum(int(WHOLE.view(np.uint8)[(i * 5 + j * 3 + 1) % 1024]) * 7 ** (3 - j) for j in range(4))
            for i in range(N)], np.uint32), "ds_read_u8"),
    "histogram in memory": Case(
        "KERNEL(const u32* a, u32* o) { " + ADD.format("o[a[ID]]", "1u", "AGENT") + "; }",
        (KEYS,), np.zeros(32, np.uint32), lambda: np.bincount(KEYS, minlength=32).astype(np.uint32),
        "global_atomic_add"),
    "a lock-free maximum": Case(
        "KERNEL(const u32* a, u32* o) { u32 x = a[ID], old = __hip_atomic_load(o, __ATOMIC_RELAXED, "
        "__HIP_MEMORY_SCOPE_AGENT);"
        "while (old < x && !__hip_atomic_compare_exchange_weak(o, &old, x, __ATOMIC_RELAXED, __ATOMIC_RELAXED, "
        "__HIP_MEMORY_SCOPE_AGENT)); }",
        (WHOLE,), np.zeros(1, np.uint32), lambda: WHOLE.max(keepdims=True), "global_atomic_cmpswap"),
    "doubles in memory": Case(
        "KERNEL(const u32* a, const double* b, double* o) { "
        "__builtin_amdgcn_global_atomic_fadd_f64((__attribute__((address_space(1))) double*)&o[a[ID]], b[ID]); }",
        (KEYS, EIGHTHS.astype(np.float64)), np.zeros(32, np.float64), lambda: summed(np.float64),
        "global_atomic_add_f64"),
    "private arrays": Case(
        "KERNEL(const u32* a, u32* o) { u32 t[128]; u32 x = a[ID]; " + LOOP + "for (int j = 0; j < 128; j++) "
        "t[j] = (x >> j % 32) * 3 + ID; " + LOOP + "for (int n = 0, at = x % 128; n < 7; n++) "
        "{ t[at] = t[at] * 5 + 1; at = t[at] >> 7 & 127; } "
        "u32 y = 0; " + LOOP + "for (int j = 0; j < 128; j++) y += t[j]; o[ID] = y; }",
        (WHOLE,), np.zeros(N, np.uint32), lambda: chained(WHOLE), "scratch_"),
    "generic pointers": Case(
        "KERNEL(u32* a, u32* o) { SHARED u32 s[256]; s[ID] = ID * 3; SYNC "
        f"u64 p = ID % 2 ? (u64)(a + ID) : {SHARED_BASE:#x}ull + (u32)(u64)(LDS u32*)&s[255 - ID]; "
        'u32* q = (u32*)p; asm volatile("" : "+v"(q)); o[ID] = *q + 1; }',
        (WHOLE,), np.zeros(N, np.uint32),
        lambda: np.where(np.arange(N) % 2, WHOLE, (255 - np.arange(N)) * 3).astype(np.uint32) + np.uint32(1),
        "flat_load_dword"),
    "buffers with an end": Case(
        f"KERNEL(u32* a, u32* o) {{ auto r = {RESOURCE.format('a', 0, 400)}; "
        f"auto w = {RESOURCE.format('o', 0, 600)};"
        "u32 x = __builtin_amdgcn_raw_buffer_load_b32(r, ID * 4, 8, 0); "
        "__builtin_amdgcn_raw_buffer_store_b32(x + 1, w, ID * 4, 0, 0); }",
        (WHOLE,), np.full(N, 5, np.uint32),
        lambda: np.array([
            ((int(WHOLE[i + 2]) if (i + 2) * 4 < 400 else 0) + 1) % 2**32 if i * 4 < 600 else 5 for i in range(N)],
            np.uint32), "buffer_load_dword"),
}  # fmt: skip


@pytest.mark.thorough  # compiles, or starts commands
@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize("name", CASES)
def test_memory_as_compilers_use_it(name: str, arch: str) -> None:
    case = CASES[name]
    kernel = program(case.source, arch)
    assert any(step.instruction.opcode.startswith(case.uses) for step in kernel.steps)
    for order in (LATEST, draw_order(3)):
        outcome = run_kernel(kernel, args=[*case.inputs, case.out], block=(N, 1, 1), interleaving=order)
        assert outcome.findings == (), order.label
        assert outcome.buffers[-1].tolist() == case.expected().tolist(), order.label
