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


@pytest.mark.thorough  # compiles, or starts commands
@pytest.mark.parametrize("marked", [True, False])
def test_what_launches_of_a_passing_test_found_is_in_the_summary(pytester: pytest.Pytester, marked: bool) -> None:
    """Two waves store the same, in one test of two; by the test's own session or by that of the run."""
    mark = "@pytest.mark.rota(devices='gfx950')\n@pytest.mark.parametrize('words', [64, 128])"
    text = TEST.replace("MARK", mark if marked else mark.split("\n")[1])
    text = text.replace("SIZE=90", "words").replace("torch.zeros(SIZE", "torch.zeros(128")
    text = text.replace("y_ptr + at, 2 * tl.load(x_ptr + at, mask=at < n), mask=at < n", "y_ptr + at % n, 7.0")
    text = text.replace("y, 90, BLOCK=128", "y, words, BLOCK=128, num_warps=2")
    text = text.replace("torch.equal(y, 2 * x[:90])", "(y[:words] == 7).all()")
    result = run(pytester, text, "--rota-device", "gfx950", "--rota-orders", "1")
    result.assert_outcomes(passed=2)
    shown = [line for line in result.outlines if "[I304]" in line]
    assert len(shown) == 1
    assert "test_double[" in shown[0]
    assert "64" in shown[0].partition("]")[0]
