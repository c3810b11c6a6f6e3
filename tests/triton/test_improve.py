"""A compiled kernel with a better order of its loop, under the same launch: the same bits."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import triton
import triton.language as tl

import rota.triton
from rota.errors import IsaError

pytestmark = pytest.mark.thorough  # the first one to compile waits for the compiler

DEVICE = triton.runtime.driver.active.get_active_torch_device()


@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        a = tl.load(a_ptr + rows[:, None] * K + (k + depth)[None, :])
        b = tl.load(b_ptr + (k + depth)[:, None] * N + columns[None, :])
        total = tl.dot(a, b, total)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], total.to(tl.bfloat16))


@triton.jit
def double(x_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x_ptr + at, 2 * tl.load(x_ptr + at))


def test_further_launches_run_the_better_order() -> None:
    m, n, k = 128, 128, 256
    a, b = (torch.randn(size, device=DEVICE).to(torch.bfloat16) for size in ((m, k), (k, n)))
    first, second = (torch.empty((m, n), device=DEVICE, dtype=torch.bfloat16) for _ in range(2))

    def launch(c: torch.Tensor) -> Any:
        return matmul[(1, 1)](a, b, c, m, n, k, BM=128, BN=128, BK=64, num_warps=4, num_stages=3)

    handle = launch(first)
    was = handle.asm["hsaco"]
    made = rota.triton.improve(handle)
    assert made.clocks < made.before
    assert handle.asm["hsaco"] == made.code.hsaco != was
    again = launch(second)
    assert again is handle
    assert handle.kernel == made.code.hsaco
    assert torch.equal(first, second)
    torch.testing.assert_close(first.float(), a.float() @ b.float(), rtol=2e-2, atol=0.25)


def test_a_kernel_without_a_loop_stays_as_it_is() -> None:
    x = torch.ones(256, device=DEVICE)
    handle = double[(1,)](x, BLOCK=256)
    was = handle.asm["hsaco"]
    with pytest.raises(IsaError, match="I610"):
        rota.triton.improve(handle)
    assert handle.asm["hsaco"] == was
    double[(1,)](x, BLOCK=256)
    assert torch.equal(x, torch.full((256,), 4.0, device=DEVICE))
