"""A Ray cluster on this machine: two workers, one of which is killed."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rota.errors import ToolchainError
from rota.tune.dispatch_table import table_files
from rota.tune.tune_library import library_in, tune_library
from rota.workers.ray_pool import RayPool
from tests.findings.smallest import raised
from tests.tune.on_ray import SPACE
from tests.tune.spaces import SHAPES, space

pytestmark = pytest.mark.thorough  # searches, in processes of its own

ROOT = Path(__file__).parents[2]


def test_a_cluster_of_two_workers_computes_all_though_one_is_killed(tmp_path: Path) -> None:
    flag, folder = tmp_path / "flag", tmp_path / "lib"
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
    environment = os.environ | {"ROTA_TEST_FLAG": str(flag), "PYTHONPATH": path, "RAY_USAGE_STATS_ENABLED": "0"}
    run = subprocess.run(
        [sys.executable, "-m", "tests.tune.on_ray", str(folder)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert flag.exists()  # a worker was killed, once
    # Ray may say before it that a worker died, and that it tries again.
    rows = [line.split() for line in run.stdout.splitlines()[-3:]]
    assert rows == [["fatal_to_a_node", "proved"], ["slow", "proved"], ["2", "computed"]]
    again = tune_library(SHAPES, SPACE, folder)  # without Ray: the store is the same
    assert again.tally.done == 0
    assert table_files(again) == table_files(library_in(folder))


def test_without_ray_there_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ToolchainError) as caught:
        tune_library(SHAPES, space(tile="64x64x64"), tmp_path, pool=RayPool(None, 1))
    assert caught.value.findings[0].code == "T301"


@pytest.mark.filterwarnings("ignore")  # Ray's own, when it is imported
def test_no_cluster_at_an_address(tmp_path: Path) -> None:
    pool = RayPool("127.0.0.1:1", 1)
    finding = raised("S305", lambda: tune_library(SHAPES, space(tile="64x64x64"), tmp_path, pool=pool))
    assert "127.0.0.1:1" in finding.message
    gc.collect()  # what importing Ray leaves open is warned about here, and not in another test
