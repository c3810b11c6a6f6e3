from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl

pytestmark = pytest.mark.thorough  # compiles kernels

DEVICE = triton.runtime.driver.active.get_active_torch_device()


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, scale, stride_head, stride_row, length,
    BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """One tile of queries; keys and values go by in tiles, the softmax is rescaled as larger scores come."""
    tile, head = tl.program_id(0), tl.program_id(1)
    rows, columns, depth = tile * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    base = head * stride_head
    q = tl.load(q_ptr + base + rows[:, None] * stride_row + depth[None, :], mask=rows[:, None] < length, other=0.0)
    largest = tl.full([BM], -float("inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    end = tl.minimum((tile + 1) * BM, length) if CAUSAL else length
    for start in range(0, end, BN):
        at = start + columns
        k = tl.load(k_ptr + base + at[None, :] * stride_row + depth[:, None], mask=at[None, :] < length, other=0.0)
        score = tl.dot(q, k) * (scale * 1.4426950408889634)
        seen = at[None, :] < length
        if CAUSAL:
            seen = seen & (rows[:, None] >= at[None, :])
        score = tl.where(seen, score, -1.0e30)
        now = tl.maximum(largest, tl.max(score, 1))
        power = tl.math.exp2(score - now[:, None])
        shrink = tl.math.exp2(largest - now)
        total = total * shrink + tl.sum(power, 1)
        v = tl.load(v_ptr + base + at[:, None] * stride_row + depth[None, :], mask=at[:, None] < length, other=0.0)
        acc = tl.dot(power.to(v.dtype), v, acc * shrink[:, None])
        largest = now
    out = (acc / total[:, None]).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + base + rows[:, None] * stride_row + depth[None, :], out, mask=rows[:, None] < length)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, *, causal: bool) -> torch.Tensor:
    heads, length, depth = q.shape
    out = torch.empty_like(q)
    grid = (triton.cdiv(length, 64), heads)
    attention_kernel[grid](
        q, k, v, out, scale, q.stride(0), q.stride(1), length, BM=64, BN=32, D=depth, CAUSAL=causal, num_warps=4
    )
    return out


@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
def test_attention(causal: bool) -> None:
    """P is rounded to fp16 before it is multiplied, and so is the result."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 100, 64, device=DEVICE).half() for _ in range(3))
    got = attention(q, k, v, 0.125, causal=causal).double()
    score = q.double() @ k.double().mT * 0.125
    if causal:
        score = score.masked_fill(~torch.ones(100, 100, dtype=torch.bool).tril(), -float("inf"))
    share = torch.softmax(score, -1)
    due = share @ v.double()
    bound = (2**-11 + 2**-14) * (share @ v.double().abs()) + 2**-11 * due.abs() + 2**-24
    assert ((got - due).abs() <= bound).all()
