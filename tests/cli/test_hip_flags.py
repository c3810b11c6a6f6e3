"""HIP on the command line: folders, macros, standards, flags after --, and those of a build."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import data, rota

pytestmark = pytest.mark.thorough  # compiles

KERNEL = """#include <hip/hip_runtime.h>
#include "width.h"
extern "C" __global__ __launch_bounds__(256) void k(float* x) {
  __shared__ float tile[256];
  tile[threadIdx.x] = x[threadIdx.x];
#ifdef SYNC
  __syncthreads();
#endif
  x[threadIdx.x] = tile[threadIdx.x ^ WIDTH];
#if __cplusplus < 202002L
#error "old"
#endif
}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.hip").write_text(KERNEL)
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "width.h").write_text("#pragma once\n#define WIDTH 64\n")
    return tmp_path


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ("-I inc -D SYNC", 0),
        ("-I inc -DSYNC=1", 0),
        ("-I inc", 1),
        ("-I inc -- -DSYNC", 0),
        ("-D SYNC -- -I inc -O1", 0),
        ("-I inc -D SYNC --std c++17", 1),
    ],
)
def test_flags_reach_the_compiler(project: Path, options: str, status: int) -> None:
    assert rota(f"check k.hip --device mi355x {options}").exit_code == status


def test_a_header_that_isnt_found_is_named(project: Path) -> None:
    (unread,) = data("check k.hip --device mi355x", status=1)["unread"]
    evidence = dict(unread["findings"][0]["evidence"])
    assert (unread["findings"][0]["code"], evidence["lacking"]) == ("T102", "<width.h>")


def build(project: Path, *words: str) -> None:
    (project / "build").mkdir()
    arguments = ["hipcc", *words, "-c", "../k.hip", "-o", "k.o"]
    entry = {"directory": str(project / "build"), "file": "../k.hip", "arguments": arguments}
    (project / "build" / "compile_commands.json").write_text(json.dumps([entry]))


def test_a_build_says_flags_and_processor(project: Path) -> None:
    build(project, "-I../inc", "-DSYNC", "--offload-arch=gfx942")
    (kernel,) = data("check --build-dir build", status=0)["kernels"]
    assert (kernel["verdict"]["arch"], kernel["verdict"]["status"]) == ("gfx942", "proved")
    (other,) = data("check k.hip --build-dir build --device mi355x", status=0)["kernels"]
    assert other["verdict"]["arch"] == "gfx950"


def test_what_is_typed_wins_over_the_build(project: Path) -> None:
    build(project, "-I../inc", "-DSYNC", "--offload-arch=gfx950")
    assert rota("check k.hip --build-dir build -- -USYNC").exit_code == 1


def test_the_build_of_the_project_is_used_without_a_name(project: Path) -> None:
    build(project, "-I../inc", "-DSYNC", "--offload-arch=gfx950")
    (project / "rota.toml").write_text('build-dir = "build"\n')
    assert rota("check").exit_code == 0
    assert rota("check k.hip").exit_code == 0


def test_nothing_named_is_a_usage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert rota("check").exit_code == 2
    assert rota("check ping_pong -- -O2").exit_code == 2
    assert rota("check k.hip --notes").exit_code == 2
