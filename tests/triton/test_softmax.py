from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl

pytestmark = pytest.mark.thorough  # the first one to compile waits for the compiler

DEVICE = triton.runtime.driver.active.get_active_torch_device()


@triton.jit
def softmax_kernel(out_ptr, in_ptr, in_stride, out_stride, rows, columns, BLOCK: tl.constexpr):
    """Rows go round the workgroups."""
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0)):
        values = tl.load(in_ptr + row * in_stride + offsets, mask=mask, other=-float("inf"))
        powers = tl.exp(values - tl.max(values, axis=0))
        tl.store(out_ptr + row * out_stride + offsets, powers / tl.sum(powers, axis=0), mask=mask)


def softmax(x: torch.Tensor) -> torch.Tensor:
    rows, columns = x.shape
    out = torch.empty_like(x)
    grid = (min(rows, 2),)
    softmax_kernel[grid](
        out, x, x.stride(0), out.stride(0), rows, columns, BLOCK=triton.next_power_of_2(columns), num_warps=4
    )
    return out


@pytest.mark.parametrize(("rows", "columns"), [(3, 781), (2, 64)])
def test_softmax(rows: int, columns: int) -> None:
    torch.manual_seed(0)
    x = torch.randn(rows, columns, device=DEVICE)
    torch.testing.assert_close(softmax(x), torch.softmax(x, axis=1), rtol=2e-6, atol=1e-9)
