"""Kernels of Triton's users run for gfx1250, a GPU that nobody has: right results, and a race that is shown."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

import rota.triton
from rota.errors import RotaError
from rota.triton import TritonSession


@pytest.fixture(autouse=True)
def session() -> Iterator[TritonSession]:
    with rota.triton.use("gfx1250", orders=3) as chosen:
        yield chosen


@triton.jit
def soften(x, out, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(x + row * n + at, mask=at < n, other=-float("inf"))
    power = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * n + at, power / tl.sum(power, axis=0), mask=at < n)


def test_a_softmax_is_right(session: TritonSession) -> None:
    x = torch.randn(5, 200)
    out = torch.full_like(x, float("nan"))
    soften[(5,)](x, out, 200, BLOCK=256)
    torch.testing.assert_close(out, torch.softmax(x, 1))
    assert [each.ok for _, each in session.results] == [True]


@triton.jit
def multiply(a, b, c, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        inside = start + depth < K
        left = tl.load(a + rows[:, None] * K + (start + depth)[None, :], mask=inside[None, :], other=0.0)
        right = tl.load(b + (start + depth)[:, None] * N + columns[None, :], mask=inside[:, None], other=0.0)
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * N + columns[None, :], total)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_matmul_is_right_to_the_bit(dtype: torch.dtype) -> None:
    a, b = (torch.randint(-4, 5, shape).to(dtype) for shape in ((64, 80), (80, 128)))
    out = torch.full((64, 128), float("nan"))
    multiply[(1, 2)](a, b, out, 128, 80, BM=64, BN=64, BK=32, num_stages=2)
    assert torch.equal(out, a.float() @ b.float())


@gluon.jit
def swapped(x, out, MEETS: gl.constexpr):
    """Through LDS into another wave."""
    rows: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    at = gl.arange(0, 128, layout=rows)
    memory = gl.allocate_shared_memory(gl.float32, [128], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    memory.store(gl.load(x + at))
    if MEETS:
        gl.barrier()
    gl.store(out + at, gl.inline_asm("ds_load_b32 $0, $1\ns_wait_dscnt 0x0", "=v,v", [(127 - at) * 4], at.type))


def test_a_missing_barrier_is_shown() -> None:
    x, out = np.arange(128, dtype=np.float32), np.zeros(128, np.int32)
    swapped[(1,)](torch.from_numpy(x), torch.from_numpy(out), MEETS=True, num_warps=4)
    assert np.array_equal(out.view(np.float32), x[::-1])
    with pytest.raises(RotaError) as caught:
        swapped[(1,)](torch.from_numpy(x), torch.from_numpy(out), MEETS=False, num_warps=4)
    assert "I109" in {finding.code for finding in caught.value.findings}
