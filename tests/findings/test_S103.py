from __future__ import annotations

from pathlib import Path

from rota.tune.space import read_shapes
from tests.findings.smallest import raised


def test_a_digit_that_is_a_letter(tmp_path: Path) -> None:
    path = tmp_path / "shapes.csv"
    path.write_text("M,N,K\n4096,4096,4096\n1,4096,4O96\n")
    assert "shapes.csv:3" in raised("S103", lambda: read_shapes(path)).message
