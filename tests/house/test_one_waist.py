"""Nothing but the front ends asks where a program came from; a module's and a class's name mean one thing.

Both are read from the syntax tree, so that they stay.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.test_inits_are_docstrings import MODULES, PACKAGE

FRONT_ENDS = ("pipeline", "values", "kernels")  # kernels are written in the words of one front end or the other
MOST_BRANCHES = 2  # both in the waist, where a judge selects its rules
ORIGINS = {"loop", "instance", "placement", "modulo"}
KINDS = {"TileSum", "LoopSpec", "OpDesc", "LoopOp", "ScheduleEntry", "CompiledPipeline", "CompiledLoop"}

# Modules: a command of the command line is a module of the command's name, which is also that of what it calls.
COMMANDS = {
    "audit",
    "calibrate",
    "check",
    "diff",
    "emit",
    "kernels",
    "memory",
    "predict",
    "run",
    "show",
    "targets",
    "trace",
}
SAME_MODULES = COMMANDS | {
    "registry"  # one for every kind of thing that can be found by name
}
SAME_CLASSES: set[str] = set()


def branches(tree: ast.AST) -> Iterator[int]:
    """Lines that ask how a program was made: by what only one way in has, by depth, or by its class."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            left, right = node.left, node.comparators[0]
            asked = getattr(left, "attr", getattr(left, "id", ""))
            is_none = isinstance(right, ast.Constant) and right.value is None
            if asked in ORIGINS and is_none and isinstance(node.ops[0], ast.Is | ast.IsNot):
                yield node.lineno
            if asked == "depth" and isinstance(right, ast.Constant) and right.value in (1, 2):
                yield node.lineno
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
            named = {getattr(each, "id", "") for each in ast.walk(node.args[1])}
            if named & KINDS:
                yield node.lineno


def outside_the_front_ends() -> list[Path]:
    return [file for file in MODULES if file.relative_to(PACKAGE).parts[0] not in FRONT_ENDS]


def test_few_places_ask_where_a_program_came_from() -> None:
    found = [
        f"{file.relative_to(PACKAGE)}:{line}"
        for file in outside_the_front_ends()
        for line in branches(ast.parse(file.read_text("utf-8")))
    ]
    assert len(found) <= MOST_BRANCHES, found


@pytest.mark.parametrize(
    "text",
    [
        "if compiled.loop is None: pass",
        "x = 1 if effect.instance is not None else 2",
        "if config.depth < 2: pass",
        "if isinstance(program.semantics, TileSum): pass",
        "isinstance(op, (int, OpDesc))",
    ],
)
def test_such_a_place_is_seen(text: str) -> None:
    assert list(branches(ast.parse(text))) == [1]


def test_a_modules_name_means_one_thing() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for file in MODULES:
        if file.name != "__init__.py":
            homes[file.stem].append(str(file.relative_to(PACKAGE)))
    twice = {name: files for name, files in homes.items() if len(files) > 1 and name not in SAME_MODULES}
    assert twice == {}


def test_a_classs_name_means_one_thing() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for file in MODULES:
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(file.relative_to(PACKAGE)))
    twice = {name: files for name, files in homes.items() if len(files) > 1 and name not in SAME_CLASSES}
    assert twice == {}
