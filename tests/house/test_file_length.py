"""A module defines one noun or one verb; 400 lines are enough for that."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
MOST_LINES = 400


def test_every_python_file_is_at_most_400_lines_long() -> None:
    files = [file for folder in ("src", "tests", "benchmarks") for file in (ROOT / folder).rglob("*.py")]
    assert files
    lengths = {str(file.relative_to(ROOT)): len(file.read_text(encoding="utf-8").splitlines()) for file in files}
    assert {file: length for file, length in lengths.items() if length > MOST_LINES} == {}
