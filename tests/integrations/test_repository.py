"""A project uses rota: its action, its hook, its baseline, its SARIF, and what two commits change."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]
from sarif_pydantic import Sarif

from tests.integrations.repository import ROOT, Repository

pytestmark = pytest.mark.thorough  # compiles, in processes


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    Repository(folder)
    return folder


@pytest.fixture
def project(made: Path, tmp_path: Path) -> Repository:
    shutil.copytree(made, tmp_path / "project")
    repository = Repository.__new__(Repository)
    repository.folder = tmp_path / "project"
    return repository


def log(project: Repository) -> Sarif:
    return Sarif.model_validate_json((project.folder / "rota.sarif").read_text())


def test_what_the_baseline_knows_passes(project: Repository) -> None:
    known = json.loads((project.folder / "known.json").read_text())["known"]
    assert [(each["file"], each["kernel"], each["code"]) for each in known] == [("tile.hip", "tile_swap", "I109")]
    done = project.act()
    assert (done.status, done.annotations()) == (0, [])
    assert log(project).runs[0].results == []


def test_a_comment_changes_nothing(project: Repository) -> None:
    project.change("tile.hip", "extern", "// a comment more\n\nextern")
    project.change("mean.hip", "  float sum = 0;", "  // a comment more\n  float sum = 0;")
    project.commit("say more")
    done = project.act()
    assert (done.status, done.annotations()) == (0, [])


def test_a_barrier_less_is_one_annotation_on_its_line(project: Repository) -> None:
    project.change("mean.hip", "  __syncthreads();\n", "")
    project.commit("drop a barrier")
    done = project.act()
    assert done.status == 1
    (said,) = done.annotations()
    found = re.match(r"::error file=mean\.hip,line=(\d+),title=rota I109::", said)
    assert found
    lines = (project.folder / "mean.hip").read_text().splitlines()
    assert "part[" in lines[int(found[1]) - 1]
    (result,) = log(project).runs[0].results
    assert (result.rule_id, result.locations[0].physical_location.artifact_location.uri) == ("I109", "mean.hip")
    assert log(project).runs[0].tool.driver.version


def test_two_kernels_of_one_name_are_two(project: Repository) -> None:
    (project.folder / "copy").mkdir()
    shutil.copy(project.folder / "tile.hip", project.folder / "copy" / "tile.hip")
    done = project.act()
    assert done.status == 1
    assert [line.partition(",")[0] for line in done.annotations()] == ["::error file=copy/tile.hip"]


def test_the_hook_checks_the_files_that_it_is_given(project: Repository) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    changed = [name for name in ("mean.hip", "rota.toml", "known.json") if re.search(hook["files"], name)]
    assert changed == ["mean.hip"]
    assert project.run(*hook["entry"].split(), *changed).status == 0
    project.change("mean.hip", "  __syncthreads();\n", "")
    assert project.run(*hook["entry"].split(), *changed).status == 1


CMAKE = """cmake_minimum_required(VERSION 3.20)
project(kernels CXX)
enable_testing()
include({module})
add_library(kernels OBJECT mean.hip host.cpp)
set_source_files_properties(mean.hip PROPERTIES LANGUAGE CXX)
target_compile_definitions(kernels PRIVATE ROWS=1)
rota_check(kernels DEVICE mi355x OPTIONS --fail-on shown)
"""


def test_a_target_of_cmake_is_checked_with_its_own_flags(project: Repository) -> None:
    module = ROOT / "src" / "rota" / "integrations" / "rota.cmake"
    (project.folder / "CMakeLists.txt").write_text(CMAKE.format(module=module.as_posix()))
    (project.folder / "host.cpp").write_text("int main() { return 0; }\n")
    project.change("mean.hip", "  __syncthreads();\n", "#ifdef ROWS\n  __syncthreads();\n#endif\n")
    configured = project.run("cmake", "-S", ".", "-B", "build")
    assert configured.status == 0, configured.lines
    assert project.run("cmake", "--build", "build", "--target", "rota_check_kernels").status == 0
    assert project.run("ctest", "--test-dir", "build").status == 0
    project.change("mean.hip", "#ifdef ROWS", "#ifdef COLUMNS")
    failed = project.run("cmake", "--build", "build", "--target", "rota_check_kernels")
    assert failed.status != 0
    assert any("I109" in line for line in failed.lines)
