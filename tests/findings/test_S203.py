from __future__ import annotations

from pathlib import Path

from rota.tune.tune_library import Store
from tests.findings.smallest import raised


def test_a_second_writer(tmp_path: Path) -> None:
    with Store(tmp_path, write=True):
        raised("S203", lambda: Store(tmp_path, write=True))
