"""What `rota.triton.use` installs: arrays of NumPy, findings where a kernel is launched, one configuration of many."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from triton.runtime import driver

import rota.triton

pytestmark = pytest.mark.thorough  # the first one to compile waits for the compiler

DEVICES = pytest.mark.parametrize("device", ["gfx942", "gfx950"])


@pytest.fixture(autouse=True)
def untouched() -> Iterator[None]:
    before = driver.active
    yield
    assert driver.active is before


@triton.jit
def scale_kernel(x_ptr, y_ptr, factor, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n) * factor, mask=at < n)


@DEVICES
def test_arrays_of_numpy(device: str) -> None:
    x, y = np.arange(300, dtype=np.float32), np.zeros(300, np.float32)
    with rota.triton.use(device, orders=2) as session:
        scale_kernel[(2,)](x, y, 0.5, 300, BLOCK=256)
    assert (y == x / 2).all()
    ((name, result),) = session.results
    assert (name, len(result.orders), result.ok) == ("scale_kernel", 2, True)


@DEVICES
def test_a_tensor_is_written_where_it_lies(device: str) -> None:
    """A view that starts at the second element: Triton compiles for its alignment."""
    x, y = torch.arange(300, dtype=torch.float32), torch.zeros(300)
    with rota.triton.use(device, orders=1):
        scale_kernel[(2,)](x[1:], y[1:], 2.0, 299, BLOCK=256)
    assert torch.equal(y, 2 * x)


def test_an_access_out_of_bounds_is_raised() -> None:
    x, y = torch.zeros(100), torch.zeros(90)
    with rota.triton.use("mi355x", orders=2) as session, pytest.raises(rota.IsaError) as caught:
        scale_kernel[(1,)](x, y, 1.0, 100, BLOCK=256)
    (finding,) = caught.value.findings
    assert finding.code == "I105"
    assert "argument 1" in str(finding)
    assert not session.results[0][1].ok
    with rota.triton.use("mi355x", orders=1, check=False) as session:
        scale_kernel[(1,)](x, y, 1.0, 100, BLOCK=256)
    assert session.results[0][1].findings[0].code == "I105"


CONFIGS = [
    triton.Config({"BLOCK": block}, num_stages=stages, num_warps=4) for block, stages in ((128, 4), (32, 2), (64, 2))
]  # the first one takes more LDS than a workgroup has


@triton.autotune(configs=CONFIGS, key=["size"])
@triton.jit
def square_kernel(a_ptr, b_ptr, c_ptr, size, BLOCK: tl.constexpr):
    rows, columns = tl.arange(0, BLOCK), tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for start in range(0, size, BLOCK):
        at = start + tl.arange(0, BLOCK)
        a = tl.load(
            a_ptr + rows[:, None] * size + at[None, :], mask=(rows[:, None] < 32) & (at[None, :] < size), other=0.0
        )
        b = tl.load(
            b_ptr + at[:, None] * 32 + columns[None, :], mask=(at[:, None] < size) & (columns[None, :] < 32), other=0.0
        )
        acc = tl.dot(a, b, acc)
    inside = (rows[:, None] < 32) & (columns[None, :] < 32)
    tl.store(c_ptr + rows[:, None] * 32 + columns[None, :], acc, mask=inside)


def product() -> torch.Tensor:
    torch.manual_seed(0)
    a, b = torch.randint(-4, 5, (32, 256)).half(), torch.randint(-4, 5, (256, 32)).half()
    c = torch.full((32, 32), torch.nan)
    square_kernel.cache.clear()
    square_kernel[(1,)](a, b, c, 256)
    assert torch.equal(c.double(), a.double() @ b.double())
    return c


def test_autotuning_takes_the_first_configuration_that_fits() -> None:
    with rota.triton.use("gfx942", orders=1) as session:
        product()
    assert square_kernel.best_config.kwargs["BLOCK"] == 32
    assert len(session.results) == 1


def test_autotuning_runs_all_configurations_if_asked_to() -> None:
    with rota.triton.use("gfx942", orders=1, autotune=True) as session:
        product()
    assert square_kernel.best_config.kwargs["BLOCK"] == 32
    assert len(session.results) == 3  # two that fit, and then the one that was chosen


def test_a_device_that_nobody_knows() -> None:
    with pytest.raises(rota.DeclarationError):
        rota.triton.use("gfx90000")


def test_sessions_nest() -> None:
    with rota.triton.use("gfx942") as outer:
        with rota.triton.use("gfx950"):
            assert driver.active.get_current_target().arch == "gfx950"
        assert driver.active.get_current_target().arch == "gfx942"
    outer.stop()


def test_what_a_driver_is_asked() -> None:
    with rota.triton.use("gfx942"):
        assert driver.active.get_active_torch_device() == torch.device("cpu")
        properties = driver.active.utils.get_device_properties(0)
    assert properties["max_shared_mem"] == 65536
    assert properties["multiprocessor_count"] == 304
