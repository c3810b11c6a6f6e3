"""What is known of an opcode stands in one table: no other module takes an opcode's name apart."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import rota

SOURCE = Path(rota.__file__).parent
FOLDERS = ("isa", "prove", "audit", "lift", "predict", "cycles", "program")
TABLE = "isa/opcodes.py"
NAMES = frozenset({"opcode", "mnemonic"})
TAKES_APART = frozenset({
    "startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition", "split", "replace", "find",
})  # fmt: skip
PATTERN = re.compile(r"^\^?(?:\(\?:|\()*(?:[sv]_|ds_|buffer|global_|flat_|scratch_|tbuffer)")


def _is_name(node: ast.expr) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr in NAMES) or (isinstance(node, ast.Name) and node.id in NAMES)


def _expressions(text: str) -> Iterator[tuple[int, str]]:
    """Expressions over an opcode's name: methods that take it apart, parts of it, words in it, patterns of names."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            asks = node.func.attr in TAKES_APART and _is_name(node.func.value)
            matches = node.func.attr in {"match", "search", "fullmatch"} and any(map(_is_name, node.args))
            if asks or matches:
                yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Subscript) and _is_name(node.value):
            yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Compare) and isinstance(node.left, ast.Constant):
            inside = any(isinstance(op, ast.In | ast.NotIn) for op in node.ops)
            yield from [(node.lineno, ast.unparse(node))] if inside and any(map(_is_name, node.comparators)) else []
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"re.compile", "re.match", "re.search"}:
            first = node.args[0]
            if isinstance(first, ast.Constant) and PATTERN.match(str(first.value)):
                yield node.lineno, ast.unparse(node)


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_module_takes_an_opcodes_name_apart(folder: str) -> None:
    found = [
        f"{file.relative_to(SOURCE)}:{line}: {text}"
        for file in sorted((SOURCE / folder).rglob("*.py"))
        if str(file.relative_to(SOURCE)) != TABLE
        for line, text in _expressions(file.read_text())
    ]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        'each.opcode.startswith("v_")',
        'instruction.mnemonic.partition("_")',
        '"_dpp" in opcode',
        "opcode[2:]",
        "_SUMS.match(each.opcode)",
        're.compile(r"^v_(?:add|sub)_u32$")',
        're.compile("ds_read")',
    ],
)
def test_such_an_expression_is_found(text: str) -> None:
    assert [*_expressions(text)]


@pytest.mark.parametrize(
    "text",
    [
        "opcode in TABLE",
        'opcode == "s_nop"',
        "TABLE[each.opcode]",
        'finding.message.startswith("the kernel")',
        're.compile("[0-9]+")',
    ],
)
def test_looking_a_name_up_is_none(text: str) -> None:
    assert not [*_expressions(text)]
