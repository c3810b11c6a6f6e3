"""Problems for whole attention kernels: takes a random generator, gives sizes and numbers, and what O and L must be.

What is due is computed in float64 from the same bf16 numbers.  How far a result may be from it follows from the
arithmetic: fp32 sums of products, exponentials within an ulp, weights that are rounded to bf16 before they multiply V,
and O rounded to bf16.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
AWKWARD = (1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 95, 96, 127, 128, 129, 191, 192, 193, 255, 256, 257, 320, 383, 449)
_MOST_QUERIES, _MOST_KEYS = 300, 520
_UNIT = 2.0**-23  # of fp32, truncated sums included
_ROUNDED = 2.0**-8  # to bf16
_LOG2 = float(np.log(2))
_SPIKE = 64.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionProblem:
    """Sizes, and how rows lie: `interleaved` has the heads of a row side by side, else all rows of a head follow.

    A causal query sees keys up to its own number plus `shift`.  `spiky` values are large for a few keys.
    """

    queries: int
    keys: int
    heads: int = 1
    kv_heads: int = 1
    batches: int = 1
    causal: bool = False
    shift: int = 0
    gap: int = 0
    interleaved: bool = False
    factor: float = 1.0
    spiky: bool = False
    lse: bool = True
    orders: int = 1
    seed: int = 0

    def __str__(self) -> str:
        mask = f"causal {self.shift:+d}" if self.causal else "all keys"
        heads = f"{self.batches} x {self.heads} heads on {self.kv_heads}"
        return f"{heads}, {self.queries} queries, {self.keys} keys, {mask}, gap {self.gap}, scale x{self.factor}"


def draw_attention(random: Random, *, number: int) -> AttentionProblem:
    """Awkward sizes as often as others; every tenth problem under five interleavings."""
    queries, keys = (
        random.choice([each for each in AWKWARD if each <= most]) if random.random() < 0.5 else random.randint(1, most)
        for most in (_MOST_QUERIES, _MOST_KEYS)
    )
    kv_heads = random.choice((1, 1, 2))
    heads = kv_heads * random.choice((1, 2, 3)) if queries * keys < 60_000 else kv_heads
    shift = random.choice((keys - queries, keys - queries, 0, random.randint(-queries, keys)))
    return AttentionProblem(
        queries=queries,
        keys=keys,
        heads=heads,
        kv_heads=kv_heads,
        batches=random.choice((1, 1, 2)) if queries * keys < 20_000 else 1,
        causal=random.random() < 0.5,
        shift=shift,
        gap=random.choice((0, 0, 8, 24)),
        interleaved=random.random() < 0.4,
        factor=random.choice((0.25, 1.0, 1.0, 6.0)),
        spiky=random.random() < 0.4,
        lse=random.random() < 0.85,
        orders=5 if number % 10 == 0 else 1,
        seed=random.randrange(2**31),
    )


class AttentionNumbers(NamedTuple):
    """By batch, head, row and column; every number is a bf16."""

    q: Floats
    k: Floats
    v: Floats
    scale: float


def draw_numbers(problem: AttentionProblem, head: int) -> AttentionNumbers:
    """Normal numbers; of spiky values those at the edges of tiles and of the keys are large."""
    random = np.random.default_rng(problem.seed)
    q = random.normal(size=(problem.batches, problem.heads, problem.queries, head))
    k, v = (random.normal(size=(problem.batches, problem.kv_heads, problem.keys, head)) for _ in range(2))
    if problem.spiky:
        edges = [each for each in (0, 31, 32, 63, 64, 127, 128, problem.keys - 1) if each < problem.keys]
        v[:, :, edges] *= _SPIKE
    scale = float(np.float32(problem.factor / np.sqrt(head)))
    return AttentionNumbers(as_bf16(q), as_bf16(k), as_bf16(v), scale)


def as_bf16(values: Floats) -> Floats:
    """The nearest below in size that bf16 holds."""
    bits = values.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
    return bits.view(np.float32).astype(np.float64)


class AttentionDue(NamedTuple):
    """What is due, and how far from it a result may be."""

    o: Floats
    o_bound: Floats
    lse: Floats
    lse_bound: Floats


def attention_due(problem: AttentionProblem, given: AttentionNumbers, tile: int) -> AttentionDue:
    """In float64, with what is lost on the way in tiles of so many keys."""
    group = problem.heads // problem.kv_heads
    k, v = (np.repeat(each, group, axis=1) for each in (given.k, given.v))
    raw = np.einsum("bhid,bhjd->bhij", given.q, k, optimize=True)
    size = np.einsum("bhid,bhjd->bhij", np.abs(given.q), np.abs(k), optimize=True)
    seen = np.ones((problem.queries, problem.keys), bool)
    if problem.causal:
        seen = np.arange(problem.keys) <= np.arange(problem.queries)[:, None] + problem.shift
    scores = np.where(seen, raw * given.scale, -np.inf)
    best = scores.max(axis=3, keepdims=True)
    none = ~np.isfinite(best)
    level = np.where(none, 0.0, best)
    weights = np.exp(scores - level)
    total = weights.sum(axis=3, keepdims=True)
    share = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
    tiles = -(-problem.keys // tile)
    lost = _weight_errors(given, size, np.where(seen, scores - level, 0.0), np.abs(level), tiles)
    summed = (problem.keys + tiles) * _UNIT
    o = share @ v
    spread = (share * (lost + _ROUNDED * (1 + 2.0**-7) + summed)) @ np.abs(v)
    common = (share * lost).sum(axis=3, keepdims=True) + summed + 4 * _UNIT
    inner = spread + np.abs(o) * common
    o_bound = inner * 1.01 + (np.abs(o) + inner) * _ROUNDED + 2.0**-120
    with np.errstate(divide="ignore"):
        lse = (level + np.log(total))[..., 0]
    lse = np.where(none[..., 0], -np.inf, lse)
    own = np.where(seen, lost, 0.0).max(axis=3) + summed
    lse_bound = 1.01 * own + 8 * _UNIT * (1 + np.abs(np.where(none[..., 0], 0.0, lse)) + np.abs(level[..., 0]))
    return AttentionDue(o, o_bound, lse, lse_bound)


def _weight_errors(given: AttentionNumbers, size: Floats, below: Floats, level: Floats, tiles: int) -> Floats:
    """Of each weight, relative to it and to what all weights of its row have in common.

    A score's sum of products; its scaling, in units of the exponent; the exponential; and one rescaling for each tile,
    whose exponent is off by what the best score's rounding leaves.
    """
    head = given.q.shape[-1]
    scores = given.scale * head * _UNIT * size
    exponent = 4 * _UNIT * (np.abs(below) + level) + tiles * 2 * _UNIT * (level + 1)
    return np.asarray(np.expm1(scores + exponent + 4 * _UNIT * (1 + _LOG2)))
