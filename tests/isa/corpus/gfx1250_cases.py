"""Launches of the kernels for gfx1250: takes a code object's name, gives its `Problem`, as its index describes it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.isa.corpus.problem import Expected, Floats, Problem, to_bf16, whole
from tests.isa.corpus.triton_cases import CASES, SCRATCH, Random, flash, matmul

FOLDER = "kernels/gfx1250"
FOLDERS = ("hip", "gluon", "triton")
LANES = 32
_MATMUL = re.compile(r"m_(?P<dtype>bf16|fp16|fp8)_(?P<m>\d+)_(?P<n>\d+)_(?P<k>\d+)_")

HARMLESS = {
    "h_wmma_valu_hazard_bad": "spacing: checked on all paths by the proof's walk, not in a run",
    "h_wmma_result_hazard_bad": "spacing: checked on all paths by the proof's walk, not in a run",
    "h_trans_hazard_bad": "spacing: checked on all paths by the proof's walk, not in a run",
    "h_xcnt_replay_bad": "wrong only where accesses are replayed after a page fault",
    "h_storecnt_flag_bad": "stores of global memory land at once here",
}
"""Wrong kernels that a run may find nothing in, and why."""
UNKNOWN = frozenset({f"h_cluster_{name}_{kind}" for name in ("exchange", "multicast") for kind in ("ok", "bad")})
"""Kernels of clusters, which are refused."""


def problem_of(path: Path, steps: int = 4) -> Problem:
    """The launch of a code object; rings of tiles go through so many `steps`."""
    stem = path.name.split(".", maxsplit=1)[0]
    rng = np.random.default_rng(len(stem))
    if path.parent.name == "hip":
        return _HIP[re.sub(r"_(?:ok|bad)$", "", stem)](rng, steps)
    told = json.loads(path.with_suffix(".json").read_text())
    problem = _gluon(stem, rng, steps) if path.parent.name == "gluon" else _triton(stem, rng)
    warps = 8 if stem.startswith("g_ws") else told["num_warps"]
    return replace(problem, args=[*problem.args, *SCRATCH], block=LANES * warps, dynamic_lds=told["shared"])


def _triton(stem: str, rng: Random) -> Problem:
    if (found := _MATMUL.match(stem)) is not None:
        dtype = {"fp8": "fp8e4nv"}.get(found["dtype"], found["dtype"])
        return matmul(rng, dtype, (int(found["m"]), int(found["n"]), int(found["k"])))
    if stem.startswith("t_flash"):
        return flash(rng, causal=stem.endswith("causal"), size=(128, 64), half="fp16" in stem)
    return CASES["t_vadd" if stem == "t_vadd_ragged" else stem](rng)


def _ints(rng: Random, *shape: int) -> NDArray[np.int32]:
    return rng.integers(-1000, 1000, shape).astype(np.int32)


def _empty(*shape: int) -> NDArray[np.int32]:
    return np.full(shape, -77777, np.int32)


def _due(argument: int, value: NDArray[np.generic]) -> Expected:
    return Expected(argument=argument, value=value.astype(np.float64))


def _reduce(rng: Random, _: int) -> Problem:
    x = whole(rng, 256).astype(np.float32)
    return Problem(args=[x, np.full(1, np.nan, np.float32)], expected=(_due(1, x.sum(keepdims=True)),))


def _window(rng: Random, _: int) -> Problem:
    x, i = _ints(rng, 256), np.arange(256)
    expected = _due(1, x[255 - i] + 1), _due(2, 2 * x[255 - (i ^ 32)])
    return Problem(args=[x, _empty(256), _empty(256)], expected=expected)


def _double(rng: Random, n: int) -> Problem:
    x = _ints(rng, n, 128, 4)
    return Problem(args=[x, _empty(512), n], expected=(_due(1, x[:, ::-1].sum(0).reshape(-1)),), block=128)


def _reversed(rng: Random, _: int) -> Problem:
    x = _ints(rng, 128)
    return Problem(args=[x, _empty(128)], expected=(_due(1, x[::-1]),), block=128)


def _store_war(rng: Random, _: int) -> Problem:
    x = _ints(rng, 128)
    return Problem(args=[x, _empty(128), _empty(128)], expected=(_due(1, x + 7), _due(2, 3 * x[::-1])), block=128)


def _dscnt(rng: Random, _: int) -> Problem:
    x = _ints(rng, 128)
    return Problem(args=[x, _empty(64)], expected=(_due(1, x[:64][::-1] + x[64:][::-1]),), block=64)


def _kmcnt(rng: Random, _: int) -> Problem:
    p = _ints(rng, 65)
    return Problem(args=[p, _empty(64)], expected=(_due(1, 3 * p[0] * np.arange(64) + p[64]),), block=64)


def _flag(_: Random, __: int) -> Problem:
    due = 5 * (31 - np.arange(32)) + 1
    return Problem(args=[_empty(32), _empty(32)], expected=(_due(1, due),), block=64)


def _named_pair(rng: Random, _: int) -> Problem:
    x = _ints(rng, 32)
    return Problem(args=[x, _empty(32)], expected=(_due(1, 2 * x[::-1]),), block=128)


def _named_ring(rng: Random, n: int) -> Problem:
    x = _ints(rng, n, 32)
    return Problem(args=[x, _empty(32), n], expected=(_due(1, x[:, ::-1].sum(0)),), block=64)


def _mbarrier_async(rng: Random, _: int) -> Problem:
    x = _ints(rng, 32)
    return Problem(args=[x, _empty(32)], expected=(_due(1, x[::-1] + 1),), block=64)


def _mbarrier_count(rng: Random, _: int) -> Problem:
    x = _ints(rng, 64)
    return Problem(args=[x, _empty(32)], expected=(_due(1, x[:32][::-1] + x[32:][::-1]),), block=96)


def _transposed(rng: Random, _: int) -> Problem:
    x = rng.integers(0, 30000, (32, 8)).astype(np.int16)
    lane, element = np.arange(32)[:, None], np.arange(8)[None]
    due = x[element + 8 * (lane >> 3), lane & 7]
    return Problem(args=[x, np.full((32, 8), -1, np.int16)], expected=(_due(1, due),), block=64)


def _by_lane(matrix: Floats) -> NDArray[np.float16]:
    """A factor of 16 rows by 32, as lanes hold it."""
    lane, e = np.arange(LANES)[:, None], np.arange(16)[None]
    held: NDArray[np.float16] = matrix[lane & 15, (e & 7) + 8 * (lane >> 4) + 16 * (e >> 3)].astype(np.float16)
    return held


def _sums_by_lane(matrix: Floats) -> Floats:
    lane, r = np.arange(LANES)[:, None], np.arange(8)[None]
    held: Floats = matrix[r + 8 * (lane >> 4), lane & 15]
    return held


def _products(rng: Random, n: int) -> Problem:
    a, b = whole(rng, n, 16, 32), whole(rng, n, 16, 32)
    due = sum((x @ y.T for x, y in zip(a, b, strict=True)), np.zeros((16, 16)))
    lanes = [np.stack([_by_lane(each) for each in factors]) for factors in (a, b)]
    out = np.full((LANES, 8), np.nan, np.float32)
    return Problem(args=[*lanes, out, n], expected=(_due(2, _sums_by_lane(due)),), block=64)


def _hazard(rng: Random, *, adds: bool) -> Problem:
    a, b = whole(rng, 16, 32), whole(rng, 16, 32)
    due = _sums_by_lane(a @ b.T)
    args = [_by_lane(a), _by_lane(b), np.full((LANES, 8), np.nan, np.float32)]
    if adds:
        due[:, 0] += 1
        return Problem(args=args, expected=(_due(2, due),), block=32)
    return Problem(args=[*args, _empty(32)], expected=(_due(2, due), _due(3, np.full(32, 42))), block=32)


def _powers(rng: Random, _: int) -> Problem:
    x = whole(rng, 32).astype(np.float32)
    args = [x, np.full(32, np.nan, np.float32), _empty(32)]
    return Problem(args=args, expected=(_due(1, 2.0 ** x.astype(np.float64)), _due(2, np.full(32, 7))), block=32)


def _tdm_pair(rng: Random, _: int) -> Problem:
    x = _ints(rng, 16, 80)
    expected = _due(1, x[:, :32].reshape(-1)), _due(2, x[:, 32:64].reshape(-1))
    return Problem(args=[x, _empty(512), _empty(512), 80], expected=expected, block=32)


def _tdm_store(_: Random, __: int) -> Problem:
    due = (100 * np.arange(4)[:, None] + np.arange(32)).reshape(-1)
    return Problem(args=[_empty(128), _empty(32)], expected=(_due(0, due), _due(1, np.arange(32) - 32)), block=32)


def _drain(rng: Random, n: int) -> Problem:
    x = _ints(rng, n, 128)
    return Problem(args=[x, _empty(128), n], expected=(_due(1, x[:, ::-1].sum(0)),), block=128)


def _tdm_ring(rng: Random, n: int) -> Problem:
    x = _ints(rng, n, 128)
    return Problem(args=[x, _empty(128), n], expected=(_due(1, x.sum(0)),), block=64)


def _replay(_: Random, __: int) -> Problem:
    due = np.concatenate([np.arange(32), np.zeros(32, np.int64)])
    return Problem(args=[_empty(64)], expected=(_due(0, due),), block=32)


def _wide(_: Random, __: int) -> Problem:
    return Problem(args=[_empty(32)], expected=(_due(0, np.arange(32) + 1000),), block=32)


_HIP: dict[str, Callable[[Random, int], Problem]] = {
    "h_reduce_split": _reduce, "h_split_window": _window, "h_async_double": _double, "h_async_missing_wait": _reversed,
    "h_async_store_war": _store_war, "h_dscnt_missing": _dscnt, "h_kmcnt_order": _kmcnt, "h_storecnt_flag": _flag,
    "h_named_pair": _named_pair, "h_named_ring": _named_ring, "h_mbarrier_async": _mbarrier_async,
    "h_mbarrier_count": _mbarrier_count, "h_load_tr": _transposed, "h_wmma_gemm": _products,
    "h_wmma_valu_hazard": lambda rng, _: _hazard(rng, adds=False),
    "h_wmma_result_hazard": lambda rng, _: _hazard(rng, adds=True), "h_trans_hazard": _powers,
    "h_tdm_pair": _tdm_pair, "h_tdm_store_reuse": _tdm_store, "h_async_read_drain": _drain, "h_tdm_ring": _tdm_ring,
    "h_xcnt_replay": _replay, "a_wide_registers": _wide,
}  # fmt: skip


def _gluon(stem: str, rng: Random, steps: int) -> Problem:
    name = re.sub(r"_(?:ok|bad.*)$", "", stem)
    if name.startswith("g_tdm_gemm"):
        return _tdm_gemm(rng, steps)
    if name.startswith("g_mx"):
        return _scaled(rng, small=name.endswith("e2m1"))
    return _GLUON[name](rng, steps)


def _tdm_gemm(rng: Random, steps: int) -> Problem:
    a, b = whole(rng, 64, 32 * steps), whole(rng, 32 * steps, 64)
    out = np.full((64, 64), np.nan, np.float32)
    args = [a.astype(np.float16), b.astype(np.float16), out, 64, 64, 32 * steps]
    return Problem(args=args, expected=(_due(2, a @ b),))


def _async_gemm(rng: Random, steps: int) -> Problem:
    k = 64 * max(steps, 2)
    a, b = whole(rng, 64, k), whole(rng, 64, k)
    out = np.full((64, 64), np.nan, np.float32)
    return Problem(args=[to_bf16(a), to_bf16(b), out, 64, k], expected=(_due(2, a @ b.T),))


def _copied(rng: Random, _: int) -> Problem:
    x = rng.standard_normal(1024).astype(np.float32)
    return Problem(args=[x, np.full(1024, np.nan, np.float32)], expected=(_due(1, x),))


def _stored_twice(_: Random, __: int) -> Problem:
    due = np.repeat([5.0, 6.0], 1024)
    return Problem(args=[np.full(2048, np.nan, np.float32)], expected=(_due(0, due),))


def _tile_copied(rng: Random, _: int) -> Problem:
    x = rng.standard_normal((64, 64)).astype(np.float16)
    return Problem(args=[x, np.full((64, 64), np.nan, np.float16)], expected=(_due(1, x),))


def _two_stored(_: Random, __: int) -> Problem:
    y, z = np.full((64, 32), np.nan, np.float32), np.full((32, 32), np.nan, np.float32)
    return Problem(
        args=[y, z], expected=(_due(0, np.repeat([1.0, 2.0], 1024).reshape(64, 32)), _due(1, np.full((32, 32), 3.0)))
    )


def _two_loaded(rng: Random, _: int) -> Problem:
    x = whole(rng, 64, 64).astype(np.float16)
    return Problem(args=[x, np.full((32, 64), np.nan, np.float16)], expected=(_due(1, x[:32] + x[32:]),))


def _ring(rng: Random, n: int) -> Problem:
    x = whole(rng, n, 256).astype(np.float32)
    return Problem(args=[x, np.full(256, np.nan, np.float32), n], expected=(_due(1, x.sum(0)),))


def _scaled(rng: Random, *, small: bool) -> Problem:
    """Blocks of 32 share a power of two; two codes of 4 bits in a byte, the lower one first."""
    steps = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    values = np.concatenate([steps, -steps])
    factors = []
    for _ in range(2):
        codes, scale = rng.integers(0, 16, (32, 256)), rng.integers(126, 129, (32, 8))
        plain = values[codes]
        stored = (codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8) if small else _f8(plain)
        factors.append((stored, scale.astype(np.uint8), plain * np.repeat(2.0 ** (scale - 127), 32, axis=1)))
    (a, a_scale, left), (b, b_scale, right) = factors
    out = np.full((32, 32), np.nan, np.float32)
    return Problem(args=[a, a_scale, b, b_scale, out], expected=(_due(4, left @ right.T),))


def _f8(values: Floats) -> NDArray[np.uint8]:
    """OCP's E4M3 of numbers with at most 4 significant bits from 2^-6 on."""
    mantissa, exponent = np.frexp(np.abs(values))
    code = np.where(values == 0, 0, exponent - 1 + 7 << 3 | (mantissa * 16).astype(np.int64) & 7)
    return np.where(np.signbit(values), code | 0x80, code).astype(np.uint8)


_GLUON: dict[str, Callable[[Random, int], Problem]] = {
    "g_async_gemm": _async_gemm, "g_async_mbarrier": _copied, "g_async_store_reuse": _stored_twice,
    "g_tdm_mbarrier": _tile_copied, "g_tdm_store_two": _two_stored, "g_tdm_two_loads": _two_loaded, "g_ws_ring": _ring,
}  # fmt: skip
