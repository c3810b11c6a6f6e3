"""Problems for whole kernels: takes a random generator, gives sizes, strides and numbers, and what D must be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rota.emit.gemm.gemm_tile import BlockScales
from rota.emit.whole.whole_options import EpilogueStep, Output, Steps
from rota.pipeline.geometry import SCALED_BLOCK

Floats = NDArray[np.float64]
AWKWARD = (1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 95, 96, 127, 128, 129, 191, 193, 255, 256, 257, 319,
           320, 321, 383, 384, 385, 447, 511, 512, 513, 639, 640, 641, 699, 700)  # fmt: skip
MOST = 700
_EMPTY = 16  # every so-many-th problem sums nothing
_ODD, _SMALL = 0.08, (70, 60, 140)
_FETCHED = 32  # elements of fp4 in the 16 bytes that a DMA moves for a lane
EXACT = frozenset(
    {
        EpilogueStep.ALPHA,
        EpilogueStep.BETA,
        EpilogueStep.ROW_SCALE,
        EpilogueStep.COLUMN_SCALE,
        EpilogueStep.ROW_BIAS,
        EpilogueStep.COLUMN_BIAS,
        EpilogueStep.RELU,
    }
)
"""Steps that small integers and powers of two go through without rounding."""

_UNIT = 2.0**-24  # of fp32
_ROUNDING = {Output.BF16: 2.0**-8, Output.F16: 2.0**-11, Output.F32: 2.0**-24}
_SMALLEST = {Output.BF16: 2.0**-133, Output.F16: 2.0**-25, Output.F32: 2.0**-149}
_STEEPEST = 1.13  # slope of gelu and silu
_FUNCTION = 4e-6  # of their argument's size: exp2 and rcp are within 1 ulp, erf within 1.5e-7


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Sizes, how rows lie, and whether numbers are integers; `skew` is by how many elements A, B and D are misaligned.

    `gaps` are elements after the rows of A, B, C and D.
    """

    m: int
    n: int
    k: int
    batches: int = 1
    splits: int = 1
    gaps: tuple[int, int, int, int] = (0, 0, 0, 0)
    skew: tuple[int, int, int] = (0, 0, 0)
    whole: bool = True
    orders: int = 1
    seed: int = 0

    def __str__(self) -> str:
        sizes = f"{self.batches} x {self.m}x{self.n}x{self.k}"
        return f"{sizes}, {self.splits} splits, gaps {self.gaps}, skew {self.skew}, {'whole' if self.whole else 'full'}"


def draw_problem(random: Random, *, number: int) -> Problem:
    """Awkward sizes as often as others; every tenth problem under five interleavings.

    Rows of D that begin at odd elements are drawn small: where workgroups write the halves of one word, the native core
    leaves the run to NumPy.
    """
    m, n, k = (random.choice(AWKWARD) if random.random() < 0.5 else random.randint(1, MOST) for _ in range(3))
    if number % _EMPTY == _EMPTY - 1:
        k = 0
    odd = random.random() < _ODD
    if odd:
        m, n, k = (min(size, most) for size, most in zip((m, n, k), _SMALL, strict=True))
    batches = random.choice((1, 1, 1, 2, 3)) if m * n < 40_000 else 1
    aligned = -k % 8
    gap = random.choice((aligned, aligned + 8, aligned + 24, random.randint(0, 9)))
    gap_b = gap if random.random() < 0.5 else random.choice((aligned, aligned + 16, random.randint(0, 5)))
    skew = (
        random.choice((0, 0, 0, 0, 1, 4)),
        random.choice((0, 0, 0, 0, 8, 3)),
        1 if odd else random.choice((0, 8, 2)),
    )
    even = n % 2
    gap_d = random.choice((0, 1, 5)) if odd else random.choice((-n % 8, -n % 8 + 8, even, even + 4))
    return Problem(
        m=m,
        n=n,
        k=k,
        batches=batches,
        splits=random.choice((1, 1, 2, 3, 4)),
        gaps=(gap, gap_b, random.choice((0, 1, 8)), gap_d),
        skew=skew,
        whole=random.random() < 0.6,
        orders=5 if number % 10 == 0 else 1,
        seed=random.randrange(2**31),
    )


def gap_by_columns(problem: Problem) -> int:
    """The gap after the rows of B as K x N: they are aligned where those of N x K would be."""
    gap = problem.gaps[1]
    return -problem.n % 8 + gap // 8 * 8 if (problem.k + gap) % 8 == 0 else gap


def fitted(problem: Problem, packed: int, scales: BlockScales = BlockScales.NONE) -> Problem:
    """The problem with rows of whole bytes, where so many elements share one; of whole blocks, if scales are bytes.

    K-tiles of fp4 are deep, and a trip sums several blocks with scales in fp32: two of three problems get a K that has
    trips of the loop, in rows that DMAs can fetch.
    """
    if packed == 1 and scales is BlockScales.NONE:
        return problem
    whole = SCALED_BLOCK if scales is BlockScales.MX else packed
    gap_a, gap_b, gap_c, gap_d = problem.gaps
    k = -(-problem.k // whole) * whole
    if problem.seed % 3:
        k *= 4 if packed > 1 else 2 if scales is BlockScales.FLOAT else 1
        gaps = (-k % _FETCHED, -k % _FETCHED, gap_c, gap_d)
        return replace(problem, k=k, gaps=gaps, skew=(0, 0, problem.skew[2]))
    return replace(problem, k=k, gaps=(gap_a + gap_a % packed, gap_b + gap_b % packed, gap_c, gap_d))


def scale_gap(problem: Problem, scales: BlockScales) -> int:
    """Bytes, or floats, after a row of scales: rows that DMAs can fetch, or any."""
    if scales is BlockScales.FLOAT:
        return problem.seed % 4
    fetched = problem.seed % 3 and problem.seed % 7
    return -(problem.k // SCALED_BLOCK) % 4 if fetched else problem.seed % 4


class Operands(NamedTuple):
    """The numbers of a problem."""

    a: Floats
    b: Floats
    b_up: Floats
    c: Floats
    bias: Floats
    row_scale: Floats
    column_scale: Floats
    alpha: float
    beta: float
    a_scale: Floats
    b_scale: Floats
    b_up_scale: Floats


class Bounded(NamedTuple):
    """What is due, and how far from it a result may be before it is rounded to the output."""

    due: Floats
    bound: Floats


def draw_operands(
    problem: Problem, bits: int, output: Output, epilogue: Steps, scales: BlockScales = BlockScales.NONE
) -> Operands:
    """Integers and powers of two, or numbers with all the bits that an element has."""
    random = np.random.default_rng(problem.seed)
    size = problem.batches

    def drawn(shape: tuple[int, ...], digits: int) -> Floats:
        if problem.whole:
            return random.integers(-4, 4, shape, endpoint=True).astype(np.float64)
        if digits == LEAST_SIGNIFICANT["fp4"]:  # which has 0.5 to 6 alone
            return np.asarray(np.ldexp(random.integers(-3, 3, shape, endpoint=True), random.integers(-1, 2, shape)))
        significands = random.integers(-(2**digits), 2**digits, shape, endpoint=True).astype(np.float64)
        scaled: Floats = np.ldexp(significands, random.integers(-digits - 4, -digits, shape, endpoint=True))
        return scaled

    def drawn_scales(rows: int) -> Floats:
        powers: Floats = np.ldexp(1.0, random.integers(-2, 3, (size, rows, -(-problem.k // scales.block))))
        if problem.whole or scales is not BlockScales.FLOAT:
            return powers
        return (powers * random.uniform(-2, 2, powers.shape)).astype(np.float32).astype(np.float64)

    digits = {Output.BF16: 8, Output.F16: 11, Output.F32: 24}[output]
    factors = [np.ldexp(1.0, random.integers(-1, 1, (size, each), endpoint=True)) for each in (problem.m, problem.n)]
    return Operands(
        a=drawn((size, problem.m, problem.k), bits),
        b=drawn((size, problem.n, problem.k), bits),
        b_up=drawn((size, problem.n, problem.k), bits),
        c=drawn((size, problem.m, problem.n), digits),
        bias=drawn((problem.m if EpilogueStep.ROW_BIAS in epilogue else problem.n,), digits),
        row_scale=factors[0],
        column_scale=factors[1],
        alpha=float(random.choice([1, 2, -3, 0.5])),
        beta=float(random.choice([1, -2, 0.5])),
        a_scale=drawn_scales(problem.m),
        b_scale=drawn_scales(problem.n),
        b_up_scale=drawn_scales(problem.n),
    )


def scaled_operands(given: Operands, scales: BlockScales) -> Operands:
    """A and B with the scales of their blocks, of which the last may be a part."""
    each = given.a_scale, given.b_scale, given.b_up_scale
    a, b, b_up = (scale.repeat(scales.block, axis=2)[:, :, : given.a.shape[2]] for scale in each)
    return given._replace(a=given.a * a, b=given.b * b, b_up=given.b_up * b_up)


def expected(problem: Problem, given: Operands, epilogue: Steps) -> Bounded:
    """In float64, step by step, with what fp32 may lose on the way: sums of K terms in any order, and each step."""
    value = _product(problem, given.a, given.b)
    other = _product(problem, given.a, given.b_up)
    gate = next((number for number, step in enumerate(epilogue) if step.gates), -1)
    for number, step in enumerate(epilogue):
        if step.gates:
            value = _gated(step, value, other)
            continue
        value = _stepped(step, value, given)
        if number < gate:
            other = _stepped(step, other, given)
    return value


def _product(problem: Problem, a: Floats, b: Floats) -> Bounded:
    due = np.einsum("zmk,znk->zmn", a, b, optimize=True)
    if problem.whole:
        return Bounded(due, np.zeros_like(due))
    terms = problem.k + problem.splits
    lost = terms * _UNIT / (1 - terms * _UNIT)
    return Bounded(due, lost * np.einsum("zmk,znk->zmn", np.abs(a), np.abs(b), optimize=True))


def _stepped(step: EpilogueStep, value: Bounded, given: Operands) -> Bounded:
    due, bound = value
    if step is EpilogueStep.RELU:
        return Bounded(np.maximum(due, 0), bound)
    if step not in EXACT:
        return _rounded(_ACTIVATIONS[step](due), _STEEPEST * bound + _FUNCTION * np.abs(due))
    bias = given.bias[:, None] if step is EpilogueStep.ROW_BIAS else given.bias[None, :]
    factor: Floats | float = 1.0
    if step is EpilogueStep.ALPHA:
        factor = given.alpha
    elif step is EpilogueStep.ROW_SCALE:
        factor = given.row_scale[:, :, None]
    elif step is EpilogueStep.COLUMN_SCALE:
        factor = given.column_scale[:, None, :]
    addend: Floats | float = 0.0
    if step is EpilogueStep.BETA:
        addend = given.beta * given.c
    elif step in (EpilogueStep.ROW_BIAS, EpilogueStep.COLUMN_BIAS):
        addend = bias[None]
    lost = np.abs(np.asarray(addend)) * 2 * _UNIT if np.any(bound) else 0.0
    return _rounded(due * factor + addend, bound * np.abs(factor) + lost)


def _rounded(due: Floats, bound: Floats) -> Bounded:
    return Bounded(due, bound + (2 * _UNIT * np.abs(due) if np.any(bound) else 0.0))


def _gated(step: EpilogueStep, gate: Bounded, up: Bounded) -> Bounded:
    inner = EpilogueStep.SILU if step is EpilogueStep.GATED_SILU else EpilogueStep.GELU_TANH
    act = _ACTIVATIONS[inner](gate.due)
    lost = _STEEPEST * gate.bound + _FUNCTION * np.abs(gate.due)
    return _rounded(act * up.due, np.abs(act) * up.bound + (np.abs(up.due) + up.bound) * lost)


def _silu(x: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return np.asarray(x / (1 + np.exp(-x)))


def _gelu_tanh(x: Floats) -> Floats:
    return np.asarray(0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))))


def _gelu(x: Floats) -> Floats:
    from math import erf

    return np.asarray(0.5 * x * (1 + np.vectorize(erf, otypes=[float])(x / np.sqrt(2))))


_ACTIVATIONS = {EpilogueStep.SILU: _silu, EpilogueStep.GELU_TANH: _gelu_tanh, EpilogueStep.GELU: _gelu}


def is_exact(problem: Problem, epilogue: Sequence[EpilogueStep]) -> bool:
    """Has D one right value, whatever the order of its sums?"""
    return problem.whole and all(step in EXACT for step in epilogue)


def wrong_elements(got: Floats, value: Bounded, output: Output, *, exact: bool) -> NDArray[np.bool_]:
    """Where D isn't what it must be: the rounded value itself, or within the bound and the output's own rounding."""
    wrong: NDArray[np.bool_]
    if exact:
        wrong = got != rounded_to(value.due, output)  # NaN is wrong too
        return wrong
    with np.errstate(invalid="ignore"):
        near = np.abs(got - value.due) <= value.bound + _ROUNDING[output] * np.abs(value.due) + _SMALLEST[output]
        beyond = np.abs(value.due) + value.bound >= 65504 if output is Output.F16 else np.zeros(got.shape, bool)
    wrong = ~(near | (beyond & np.isinf(got)))
    return wrong


def rounded_to(values: Floats, output: Output) -> Floats:
    """Fp32 numbers in the output's precision, ties to even."""
    single = values.astype(np.float32)
    with np.errstate(over="ignore"):
        if output is Output.F16:
            return single.astype(np.float16).astype(np.float64)
    if output is Output.F32:
        return single.astype(np.float64)
    bits = single.view(np.uint32).astype(np.uint64)
    even = (bits + np.uint64(0x7FFF) + ((bits >> np.uint64(16)) & np.uint64(1))) & np.uint64(0xFFFF0000)
    return even.astype(np.uint32).view(np.float32).astype(np.float64)


LEAST_SIGNIFICANT: Mapping[str, int] = {"bf16": 8, "f16": 11, "f8f6f4": 4, "fp8_fp8": 4, "fp4": 2}
"""Bits of an element's significand."""
