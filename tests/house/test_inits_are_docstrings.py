"""Inner `__init__.py` hold a docstring and nothing else; every module says what it is for."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "rota"
MODULES = sorted(PACKAGE.rglob("*.py"))
SURFACES = (PACKAGE, PACKAGE / "pipeline")  # the public names, and those of the system that rota comes from
INNER_INITS = [file for file in MODULES if file.name == "__init__.py" and file.parent not in SURFACES]


def _name(file: Path) -> str:
    return str(file.relative_to(PACKAGE))


def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def test_there_are_modules_to_look_at() -> None:
    assert MODULES
    assert INNER_INITS


def test_every_folder_of_the_package_has_an_init() -> None:
    folders = {file.parent for file in MODULES}
    assert {_name(folder) for folder in folders if not (folder / "__init__.py").is_file()} == set()


@pytest.mark.parametrize("file", INNER_INITS, ids=_name)
def test_an_inner_init_holds_a_docstring_only(file: Path) -> None:
    tree = _tree(file)
    assert ast.get_docstring(tree)
    assert [type(statement).__name__ for statement in tree.body] == ["Expr"]


@pytest.mark.parametrize("file", MODULES, ids=_name)
def test_a_module_has_a_docstring(file: Path) -> None:
    assert ast.get_docstring(_tree(file))
