"""What tests import is no benchmark: `benchmarks/` holds commands alone."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]


def imported(source: str) -> set[str]:
    """The modules that a source imports, whole names."""
    nodes = list(ast.walk(ast.parse(source)))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return plain | {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}


def test_no_test_imports_a_benchmark() -> None:
    files = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "src").rglob("*.py")]
    guilty = [str(file.relative_to(ROOT)) for file in files if "benchmarks" in _roots(file.read_text("utf-8"))]
    assert guilty == []
    assert "benchmarks" in _roots("def late():\n    from benchmarks.zoo import rows\n")


def test_every_benchmark_is_a_command() -> None:
    files = [file for file in (ROOT / "benchmarks").glob("*.py") if file.name != "__init__.py"]
    assert files
    assert [file.name for file in files if 'if __name__ == "__main__":' not in file.read_text("utf-8")] == []


def _roots(source: str) -> set[str]:
    return {name.partition(".")[0] for name in imported(source)}
