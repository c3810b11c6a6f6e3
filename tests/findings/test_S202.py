from __future__ import annotations

from pathlib import Path

from rota.tune.tune_library import Store
from tests.findings.smallest import raised


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / Store.FILE).write_text("not a database" * 100)
    raised("S202", lambda: Store(tmp_path, write=True))
