"""Without the core: NumPy does the same work, and nothing asks the core what it knows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rota.isa.native.records import pack
from tests.isa.single import loaded
from tests.shared import shared

FOLDER = Path(__file__).parents[3]
TRITON = (
    "tests/triton/test_matmul.py::test_matmul[relu-dtype1]",
    "tests/triton/test_matmul.py::test_matmul_of_a_transposed_matrix",
    "tests/triton/test_softmax.py",
)


def test_no_program_is_packed_for_a_core_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    program = loaded("v_mov_b32_e32 v0, 0\ns_load_dword s4, s[0:1], 0x0")
    assert pack(program) is not None
    monkeypatch.setattr("rota.isa.native.records.opcodes", dict)
    assert pack(program) is None


@pytest.mark.no_cover  # another process, of which no coverage is asked
def test_triton_runs_without_it() -> None:
    """A share, in one process; `.ci/campaigns` runs all of tests/triton so, and benchmarks.same_verdicts."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *TRITON]
    done = subprocess.run(
        command, cwd=FOLDER, env={**os.environ, "ROTA_NATIVE": "0"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert "4 passed" in done.stdout


@pytest.mark.no_cover  # another process, of which no coverage is asked
def test_verdicts_are_the_same_without_it() -> None:
    shared("kernels/compiled/races")
    command = [sys.executable, "-m", "benchmarks.same_verdicts", "--without-core", "races/raw"]
    done = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
