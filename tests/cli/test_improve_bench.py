"""`rota improve --write-bench` and `--measure`: what is written, run against the stand-in, and read back."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rota.improve import improved_kernel
from rota.improve.improved_kernel import ImprovedKernel, improve_kernel
from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.toolchain import read_object
from tests.bench.host import read_calls, run_folder
from tests.cli.command import data, rota
from tests.lint.linted import compiled
from tests.shared import shared
from tests.wording.golden import mentions, worded

pytestmark = pytest.mark.thorough  # searches for seconds

KERNEL = "kernels/compiled/t_matmul_fp32.gfx942.hsaco"
LAUNCHES = """import numpy as np

def small(**changes):
    a, b, c = (np.ones(sides, np.float32) for sides in ((128, 64), (64, 128), (128, 128)))
    args = [a, b, c, 128, 128, 64, 64, 128, 128, None, None]
    return {"args": args, "grid": 4, "block": 256, "dynamic_lds": 16384} | changes

def wide():
    return small(block=1024)

def odd():
    return small(unknown=1)

number = 7
"""


@cache
def _improved(hsaco: bytes, name: str, device: Any, **options: Any) -> ImprovedKernel:
    return improve_kernel(read_object(hsaco), name, device, **options)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With launches, in which a search is done once for all tests."""

    def improve_once(code: CodeObject, name: str, device: Any, **options: Any) -> ImprovedKernel:
        return _improved(code.hsaco, name, device, **options)

    monkeypatch.setattr(improved_kernel, "improve_kernel", improve_once)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "launches.py").write_text(LAUNCHES)
    (tmp_path / "k.hsaco").write_bytes(shared(KERNEL).read_bytes())
    return tmp_path


def written(folder: Path, **settings: object) -> Path:
    """The benchmark's folder, after it ran with two rounds of seven."""
    result = rota("improve k.hsaco -o better.hsaco --launch launches.py:small --write-bench bench")
    assert result.exit_code == 0, result.output
    (folder / "better.hsaco").unlink()
    run_folder(folder / "bench", "--rounds", "14", **settings)
    return folder / "bench"


def measured_part(output: str) -> str:
    """Without the predictions above it, which are the model's business."""
    return worded("".join(output.partition("  measured")[1:]))


def test_the_benchmark_holds_both_objects_and_the_launch(folder: Path) -> None:
    result = rota("improve k.hsaco -o better.hsaco --launch launches.py:small --write-bench bench")
    assert mentions(worded(result.output.splitlines()[-1]), "bench", "--measure")
    names = sorted(path.name for path in (folder / "bench").iterdir())
    data_files = [f"case0_buffer{number}.bin" for number in range(3)]
    assert names == sorted(
        ["Makefile", "README.md", "after.hsaco", "before.hsaco", "bench.cpp", "plan.txt", *data_files]
    )
    assert (folder / "bench/before.hsaco").read_bytes() == (folder / "k.hsaco").read_bytes()
    assert (folder / "bench/after.hsaco").read_bytes() == (folder / "better.hsaco").read_bytes()
    assert (folder / "bench/case0_buffer0.bin").stat().st_size == 4 * 128 * 64
    assert "@" not in (folder / "bench/README.md").read_text()
    run_folder(folder / "bench")
    launch = next(call.split() for call in read_calls(folder / "bench") if call.startswith("hipModuleLaunch"))
    assert launch[2:9] == ["4", "1", "1", "256", "1", "1", "16384"]


def test_a_measurement_that_is_faster_stands_beside_the_prediction(folder: Path) -> None:
    written(folder, US="100,90", NOISE=4)
    result = rota("improve k.hsaco -o better.hsaco --measure bench/results.csv")
    assert result.exit_code == 0, result.output
    assert mentions(measured_part(result.output), "faster", "2100", "gfx942", "results.csv")
    assert "(predicted)" in result.output.partition("  measured")[0]
    assert (folder / "better.hsaco").read_bytes() == (folder / "bench/after.hsaco").read_bytes()
    found = data("improve k.hsaco --measure bench/results.csv")
    assert (found["measured"]["decision"], found["measured"]["bits"]) == ("faster", "same")
    assert [each["rounds"] for each in found["measured"]["pairs"]] == [14, 14]
    assert found["kernels"][0]["clocks"] < found["kernels"][0]["before"]


def test_a_measurement_that_decides_nothing_says_so(folder: Path) -> None:
    written(folder, US="100,100", NOISE=4)
    result = rota("improve k.hsaco -o better.hsaco --measure bench/results.csv")
    assert (result.exit_code, (folder / "better.hsaco").exists()) == (0, True)
    measured_part(result.output)
    assert data("improve k.hsaco --measure bench/results.csv")["measured"]["decision"] == "not decided by these runs"


@pytest.mark.parametrize(("settings", "code"), [({"US": "90,100"}, "I610"), ({"WRONG": 1}, "M207")])
def test_what_is_slower_or_not_equal_is_not_handed_over(folder: Path, settings: dict[str, object], code: str) -> None:
    written(folder, **settings)
    found = data("improve k.hsaco -o better.hsaco --measure bench/results.csv", status=1)
    assert ([each["code"] for each in found["refused"]], found["kernels"]) == ([code], [])
    assert not (folder / "better.hsaco").exists()
    measured_part(rota("improve k.hsaco -o better.hsaco --measure bench/results.csv").output)


def test_results_that_vary_are_said_to(folder: Path) -> None:
    written(folder, VARY=1)
    assert data("improve k.hsaco --measure bench/results.csv")["measured"]["bits"] == "vary"


def refused(line: str) -> str:
    result = rota(line)
    assert result.exit_code == 1, result.output
    return result.stderr.split("[")[1][:4]


def test_results_of_others_are_refused(folder: Path) -> None:
    written(folder)
    results = folder / "bench/results.csv"
    text = results.read_text()
    results.write_text(text.replace(text.splitlines()[1].split(",")[0], "0123456789abcdef"))
    assert refused("improve k.hsaco --measure bench/results.csv") == "M206"
    results.write_text(text.replace("gfx942", "gfx950"))
    assert refused("improve k.hsaco --measure bench/results.csv") == "M203"
    results.write_text(text[:-20])
    assert refused("improve k.hsaco --measure bench/results.csv") == "M201"


def test_a_launch_that_does_not_fit_is_refused_before_the_search(folder: Path) -> None:
    for name in ("wide", "odd"):
        assert refused(f"improve k.hsaco --launch launches.py:{name} --write-bench bench") == "I107"
    assert not (folder / "bench").exists()


def test_what_makes_no_benchmark_is_a_usage_error(folder: Path) -> None:
    (folder / "file").write_text("")
    (folder / "results.csv").write_text("")
    for words in (
        "--write-bench bench",
        "--launch launches.py:number --write-bench bench",
        "--launch launches.py:small --write-bench bench --measure results.csv",
        "--measure nowhere.csv",
        "--launch launches.py:small --write-bench file",
        "--launch launches.py:small --write-bench file/below",
    ):
        assert rota(f"improve k.hsaco {words}").exit_code == 2, words


def test_a_benchmark_is_about_one_kernel(folder: Path) -> None:
    body = "void k(float* x) { *x = 1; }\n"
    source = f'{body}extern "C" __attribute__((global, amdgpu_flat_work_group_size(64, 64))) {body.replace("k(", "l(")}'
    (folder / "two.hsaco").write_bytes(compiled(source).hsaco)
    (folder / "results.csv").write_text("")
    assert rota("improve two.hsaco --measure results.csv").exit_code == 2
    assert refused("improve two.hsaco:k --launch launches.py:small --write-bench bench") == "I107"
