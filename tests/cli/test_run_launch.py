from __future__ import annotations

from pathlib import Path

import pytest

from rota.isa.binary.toolchain import find_toolchain
from tests.cli.command import data, rota
from tests.wording.golden import mentions, worded

pytestmark = pytest.mark.thorough  # compiles, or starts commands

SOURCE = """#include "factor.h"
extern "C" __attribute__((global)) void twice(const float* x, float* y) {
  int i = __builtin_amdgcn_workitem_id_x(); y[i] = FACTOR * x[i];
}"""
LAUNCHES = """import numpy as np

def launch(expected=2):
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    return {"args": [x, y], "block": 64, "expected": {1: expected * x}}

def wrong():
    return launch(3)

number = 7
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "twice.hip").write_text(SOURCE)
    (tmp_path / "factor.h").write_text("#define FACTOR 2")
    (tmp_path / "launches.py").write_text(LAUNCHES)
    code = find_toolchain().compile(SOURCE.replace('#include "factor.h"', "#define FACTOR 2"), "gfx942")
    (tmp_path / "twice.hsaco").write_bytes(code.hsaco)
    return tmp_path


@pytest.mark.usefixtures("_toolchain")
def test_a_code_object_is_launched_as_a_function_says(folder: Path) -> None:
    result = rota(f"run {folder}/twice.hsaco --launch {folder}/launches.py:launch --orders 4")
    assert result.exit_code == 0, result.output
    worded(result.stdout)
    assert mentions(result.stdout, "twice.hsaco", "gfx942")
    given = data(f"run {folder}/twice.hsaco --launch {folder}/launches.py:wrong --orders 1", status=1)
    assert [finding["code"] for finding in given["findings"]] == ["I123"]
    assert given["ok"] is False


@pytest.mark.usefixtures("_toolchain")
def test_hip_source_is_compiled_with_what_lies_beside_it(folder: Path) -> None:
    result = rota(f"run {folder}/twice.hip --device mi355x --launch {folder}/launches.py:launch --orders 1")
    assert result.exit_code == 0, result.output
    worded(result.stdout)
    assert mentions(result.stdout, "twice.hip", "gfx950")
    result = rota(f"run {folder}/twice.hip --launch {folder}/launches.py:launch")
    assert (result.exit_code, "--device" in result.output) == (2, True)


@pytest.mark.usefixtures("_toolchain")
@pytest.mark.parametrize("launch", ["launches.py:lunch", "launches.py:number", "nothing.py:launch", "launches"])
def test_a_function_that_is_not_there_is_a_usage_error(folder: Path, launch: str) -> None:
    assert rota(f"run {folder}/twice.hsaco --launch {folder}/{launch}").exit_code == 2


@pytest.mark.usefixtures("_toolchain")
def test_a_file_or_kernel_that_is_not_there(folder: Path) -> None:
    assert rota(f"run {folder}/thrice.hsaco --launch {folder}/launches.py:launch").exit_code == 2
    result = rota(f"run {folder}/twice.hsaco --name thrice --launch {folder}/launches.py:launch")
    assert (result.exit_code, result.stderr.startswith("error[T103]")) == (1, True)


RACE = """extern "C" __attribute__((global)) void twice(const float* x, float* y) {
  static __attribute__((shared)) float lds[128];
  int i = __builtin_amdgcn_workitem_id_x();
  lds[i] = x[i];
  __builtin_amdgcn_s_barrier();
  y[i] = 2 * lds[127 - i];
}"""


@pytest.mark.usefixtures("_toolchain")
def test_a_race_in_source_is_annotated_at_both_lines(folder: Path) -> None:
    (folder / "race.hip").write_text(RACE)
    launch = "import numpy as np\nrace = lambda: {'args': [np.zeros(128, np.float32)] * 2, 'block': 128}\n"
    (folder / "launches.py").write_text(launch)
    line = f"run {folder}/race.hip --device gfx942 --launch {folder}/launches.py:race --orders 2 --format github"
    result = rota(line, GITHUB_WORKSPACE=str(folder))
    assert result.exit_code == 1, result.output
    assert "::error file=race.hip,line=6,title=rota I109::" in result.stdout
    assert "::notice file=race.hip,line=4,title=rota I109::" in result.stdout
    assert all(each.startswith("::") for each in result.stdout.splitlines())
    result = rota(f"run {folder}/twice.hsaco --name thrice --launch {folder}/launches.py:race --format github")
    assert (result.exit_code, result.stdout.startswith("::error title=rota T103::")) == (1, True)
