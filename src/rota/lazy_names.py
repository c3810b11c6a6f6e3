"""Packages whose names are loaded when they are first asked for.

The imports of a package's stub, `__init__.pyi`, say where each name is from; type checkers read the same lines.
"""

from __future__ import annotations

import ast
from pathlib import Path


def read_stub(file: str) -> dict[str, str]:
    """The home module of each name that the stub beside a package's `__init__.py` imports."""
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text("utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}
