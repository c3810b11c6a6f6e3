"""Launches of what clang compiled from HIP: takes a kernel's file name, gives its `Problem`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tests.isa.corpus.problem import HALF_ULP, Expected, Problem, whole

Random = np.random.Generator


def hip_problem(name: str, rng: Random) -> Problem:
    """The launch of a kernel h_*; workgroups of 256."""
    return _CASES[name](rng)


def race_problem(name: str) -> Problem:
    """The launch of one of the small kernels with and without a fault: `y` alone, in workgroups of 256."""
    ids = np.arange(256.0)
    known = {
        "raw_sync_ok": ids[::-1], "u16_ok": ids[::-1], "war_ok": ids[::-1],
        "reduce_own": np.full(256, ids.sum()), "same_value_war": np.zeros(256),
        "global_raw_barrier_nowait": np.concatenate([ids, ids[::-1]]),
    }  # fmt: skip
    size = 512 if name.startswith("global_raw") else 256
    expected = (Expected(argument=0, value=known[name]),) if name in known else ()
    plain = Problem(args=[np.full(size, -1, np.int32)], expected=expected)
    return replace(plain, grid=(2,)) if name == "global_ww_workgroups" else plain


def _dynlds(rng: Random) -> Problem:
    """Sixteen values for each work-item in registers, one in dynamic LDS, a call; whole numbers are exact."""
    x, k, item = whole(rng, 16, 256), 5, np.arange(256)
    shared = x[(item * 7 + k) & 15, item]
    due = (shared[::-1] + x[k & 15]) * k + 1
    return Problem(
        args=[x.astype(np.float32), np.full(256, np.nan, np.float32), k],
        expected=(Expected(argument=1, value=due),),
        dynamic_lds=1024,
    )


def _histogram(rng: Random) -> Problem:
    x = rng.integers(0, 256, 4000).astype(np.uint8)
    due = np.bincount(x, minlength=256).astype(np.float64)
    return Problem(args=[x, np.zeros(256, np.uint32), 4000], expected=(Expected(argument=1, value=due),), grid=(4,))


def _reduction(rng: Random) -> Problem:
    n = 3000
    x = whole(rng, n)
    due = np.array([sum(x[start : start + 256].sum() for start in range(256 * g, n, 1024)) for g in range(4)])
    out = np.full(4, np.nan, np.float32)
    return Problem(args=[x.astype(np.float32), out, n], expected=(Expected(argument=1, value=due),), grid=(4,))


def _scan(rng: Random) -> Problem:
    n = 500
    x = rng.integers(-9, 10, n).astype(np.int32)
    due = np.concatenate([np.cumsum(x[:256]), np.cumsum(x[256:])]).astype(np.float64)
    return Problem(args=[x, np.zeros(n, np.int32), n], expected=(Expected(argument=1, value=due),), grid=(2,))


def _stencil(rng: Random) -> Problem:
    """Three products by powers of two are exact; two sums are rounded."""
    n = 1000
    x = rng.standard_normal(n).astype(np.float32)
    padded = np.pad(x.astype(np.float64), 1)
    parts = 0.25 * padded[:-2], 0.5 * padded[1:-1], 0.25 * padded[2:]
    bound = 2 * HALF_ULP["f32"] * sum(map(np.abs, parts), np.zeros(n)) * (1 + HALF_ULP["f32"])
    out = np.full(n, np.nan, np.float32)
    expected = Expected(argument=1, value=sum(parts, np.zeros(n)), bound=bound)
    return Problem(args=[x, out, n], expected=(expected,), grid=(4,))


def _transpose(rng: Random) -> Problem:
    x = rng.standard_normal((64, 96)).astype(np.float32)
    out = np.full((96, 64), np.nan, np.float32)
    expected = Expected(argument=1, value=x.T.astype(np.float64))
    return Problem(args=[x, out, 64, 96], expected=(expected,), grid=(3, 2))


def _warpreduce(rng: Random) -> Problem:
    """A division and at most 4 + 6 + 5 sums for each term, all in doubles; the reference is rounded once."""
    n, q = 1000, 7
    x = rng.standard_normal(n).astype(np.float32)
    exact = sum((x.astype(np.longdouble) / q), np.longdouble(0)) + n // q + n % q
    size = float(np.abs(x.astype(np.float64) / q).sum() + n // q + n % q)
    expected = Expected(argument=1, value=np.array([float(exact)]), bound=17 * HALF_ULP["f64"] * size)
    return Problem(args=[x, np.full(1, np.nan), n, q], expected=(expected,))


_CASES: dict[str, Callable[[Random], Problem]] = {
    "h_dynlds": _dynlds, "h_histogram": _histogram, "h_reduction": _reduction, "h_scan": _scan, "h_stencil": _stencil,
    "h_transpose": _transpose, "h_warpreduce": _warpreduce,
}  # fmt: skip
