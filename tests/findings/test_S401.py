from __future__ import annotations

from pathlib import Path

from rota.tune.tune_library import library_in
from tests.findings.smallest import raised


def test_a_folder_without_a_library(tmp_path: Path) -> None:
    assert tmp_path.name in raised("S401", lambda: library_in(tmp_path)).message
