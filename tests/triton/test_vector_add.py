from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    grid = lambda meta: (triton.cdiv(out.numel(), meta["BLOCK"]),)
    add_kernel[grid](x, y, out, out.numel(), BLOCK=256)
    return out


@pytest.mark.parametrize("size", [1, 256, 1000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int32])
def test_add(size: int, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x, y = ((torch.rand(size, device=DEVICE) * 100).to(dtype) for _ in range(2))
    torch.testing.assert_close(add(x, y), x + y, rtol=0, atol=0)
