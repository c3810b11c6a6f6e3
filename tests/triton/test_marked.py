"""The plug-in's marker on tests of Triton kernels: each device in turn, findings as failures, the driver given back."""

from __future__ import annotations

from importlib.metadata import entry_points

import pytest

pytest_plugins = ["pytester"]

PLUGIN = () if "rota" in entry_points(group="pytest11").names else ("-p", "rota.integrations.pytest_plugin")
TEST = """
import pytest, torch, triton
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()

@triton.jit
def double_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, 2 * tl.load(x_ptr + at, mask=at < n), mask=at < n)

MARK
def test_double(SIZE=90):
    x, y = torch.arange(100.0, device=DEVICE), torch.zeros(SIZE, device=DEVICE)
    double_kernel[(1,)](x, y, 90, BLOCK=128)
    print("ran for", triton.runtime.driver.active.get_current_target().arch)
    assert torch.equal(y, 2 * x[:90])
"""


def run(pytester: pytest.Pytester, text: str, *arguments: str) -> pytest.RunResult:
    """In a process of its own, in which nothing has given Triton a driver, as on a machine without a GPU."""
    pytester.makepyfile(text)
    pytester._monkeypatch.setenv("TRITON_CACHE_DIR", str(pytester.path / "cache"))  # its code knows its file's name
    return pytester.runpytest_subprocess("-s", "-p", "no:cacheprovider", *PLUGIN, *arguments)


@pytest.mark.thorough  # compiles, or starts commands
def test_a_marked_test_runs_for_each_device(pytester: pytest.Pytester) -> None:
    mark = '@pytest.mark.rota(devices=("gfx942", "mi355x"), orders=2)'
    text = TEST.replace("MARK", mark).replace("DEVICE = triton.runtime.driver.active.get_active_torch_device()", "")
    result = run(pytester, text.replace("DEVICE", '"cpu"'))
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*ran for gfx942", "*ran for gfx950"])


@pytest.mark.thorough  # compiles, or starts commands
def test_the_option_alone_is_enough(pytester: pytest.Pytester) -> None:
    result = run(pytester, TEST.replace("MARK", ""), "--rota-device", "gfx942", "--rota-orders", "2")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["rota: gfx942, 2 orders", "*ran for gfx942"])


@pytest.mark.thorough  # compiles, or starts commands
def test_an_access_out_of_bounds_fails_at_the_kernels_line(pytester: pytest.Pytester) -> None:
    text = TEST.replace("MARK", "@pytest.mark.rota").replace("SIZE=90", "SIZE=80")
    result = run(pytester, text, "--rota-device", "gfx950")
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert "error[I105]" in text
    assert "double_kernel[(1,)]" in text  # where it is launched
    assert ".py:9" in text  # what it does there
    assert "rota/triton.py" not in text
