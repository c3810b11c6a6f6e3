"""`rota.triton.judge`: what Triton compiles is proved meanwhile, and a proof never breaks a compilation."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from triton import knobs
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

import rota.triton
from rota.errors import DeclarationError, IsaError
from rota.prove.kernel_proof import prove_object
from rota.prove.verdict import Budget, Status, Verdict
from tests.wording.golden import worded

pytestmark = pytest.mark.thorough  # compiles
pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
OUTCOMES = re.compile(r"judged (\d+) .*?(\d+) (?:proved|refuted), (\d+) (?:proved|refuted);")
PLUGIN = "rota.integrations.triton_plugin"
KERNELS = """
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

import rota.triton


@gluon.jit
def turned(x, out, MEETS: gl.constexpr):
    rows: gl.constexpr = gl.BlockedLayout([1], [64], [4], [0])
    at = gl.arange(0, 256, layout=rows)
    memory = gl.allocate_shared_memory(gl.float32, [256], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    memory.store(gl.load(x + at))
    if MEETS:
        gl.barrier()
    gl.store(out + at, gl.inline_asm("ds_read_b32 $0, $1\\ns_waitcnt lgkmcnt(0)", "=v,v", [(255 - at) * 4], at.type))


def make(meets):
    signature = {"x": "*fp32:16", "out": "*i32:16"}
    rota.triton.compile_kernel(turned, signature=signature, constants={"MEETS": meets}, device="gfx950")
"""


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)


@gluon.jit
def turned(x, out, MEETS: gl.constexpr):
    """Through LDS into another wave, by an address that Gluon doesn't follow."""
    rows: gl.constexpr = gl.BlockedLayout([1], [64], [4], [0])
    at = gl.arange(0, 256, layout=rows)
    memory = gl.allocate_shared_memory(gl.float32, [256], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    memory.store(gl.load(x + at))
    if MEETS:
        gl.barrier()
    gl.store(out + at, gl.inline_asm("ds_read_b32 $0, $1\ns_waitcnt lgkmcnt(0)", "=v,v", [(255 - at) * 4], at.type))


def make(*, meets: bool) -> None:
    signature = {"x": "*fp32:16", "out": "*i32:16"}
    rota.triton.compile_kernel(turned, signature=signature, constants={"MEETS": meets})


@pytest.fixture(autouse=True)
def unchanged() -> Iterator[None]:
    before = knobs.compilation.listener
    yield
    assert knobs.compilation.listener is before


def test_a_right_kernel_is_proved_where_it_is_compiled() -> None:
    with rota.triton.judge(report=False) as judging:
        make(meets=True)  # a warning would be an error here
    (kernel,) = judging.kernels.values()
    assert kernel.verdict is not None
    assert (kernel.name, kernel.threads, kernel.verdict.status) == ("turned", 256, Status.PROVED)


def test_a_racy_kernel_is_warned_of_at_the_line_that_compiles_it() -> None:
    with rota.triton.judge(report=False) as judging, pytest.warns(rota.triton.KernelFindingWarning) as caught:
        make(meets=False)
    (kernel,) = judging.kernels.values()
    assert [each.code for each in kernel.findings] == ["I109"]
    assert [(Path(each.filename), "I109" in str(each.message)) for each in caught] == [(Path(__file__), True)]


def test_a_finding_is_an_error_by_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    with rota.triton.judge(raises=True, report=False) as judging:
        for _ in range(2):  # Triton's cache has it by then, and so has rota
            with pytest.raises(IsaError) as caught:
                make(meets=False)
            assert caught.value.findings[0].code == "I109"
    assert judging.repeated == 1
    monkeypatch.setenv(rota.triton.SETTING, "error")
    with rota.triton.judge(report=False) as judging:
        assert judging.raises


def test_equal_machine_code_is_proved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    proofs: list[object] = []

    def count(*args: Any, **kwargs: Any) -> tuple[Verdict, ...]:
        proofs.append(args)
        return prove_object(*args, **kwargs)

    monkeypatch.setattr(rota.triton, "prove_object", count)
    with rota.triton.judge(report=False) as judging:
        make(meets=True)
        make(meets=True)
    assert (len(proofs), len(judging.kernels), judging.repeated) == (1, 1, 1)


def test_a_launch_compiles_and_is_judged() -> None:
    x, y, out = torch.ones(300), torch.ones(300), torch.zeros(300)
    add.device_caches.clear()
    with rota.triton.judge(report=False) as judging:
        add[(2,)](x, y, out, 300, BLOCK=256)
        add[(2,)](x, y, out, 300, BLOCK=256)  # Triton has it in memory
    assert bool((out == 2).all())
    assert [each.outcome for each in judging.kernels.values()] == ["proved"]
    assert judging.repeated == 0


@pytest.mark.parametrize("filtered", ["always", "error"])
def test_a_proof_that_fails_breaks_nothing(monkeypatch: pytest.MonkeyPatch, filtered: str) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("of the proof")

    monkeypatch.setattr(rota.triton, "prove_object", fail)
    with rota.triton.judge(raises=True, report=False) as judging, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(filtered)  # type: ignore[arg-type]  # one of its words
        make(meets=False)
    (kernel,) = judging.kernels.values()
    assert (kernel.outcome, kernel.findings) == ("not judged", ())
    assert "ZeroDivisionError" in kernel.problem
    assert [each.category for each in caught] == [rota.triton.UnjudgedKernelWarning] * (filtered == "always")
    assert "ZeroDivisionError" in str(judging)


def test_a_proof_that_ends_early_is_named() -> None:
    with (
        rota.triton.judge(budget=Budget(steps=3), report=False) as judging,
        pytest.warns(rota.triton.UnjudgedKernelWarning),
    ):
        make(meets=True)
    (kernel,) = judging.kernels.values()
    assert kernel.outcome == "inconclusive"
    assert kernel.unknown


def test_a_file_that_is_gone_breaks_nothing() -> None:
    target = SimpleNamespace(backend="hip", arch="gfx950", warp_size=64)
    metadata = {"target": target, "name": "lost", "shared": 0, "num_warps": 4}
    with rota.triton.judge(report=False) as judging:
        with pytest.warns(rota.triton.UnjudgedKernelWarning):
            judging(metadata=metadata, metadata_group={"lost.hsaco": "/nowhere/lost.hsaco"})
        with pytest.warns(rota.triton.UnjudgedKernelWarning):
            judging(metadata={"target": target}, metadata_group={})
    assert {each.outcome for each in judging.kernels.values()} == {"not judged"}


def test_other_targets_and_other_listeners_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[dict[str, object]] = []
    monkeypatch.setattr(knobs.compilation, "listener", lambda **told: heard.append(told))
    metadata = {"target": SimpleNamespace(backend="cuda", arch=90, warp_size=32)}
    with rota.triton.judge(report=False) as judging:
        judging(metadata=metadata, metadata_group={}, cache_hit=True)
    assert judging.kernels == {}
    assert heard == [{"metadata": metadata, "metadata_group": {}, "cache_hit": True}]


def test_a_second_call_shares_what_was_judged() -> None:
    with rota.triton.judge(report=False) as first:
        make(meets=True)
        with rota.triton.judge(raises=True, report=False) as second:
            make(meets=True)
        assert second.kernels is first.kernels
        assert (first.repeated, second.repeated) == (0, 1)


def test_a_setting_that_means_nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(rota.triton.SETTING, "maybe")
    with pytest.raises(DeclarationError) as caught:
        rota.triton.judge()
    assert caught.value.findings[0].code == "D102"
    worded(caught.value)


def test_a_script_is_judged_without_a_change(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(KERNELS + "\nimport sys\nmake(True)\nmake(False)\nprint(sys.argv[1:])\n")
    command = [sys.executable, "-m", "rota.triton", "script.py", "--flag"]
    run = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, "['--flag']\n"), run.stderr
    assert "KernelFindingWarning" in run.stderr
    assert OUTCOMES.findall(run.stderr) == [("2", "1", "1")]
    raised = subprocess.run(
        command, cwd=tmp_path, env=environment(ROTA_CHECK_TRITON="error"), capture_output=True, text=True, check=False
    )
    assert raised.returncode == 1
    assert "I109" in raised.stderr


@pytest.mark.parametrize(("setting", "workers", "status"), [("1", 0, 0), ("1", 2, 0), ("error", 0, 1)])
def test_a_variable_judges_what_tests_compile(
    pytester: pytest.Pytester, setting: str, workers: int, status: int
) -> None:
    pytester.makepyfile(KERNELS + "\ndef test_right(): make(True)\ndef test_wrong(): make(False)\n")
    run = run_pytest(pytester, setting, workers)
    assert run.returncode == status, run.stdout + run.stderr
    assert OUTCOMES.findall(run.stdout) == [("2", "1", "1")], run.stdout
    assert ("KernelFindingWarning" in run.stdout) == (setting == "1")


@pytest.mark.parametrize(("setting", "status"), [("0", 0), ("maybe", 4)])
def test_a_variable_that_asks_for_nothing(pytester: pytest.Pytester, setting: str, status: int) -> None:
    pytester.makepyfile("def test_nothing(): pass\n")
    run = run_pytest(pytester, setting, 0)
    assert (run.returncode, "INTERNALERROR" in run.stdout + run.stderr) == (status, False)
    assert "judged" not in run.stdout


def run_pytest(pytester: pytest.Pytester, setting: str, workers: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", PLUGIN, "-p", "no:cacheprovider", "-n", str(workers)]
    env = environment(ROTA_CHECK_TRITON=setting)
    return subprocess.run(command, cwd=pytester.path, env=env, capture_output=True, text=True, check=False)


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT))), **more}
