from __future__ import annotations

from pathlib import Path

from rota.tune.tune_library import Store
from tests.findings.smallest import raised


def test_a_file_where_a_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "library").write_text("")
    raised("S201", lambda: Store(tmp_path / "library", write=True))
