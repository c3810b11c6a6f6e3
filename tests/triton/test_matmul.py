from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl

pytestmark = pytest.mark.thorough  # the first one to compile waits for the compiler

DEVICE = triton.runtime.driver.active.get_active_torch_device()


@triton.autotune(
    configs=[
        triton.Config({"BM": 64, "BN": 64, "BK": 32, "GROUP": 4}, num_stages=2, num_warps=4),
        triton.Config({"BM": 128, "BN": 64, "BK": 32, "GROUP": 8}, num_stages=2, num_warps=4),
    ],
    key=["M", "N", "K"],
)
@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, ACTIVATION: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    group = pid // (GROUP * tiles_n)
    first = group * GROUP
    rows = min(tiles_m - first, GROUP)
    pid_m = first + (pid % (GROUP * tiles_n)) % rows
    pid_n = (pid % (GROUP * tiles_n)) // rows
    offs_m = (pid_m * BM + tl.arange(0, BM)) % M
    offs_n = (pid_n * BN + tl.arange(0, BN)) % N
    offs_k = tl.arange(0, BK)
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(tl.cdiv(K, BK)):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BK, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BK, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BK * stride_ak
        b_ptrs += BK * stride_bk
    if ACTIVATION == "relu":
        acc = tl.maximum(acc, 0.0)
    out_m, out_n = pid_m * BM + tl.arange(0, BM), pid_n * BN + tl.arange(0, BN)
    c_ptrs = c_ptr + stride_cm * out_m[:, None] + stride_cn * out_n[None, :]
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=(out_m[:, None] < M) & (out_n[None, :] < N))


def matmul(a: torch.Tensor, b: torch.Tensor, activation: str = "") -> torch.Tensor:
    (m, k), (_, n) = a.shape, b.shape
    c = torch.empty((m, n), device=a.device, dtype=a.dtype)
    grid = lambda meta: (triton.cdiv(m, meta["BM"]) * triton.cdiv(n, meta["BN"]),)
    matmul_kernel[grid](a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride(), ACTIVATION=activation)
    return c


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("activation", ["", "relu"])
def test_matmul(dtype: torch.dtype, activation: str) -> None:
    """Whole numbers, whose products and sums are exact: one right result."""
    torch.manual_seed(0)
    a = torch.randint(-4, 5, (96, 80), device=DEVICE).to(dtype)
    b = torch.randint(-4, 5, (80, 72), device=DEVICE).to(dtype)
    due = a.double() @ b.double()
    due = due.relu() if activation else due
    torch.testing.assert_close(matmul(a, b, activation), due.to(dtype), rtol=0, atol=0)


def test_matmul_of_a_transposed_matrix() -> None:
    torch.manual_seed(0)
    a, b = (torch.randint(-4, 5, (64, 64), device=DEVICE).half() for _ in range(2))
    torch.testing.assert_close(matmul(a, b.T), (a.double() @ b.double().T).half(), rtol=0, atol=0)
