"""What tests import is no benchmark: `benchmarks/` holds commands alone."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
_IMPORT = re.compile(r"^\s*(?:from|import) benchmarks\b", re.MULTILINE)


def test_no_test_imports_a_benchmark() -> None:
    files = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "src").rglob("*.py")]
    assert [str(file.relative_to(ROOT)) for file in files if _IMPORT.search(file.read_text("utf-8"))] == []


def test_an_import_of_one_is_noticed() -> None:
    name = "benchmarks"
    assert _IMPORT.search(f"def late():\n    from {name}.zoo import rows\n")
    assert _IMPORT.search(f"import os\nimport {name}.zoo\n")
    assert not _IMPORT.search(f"command = 'python -m {name}.zoo'\n")


def test_every_benchmark_is_a_command() -> None:
    files = [file for file in (ROOT / "benchmarks").glob("*.py") if file.name != "__init__.py"]
    assert files
    assert [file.name for file in files if 'if __name__ == "__main__":' not in file.read_text("utf-8")] == []
