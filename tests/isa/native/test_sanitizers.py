"""The native core, built with AddressSanitizer and UndefinedBehaviorSanitizer, runs drawn and broken records."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from rota.isa.native import records
from tests.sanitized import sanitised

pytestmark = pytest.mark.thorough  # builds the core

SOURCES = Path(records.__file__).parent

REPORT = re.compile(r"ERROR: AddressSanitizer|runtime error:")
PROGRAMS, SEED = 400, 20


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return sanitised(tmp_path_factory.mktemp("core") / records.NAME, SOURCES.glob("*.c"))


def fuzz(environment: dict[str, str], *arguments: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.isa.native.fuzz", *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_nothing_leaves_its_memory(environment: dict[str, str]) -> None:
    done = fuzz(environment, PROGRAMS, SEED)
    assert not REPORT.search(done.stderr), done.stderr[-4000:]
    assert done.returncode == 0, done.stderr[-4000:]
    assert int(re.findall(r"(\d+) of them", done.stdout)[0]) > PROGRAMS // 2


def test_what_does_is_reported(environment: dict[str, str]) -> None:
    done = fuzz(environment, 0, 0)
    assert REPORT.search(done.stderr)
    assert done.returncode != 0
