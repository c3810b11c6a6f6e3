"""Nothing but the devices themselves and the kernels written for them names a device or an architecture in code.

Looked at are identifiers, imported modules and strings.  Comments and docstrings may name what they like, and so may
the examples of a command's help.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.no_cover  # it reads rota and runs none of it

SOURCE = Path(__file__).parents[2] / "src" / "rota"
DEVICE = re.compile(r"gfx\d|cdna\d|(?<![a-z0-9])mi\d{3}[a-z]?(?![a-z0-9])", re.IGNORECASE)

AT_HOME = {"targets": "devices", "kernels": "the catalogue of shipped kernels, each written for a device"}
EXCEPTIONS = {"languages/gluon.py": "Triton's own names of a generation's module and number, which source must say"}
HELP = frozenset({"epilog", "help"})  # arguments that hold what a user reads, examples included


def named(source: str) -> Iterator[tuple[int, str]]:
    """Lines and words that name a device."""
    tree = ast.parse(source)
    excused = {id(each) for node in ast.walk(tree) for each in _not_code(node)}
    for node in ast.walk(tree):
        if id(node) not in excused:
            yield from ((getattr(node, "lineno", 0), word) for word in _words(node) if DEVICE.search(word))


def _not_code(node: ast.AST) -> Iterator[ast.AST]:
    """Strings that stand by themselves, as docstrings do, and the texts of a command's help."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        yield node.value
    if isinstance(node, ast.keyword) and node.arg in HELP:
        yield from ast.walk(node.value)


def _words(node: ast.AST) -> Iterator[str]:
    for _, value in ast.iter_fields(node):
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, str):
                yield each
            elif isinstance(each, bytes):
                yield each.decode("latin-1")


def modules() -> list[Path]:
    return [path for path in sorted(SOURCE.rglob("*.py")) if path.relative_to(SOURCE).parts[0] not in AT_HOME]


def test_no_module_names_a_device() -> None:
    assert len(modules()) > 150
    found = [
        f"{path.relative_to(SOURCE)}:{line}: {word[:80]}"
        for path in modules()
        for line, word in named(path.read_text("utf-8"))
        if str(path.relative_to(SOURCE)) not in EXCEPTIONS
    ]
    assert found == []


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_an_exception_is_needed(name: str) -> None:
    assert [*named((SOURCE / name).read_text("utf-8"))]


@pytest.mark.parametrize(
    "line",
    [
        'ARCH = "gfx950"',
        'ARCH = b"gfx950"',
        "from rota.targets.cdna4 import MI355X as device",
        "import rota.targets.cdna4",
        "rota.GFX942",
        "def mi300x_only(): ...",
        "f(machine=GFX950)",
        "f(mi325x=1)",
        "print(f'on MI300A: {x}')",
        "def f(gfx1100): ...",
    ],
)
def test_a_device_in_code_is_found(line: str) -> None:
    assert [*named(line)]


@pytest.mark.parametrize(
    "line",
    [
        '"""For MI355X (gfx950)."""',
        "x = 1  # as on gfx950",
        'command(epilog="rota targets mi355x")',
        "smi300 = mix = admin355 = 1",
        "from rota.targets.cdna import LANES",
    ],
)
def test_prose_help_and_other_words_are_not(line: str) -> None:
    assert not [*named(line)]
