from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl

pytestmark = pytest.mark.thorough  # the first one to compile waits for the compiler

DEVICE = triton.runtime.driver.active.get_active_torch_device()


@triton.jit
def layer_norm_kernel(x_ptr, y_ptr, w_ptr, b_ptr, mean_ptr, rstd_ptr, stride, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x_ptr += row * stride
    y_ptr += row * stride
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + at, mask=at < columns, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / columns
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < columns, other=0.0).to(tl.float32)
        x = tl.where(at < columns, x - mean, 0.0)
        squares += x * x
    rstd = 1 / tl.sqrt(tl.sum(squares, axis=0) / columns + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        mask = at < columns
        w, b = tl.load(w_ptr + at, mask=mask), tl.load(b_ptr + at, mask=mask)
        x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
        tl.store(y_ptr + at, (x - mean) * rstd * w + b, mask=mask)


@pytest.mark.parametrize(("rows", "columns", "dtype"), [(3, 700, torch.float32), (2, 1152, torch.float16)])
def test_layer_norm(rows: int, columns: int, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x = (torch.randn(rows, columns, device=DEVICE) * 2 + 1).to(dtype)
    w, b = torch.rand(columns, device=DEVICE).to(dtype), torch.rand(columns, device=DEVICE).to(dtype)
    y, mean, rstd = torch.empty_like(x), torch.empty(rows, device=DEVICE), torch.empty(rows, device=DEVICE)
    layer_norm_kernel[(rows,)](x, y, w, b, mean, rstd, x.stride(0), columns, 1e-5, BLOCK=512)
    exact = x.double()
    due = torch.nn.functional.layer_norm(exact, (columns,), w.double(), b.double(), 1e-5)
    rounding = 2**-11 if dtype == torch.float16 else 2**-20
    torch.testing.assert_close(y.double(), due, rtol=rounding, atol=2e-6)
    torch.testing.assert_close(mean.double(), exact.mean(1), rtol=2**-19, atol=1e-7)
    torch.testing.assert_close(rstd.double(), 1 / torch.sqrt(exact.var(1, unbiased=False) + 1e-5), rtol=2**-19, atol=0)
