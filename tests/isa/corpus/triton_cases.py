"""Launches of what Triton and Gluon compiled: takes a kernel's file name, gives its `Problem`.

The signatures are those of the sources; constants are gone, strides of 1 among them, and two pointers to scratch memory
stand after every kernel's own arguments.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.isa.corpus.problem import HALF_ULP, Expected, Floats, Problem, from_bf16, to_bf16, to_f8, whole

SCRATCH = (None, None)
_U32, _U16 = HALF_ULP["f32"], HALF_ULP["f16"]
_MATMUL = re.compile(r"m_(?P<m>\d+)_(?P<n>\d+)_(?P<k>\d+)_\d_\d_(?P<dtype>\w+)$")
_BIAS = {"fp8e4b8": 8, "fp8e4nv": 7}

Random = np.random.Generator


HALVES = 5  # of a tile of K, which most loops go through in three trips, the last one masked


def triton_problem(name: str, arch: str, rng: Random, *, warps: int, shared: int, halves: int = HALVES) -> Problem:
    """The launch of the kernel in a file `name.arch`; warps and LDS are what Triton says of it."""
    problem = _of(name, arch, rng, halves)
    return replace(problem, args=[*problem.args, *SCRATCH], block=64 * warps, dynamic_lds=shared)


def _of(name: str, arch: str, rng: Random, halves: int) -> Problem:
    if (found := _MATMUL.match(name)) is not None:
        return matmul(rng, found["dtype"], (int(found["m"]), int(found["n"]), int(found["k"])), halves=halves)
    if name.startswith("t_matmul"):
        return _t_matmul(name, arch, rng, halves)
    if name.startswith("ts_"):
        return _sort(rng, int(name.split("_")[1]))
    return CASES[name](rng)


def _stored(values: Floats, dtype: str) -> NDArray[Any]:
    if dtype in _BIAS:
        return to_f8(values, _BIAS[dtype])
    return to_bf16(values) if dtype == "bf16" else values.astype({"fp16": np.float16, "fp32": np.float32}[dtype])


def matmul(rng: Random, dtype: str, tile: tuple[int, int, int], tiles: int = 1, *, halves: int = HALVES) -> Problem:
    """Two and a half tiles of K, or another number; sums stay below 2^24, so that C is only rounded to its type."""
    m, n, bk = tile
    k, columns = bk * halves // 2, n * tiles
    a, b = whole(rng, m, k), whole(rng, k, columns)
    due = a @ b
    plain = {"fp32": np.float32, "fp16": np.float16}.get(dtype)  # of C; else it is bf16
    out = np.full((m, columns), 0x7FC0, np.uint16) if plain is None else np.full((m, columns), np.nan, plain)
    expected = (
        Expected(argument=2, value=due)
        if plain is not None
        else Expected(argument=2, value=from_bf16(to_bf16(due)), read=from_bf16)
    )
    return Problem(
        args=[_stored(a, dtype), _stored(b, dtype), out, m, columns, k, k, columns, columns],
        expected=(expected,),
        grid=(tiles,),
    )


def _t_matmul(name: str, arch: str, rng: Random, halves: int) -> Problem:
    if "256" in name:
        return matmul(rng, "bf16", (256, 256, 64 if arch == "gfx950" else 32), halves=halves)
    if "fp8" in name:
        return matmul(rng, "fp8e4nv" if arch == "gfx950" else "fp8e4b8", (128, 128, 128), halves=halves)
    if "fp32" in name:
        return matmul(rng, "fp32", (64, 64, 32), tiles=2, halves=halves)
    return matmul(rng, "bf16", (128, 128, 64), halves=halves)


def _ping_pong(rng: Random) -> Problem:
    """The upper left of four tiles; what other workgroups would write stays as it is."""
    a, b = whole(rng, 256, 256), whole(rng, 256, 256)
    due = np.full((256, 256), np.nan)
    due[:128, :128] = (a @ b)[:128, :128]
    out = np.full((256, 256), np.nan, np.float32)
    return Problem(args=[a.astype(np.float32), b.astype(np.float32), out], expected=(Expected(argument=2, value=due),))


def _vadd(rng: Random) -> Problem:
    x, y = (rng.standard_normal(2000).astype(np.float32) for _ in range(2))
    due = (x + y).astype(np.float64)  # one rounding: to the bit
    return Problem(
        args=[x, y, np.full(2000, np.nan, np.float32), 2000], expected=(Expected(argument=2, value=due),), grid=(2,)
    )


def _softmax(rng: Random) -> Problem:
    """exp(x - max) is off by the rounding of its argument, twice, and of v_exp; sums of 1024 are trees of depth 10."""
    x = np.zeros((3, 1008), np.float32)
    x[:, :1000] = rng.standard_normal((3, 1000))
    exact = x[:, :1000].astype(np.float64)
    power = np.exp(exact - exact.max(1, keepdims=True))
    due = np.full(x.shape, np.nan)
    due[:, :1000] = power / power.sum(1, keepdims=True)
    steepest = float((exact.max(1) - exact.min(1)).max())
    bound = due * _U32 * (2 * (3 * steepest + 2) + 10 + 4)
    out = np.full(x.shape, np.nan, np.float32)
    return Problem(args=[out, x, 1008, 1000], expected=(Expected(argument=0, value=due, bound=bound),), grid=(3,))


def _layernorm(rng: Random) -> Problem:
    """Sums of 1504 in trees of depth 12; then one rounding to fp16, whose smallest step is 2^-24."""
    rows, n, stride = 2, 1504, 2048
    x = rng.standard_normal((rows, stride)).astype(np.float16)
    w, b = (rng.standard_normal(stride).astype(np.float16) for _ in range(2))
    exact, weight, bias = (each[..., :n].astype(np.float64) for each in (x, w, b))
    mean, var = exact.mean(1, keepdims=True), exact.var(1, keepdims=True)
    rstd = 1 / np.sqrt(var + np.float64(np.float32(1e-5)))
    scaled = (exact - mean) * rstd * weight
    due = np.full(x.shape, np.nan)
    due[:, :n] = scaled + bias
    wrong_mean = 16 * _U32 * np.abs(exact).mean(1, keepdims=True)
    bound = np.zeros(x.shape)
    bound[:, :n] = np.abs(due[:, :n]) * _U16 + 2.0**-25 + 1.01 * (
        32 * _U32 * (np.abs(scaled) + np.abs(bias)) + wrong_mean * rstd * np.abs(weight)
    )  # fmt: skip
    out = np.full(x.shape, np.nan, np.float16)
    args = [x, out, w, b, np.zeros(rows, np.float32), np.zeros(rows, np.float32), stride, n, 1e-5]
    return Problem(
        args=args,
        expected=(
            Expected(argument=1, value=due, bound=bound),
            Expected(argument=4, value=mean[:, 0], bound=wrong_mean[:, 0]),
            Expected(argument=5, value=rstd[:, 0], bound=rstd[:, 0] * 32 * _U32),
        ),
        grid=(rows,),
    )


def flash(rng: Random, *, causal: bool, size: tuple[int, int] = (256, 128), half: bool = False) -> Problem:
    """P is rounded to the inputs' type before it is multiplied, and so is the result; scores are sums in fp32.

    Two programs of half the queries each, of one head.
    """
    (n, d), scale, ulp = size, 2.0**-4, HALF_ULP["f16" if half else "bf16"]
    drawn = [rng.standard_normal((n, d)) for _ in range(3)]
    q, k, v = (each.astype(np.float16).view(np.uint16) if half else to_bf16(each) for each in drawn)
    query, key, value = (each.view(np.float16).astype(np.float64) if half else from_bf16(each) for each in (q, k, v))
    score = query @ key.T * scale
    seen = np.tril(np.ones((n, n), np.bool_)) if causal else np.ones((n, n), np.bool_)
    score = np.where(seen, score, -np.inf)
    power = np.exp(score - score.max(1, keepdims=True))
    share = power / power.sum(1, keepdims=True)
    due = share @ value
    wrong_score = d * _U32 * float((np.abs(query) @ np.abs(key.T)).max()) * scale
    bound = (ulp + 2 * wrong_score + 2.0**-14) * (share @ np.abs(value)) + ulp * np.abs(due)
    out = np.full((n, d), np.nan, np.float16) if half else np.full((n, d), 0x7FC0, np.uint16)
    strides = [n * d, d] * 4
    expected = Expected(argument=4, value=due, bound=bound)
    return Problem(
        args=[q, k, v, scale, out, *strides, n],
        expected=(expected if half else replace(expected, read=from_bf16),),
        grid=(2, 1),
    )


def _hist(rng: Random) -> Problem:
    x = rng.integers(0, 64, 3000).astype(np.int32)
    due = np.bincount(x, minlength=64).astype(np.float64)
    return Problem(args=[x, np.zeros(64, np.int32), 3000], expected=(Expected(argument=1, value=due),), grid=(3,))


def _cumsum(rng: Random) -> Problem:
    x = rng.integers(0, 9, 1024).astype(np.float32)
    due = np.full(1024, np.nan)
    due[:1000] = np.cumsum(x.astype(np.float64))[:1000]
    out = np.full(1024, np.nan, np.float32)
    return Problem(args=[x, out, 1000], expected=(Expected(argument=1, value=due),))


def _sort(rng: Random, size: int) -> Problem:
    x = rng.standard_normal(size).astype(np.float32)
    due = np.sort(x).astype(np.float64)
    return Problem(args=[x, np.full(size, np.nan, np.float32)], expected=(Expected(argument=1, value=due),))


def _g_mm(rng: Random) -> Problem:
    """B is N x K here; two workgroups side by side, four K-tiles each."""
    a, b = whole(rng, 128, 256), whole(rng, 256, 256)
    out = np.full((128, 256), np.nan, np.float32)
    return Problem(
        args=[to_bf16(a), to_bf16(b), out, 256, 256], expected=(Expected(argument=2, value=a @ b.T),), grid=(2,)
    )


def _g_transpose(rng: Random) -> Problem:
    x = rng.standard_normal((128, 192)).astype(np.float32)
    out = np.full((192, 128), np.nan, np.float32)
    expected = Expected(argument=1, value=x.T.astype(np.float64))
    return Problem(args=[x, out, 128, 192], expected=(expected,), grid=(2, 3))


def _g_mxfp4(rng: Random) -> Problem:
    """Blocks of 32 share a scale, a power of two; the low half of a byte comes first; all sums are exact."""
    steps = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    values = np.concatenate([steps, -steps])
    parts, scales = [], []
    for _ in range(2):
        codes, scale = rng.integers(0, 16, (64, 256)), rng.integers(126, 129, (64, 8))
        parts.append((codes, values[codes] * np.repeat(2.0 ** (scale - 127), 32, axis=1)))
        scales.append(scale.astype(np.uint8))
    packed = [(codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8) for codes, _ in parts]
    due = parts[0][1] @ parts[1][1].T
    out = np.full((64, 64), np.nan, np.float32)
    return Problem(args=[packed[0], scales[0], packed[1], scales[1], out], expected=(Expected(argument=4, value=due),))


CASES: dict[str, Callable[[Random], Problem]] = {
    "pp_on": _ping_pong, "pp_off": _ping_pong, "t_vadd": _vadd, "t_vadd_nobuf": _vadd, "t_softmax": _softmax,
    "t_layernorm": _layernorm, "t_flash_s1": lambda rng: flash(rng, causal=False),
    "t_flash_s2c": lambda rng: flash(rng, causal=True), "t_hist": _hist, "t_cumsum": _cumsum,
    "t_sort": lambda rng: _sort(rng, 512), "g_mm": _g_mm, "g_mm_relax": _g_mm, "g_mm_wrongwait": _g_mm,
    "g_transpose": _g_transpose, "g_mxfp4": _g_mxfp4,
}  # fmt: skip
