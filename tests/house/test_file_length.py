"""A module holds an algorithm or a noun whole: 200 to 800 lines are normal, 1,000 need a reason."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
MOST_LINES = 1000


def test_every_python_file_is_at_most_1000_lines_long() -> None:
    files = [file for folder in ("src", "tests", "benchmarks") for file in (ROOT / folder).rglob("*.py")]
    assert files
    lengths = {str(file.relative_to(ROOT)): len(file.read_text(encoding="utf-8").splitlines()) for file in files}
    assert {file: length for file, length in lengths.items() if length > MOST_LINES} == {}
