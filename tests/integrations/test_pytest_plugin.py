"""The plug-in in runs of their own: devices and orders, findings as failures, and nothing for those who don't ask."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec

import pytest

from rota.errors import ToolchainError
from rota.isa.binary.toolchain import find_toolchain
from tests.wording.golden import mentions, worded

pytestmark = pytest.mark.thorough  # compiles, or starts commands

pytest.importorskip("numpy")  # now: what a run in this process imports is forgotten after it
if find_spec("triton"):
    import_module("triton")  # which can't be imported twice
pytest_plugins = ["pytester"]

MODULE = "rota.integrations.pytest_plugin"
INSTALLED = "rota" in entry_points(group="pytest11").names
PLUGIN = () if INSTALLED else ("-p", MODULE)
REVERSE = """extern "C" __attribute__((global)) void reverse(const int* x, int* y) {
  static __attribute__((shared)) int lds[256];
  int i = __builtin_amdgcn_workitem_id_x(), base = 256 * __builtin_amdgcn_workgroup_id_x();
  lds[i] = x[base + i];
  WAIT
  __builtin_amdgcn_s_barrier();
  y[base + i] = lds[255 - i];
}
"""
TEST = """
import numpy as np
import pytest

@pytest.mark.rota(devices=("gfx942", "gfx950"), orders=4)
def test_reverse(rota_launch, rota_device):
    x, y = np.arange(512, dtype=np.int32), np.zeros(512, np.int32)
    result = rota_launch("reverse.hip", x, y, grid=2, block=256)
    print("ran", rota_device, len(result.orders))
    assert (y.reshape(2, 256) == x.reshape(2, 256)[:, ::-1]).all()
"""


@pytest.fixture
def reverse(pytester: pytest.Pytester) -> pytest.Pytester:
    try:
        find_toolchain()
    except ToolchainError:
        pytest.skip("no compiler for AMD GPUs")
    write(pytester, "__builtin_amdgcn_s_waitcnt(0);")
    pytester.makepyfile(TEST)
    return pytester


def write(pytester: pytest.Pytester, wait: str) -> None:
    (pytester.path / "reverse.hip").write_text(REVERSE.replace("WAIT", wait))


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:randomly", *PLUGIN, *arguments)


def test_a_test_runs_for_each_device_under_so_many_orders(reverse: pytest.Pytester) -> None:
    result = run(reverse, "-v", "-s", "--strict-markers")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*::test_reverse?gfx942? ran gfx942 4", "*::test_reverse?gfx950? ran gfx950 4"])


def test_the_command_line_chooses_device_and_orders(reverse: pytest.Pytester) -> None:
    result = run(reverse, "-s", "--rota-device", "mi355x", "--rota-orders", "2")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["rota: gfx950, 2 orders", "*ran gfx950 2*"])


def test_a_configuration_file_does_where_no_marker_says_otherwise(reverse: pytest.Pytester) -> None:
    reverse.makeini("[pytest]\nrota_device = gfx942\nrota_orders = 3\n")
    reverse.makepyfile(TEST.replace('devices=("gfx942", "gfx950"), orders=4', ""))
    result = run(reverse, "-s")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*ran gfx942 3*"])


def test_a_race_fails_with_both_lines_and_without_a_traceback(reverse: pytest.Pytester) -> None:
    write(reverse, "")
    result = run(reverse, "--rota-device", "gfx950")
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert "error[I109]" in text
    assert "reverse.hip:4" in text  # the write
    assert "reverse.hip:7" in text  # the read
    assert "ds_write" in text
    assert "ds_read" in text
    assert 'rota_launch("reverse.hip"' in text
    assert "loaded_kernel.py" not in text
    assert "pytest_plugin.py" not in text
    result.stdout.fnmatch_lines(["FAILED *test_reverse*gfx950* - *I109*"])


SAME = """extern "C" __attribute__((global)) void same(int* y) {
  static volatile __attribute__((shared)) int lds[64];
  int i = __builtin_amdgcn_workitem_id_x() % 64;
  lds[i] = 7;
  __builtin_amdgcn_s_waitcnt(0);
  __builtin_amdgcn_s_barrier();
  y[__builtin_amdgcn_workitem_id_x()] = lds[i];
}
"""
TWO_TESTS = """
import numpy as np
import pytest

@pytest.mark.rota(devices="gfx950", orders=2)
@pytest.mark.parametrize("waves", [1, 2])
def test_same(rota_launch, waves):
    y = np.zeros(64 * waves, np.int32)
    rota_launch("same.hip", y, grid=1, block=64 * waves)
    rota_launch("same.hip", y, grid=1, block=64 * waves)
    assert (y == 7).all()
"""


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["one process", "a worker"])
def test_what_a_passing_test_found_is_in_the_summary(reverse: pytest.Pytester, workers: tuple[str, ...]) -> None:
    """Two waves write the same: a line, however many launches; one wave alone has none."""
    (reverse.path / "same.hip").write_text(SAME)
    reverse.makepyfile(TWO_TESTS)
    result = run(reverse, *workers)
    result.assert_outcomes(passed=2)
    section = [number for number, line in enumerate(result.outlines) if re.fullmatch(r"=+ rota =+", line)]
    assert len(section) == 1
    shown = [line for line in result.outlines[section[0] + 1 :] if "::" in line]
    assert len(shown) == 1
    assert mentions(shown[0], "test_same", "gfx950-2", "warning[I304]")


def test_without_findings_the_summary_has_no_section(reverse: pytest.Pytester) -> None:
    assert not any(re.fullmatch(r"=+ rota =+", line) for line in run(reverse).outlines)


def test_a_wrong_result_is_an_assertion_as_ever(reverse: pytest.Pytester) -> None:
    write(reverse, "__builtin_amdgcn_s_waitcnt(0); base ^= 256;")
    result = run(reverse, "--rota-device", "gfx950", "--rota-orders", "1")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([">*assert (y.reshape(2, 256) ==*"])


def test_a_code_object_for_another_device_is_skipped(reverse: pytest.Pytester) -> None:
    source = REVERSE.replace("WAIT", "__builtin_amdgcn_s_waitcnt(0);")
    (reverse.path / "reverse.hsaco").write_bytes(find_toolchain().compile(source, "gfx942").hsaco)
    reverse.makepyfile(TEST.replace("reverse.hip", "reverse.hsaco"))
    run(reverse, "--rota-orders", "1").assert_outcomes(passed=1, skipped=1)


@pytest.mark.parametrize(
    ("marker", "names"),
    [
        ("'gfx950'", ("gfx950",)),
        ("device='gfx950'", ("device",)),
        ("devices=()", ()),
        ("devices=[950]", ()),
        ("devices='gfx9000'", ("gfx9000",)),
        ("orders=0", ()),
        ("orders=True", ()),
        ("seed='x'", ()),
    ],
)
def test_a_malformed_marker_is_told_when_tests_are_collected(
    pytester: pytest.Pytester, marker: str, names: tuple[str, ...]
) -> None:
    pytester.makepyfile(f"import pytest\n@pytest.mark.rota({marker})\ndef test_it():\n    pass\n")
    result = run(pytester)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    text = result.stdout.str()
    first, *_ = (line.partition("::test_it: ")[2] for line in text.splitlines() if "::test_it: " in line)
    assert mentions(worded(first), *names)
    assert "Traceback" not in text


@pytest.mark.parametrize(
    "arguments", [("--rota-orders", "none"), ("--rota-orders", "0"), ("--rota-device", "gfx9000")], ids=" ".join
)
def test_malformed_options_are_usage_errors(pytester: pytest.Pytester, arguments: tuple[str, ...]) -> None:
    pytester.makepyfile("def test_it():\n    pass\n")
    assert run(pytester, *arguments).ret == pytest.ExitCode.USAGE_ERROR


def test_tests_without_a_marker_are_as_they_were(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from rota.errors import Finding, IsaError

        def test_nothing(request):
            assert "rota_device" not in request.fixturenames

        def test_an_error_of_its_own():
            raise IsaError(Finding(code="I107", message="mine"))
        """
    )
    result = run(pytester, "-v")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*::test_nothing PASSED*", "*raise IsaError(*"])


def test_nothing_heavy_is_imported_at_the_start() -> None:
    probe = f"import sys, {MODULE}; print(*sorted({{n.partition('.')[0] for n in sys.modules}}))"
    loaded = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "ortools", "triton", "torch", "click", "elftools"} & {*loaded}


@pytest.mark.skipif(not INSTALLED, reason="the package is not installed from this tree")
def test_the_plug_in_is_found_by_its_entry_point(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_subprocess("--help")
    assert "--rota-device" in result.stdout.str()


PROOF = """
def test_proof(assert_proved):
    (verdict,) = assert_proved("reverse.hip", block=256)
    print("proved", verdict.kernel)
"""


def test_a_kernel_is_proved_for_all_arguments(reverse: pytest.Pytester) -> None:
    reverse.makepyfile(PROOF)
    result = run(reverse, "-s", "--rota-device", "gfx942")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*proved reverse*"])


def test_what_is_not_proved_fails_with_its_findings(reverse: pytest.Pytester) -> None:
    write(reverse, "")
    reverse.makepyfile(PROOF)
    result = run(reverse, "--rota-device", "gfx942")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*I109*", "*reverse.hip:*ds_read_b32*"])
