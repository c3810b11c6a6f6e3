"""Which kernels `rota diff` compares, and what it calls them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import data, rota
from tests.wording.golden import mentions, worded

pytestmark = pytest.mark.thorough  # runs for seconds

FILE = """
from dataclasses import replace

from rota.kernels.gemm import GEMM_SHAPES

from common_for_test import DEPTH

gemm = replace(GEMM_SHAPES[2], depth=DEPTH)
"""


@pytest.fixture
def _two_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, depth in (("old", 64), ("new", 128)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.py").write_text(FILE)
        (tmp_path / name / "common_for_test.py").write_text(f"DEPTH = {depth}")
    monkeypatch.chdir(tmp_path)


def titles(line: str) -> tuple[str, str]:
    given = data(f"diff {line} --set instructions=false")
    return given["before"], given["after"]


@pytest.mark.usefixtures("_two_folders")
def test_equal_names_are_told_apart_by_their_files() -> None:
    given = data("diff old/mine.py:gemm new/mine.py:gemm --set instructions=false")
    assert given["before"] == "old/mine.py:gemm instructions=false"
    assert given["after"] == "new/mine.py:gemm instructions=false"
    clocks = given["figures"][0]
    assert clocks["after"] > 1.5 * clocks["before"], "each file has its own neighbour, whose depth is twice the other's"


def test_with_two_kernels_settings_apply_to_both() -> None:
    assert titles("gemm_small gemm_8wave") == ("gemm_small instructions=false", "gemm_8wave instructions=false")


def test_with_one_kernel_settings_apply_to_what_comes_after() -> None:
    assert titles("gemm_small") == ("gemm_small", "gemm_small instructions=false")


def test_a_setting_that_one_of_them_has_applies_to_that_one() -> None:
    assert titles("gemm_small ping_pong") == ("gemm_small instructions=false", "ping_pong")


@pytest.mark.parametrize("second", ["", "ping_pong"])
def test_a_setting_that_none_of_them_has_is_refused(second: str) -> None:
    refused = rota(f"diff gemm_small {second} --set shape.dept=128")
    assert refused.exit_code == 2
    worded(refused.output)
    assert mentions(refused.output, "gemm_small", "shape.depth")
