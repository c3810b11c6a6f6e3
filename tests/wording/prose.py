"""Finds assertions on prose: `python -m tests.wording.prose [FOLDER]` prints them, and how many there are.

A heuristic, on purpose simple.  An assertion is on prose if it compares what a finding, an error or a command says with
a literal that holds two words or more, one of them in lower case.  Names, numbers, options and settings are no words.
Evidence is data: its names don't count, and a value counts from four words on (`x of iteration 1` is none).  Local
variables, columns of `parametrize` and variables of a loop are followed; helpers in other places are not.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

TESTS = Path(__file__).parents[1]
SPOKEN = frozenset({"message", "fixes", "fix", "hint", "evidence", "output", "stdout", "stderr", "reason", "why"})
_CALLS = frozenset({"str", "repr", "evidence"})
_METHODS = frozenset({"startswith", "endswith", "index", "count", "find", "partition", "split"})
_PATTERNS = frozenset({"search", "match", "fullmatch", "findall"})
_WORD = re.compile(r"[A-Za-z][a-z]*(?:'[a-z]+)?|[A-Z]{2,}s?")
_REGEX = re.compile(r"\\.[*+]?|\.[*+]\??|\(\?[:!=<]+")


def is_prose(text: str, words_at_least: int = 2) -> bool:
    """True if it has so many words, one of them in lower case."""
    parts = [part.strip(".,;:!?()[]'\"`|") for part in _REGEX.sub(" ", text).split()]
    words = [part for part in parts if len(part) > 1 and _WORD.fullmatch(part)]
    return len(words) >= words_at_least and any(word.islower() for word in words)


def assertions_on_prose(source: str) -> list[int]:
    """The lines of the assertions on prose in a test module."""
    lines: list[int] = []
    tree = ast.parse(source)
    for node in tree.body:
        for function in ast.walk(node):
            if isinstance(function, ast.FunctionDef):
                lines += _Reader(function).lines()
    return sorted(set(lines))


@dataclass
class _Reader:
    """What the variables of one function hold."""

    function: ast.FunctionDef
    spoken: set[str] = field(default_factory=set)
    literals: dict[str, list[ast.expr]] = field(default_factory=lambda: defaultdict(list))
    evidence: set[str] = field(default_factory=lambda: {"evidence"})

    def lines(self) -> Iterator[int]:
        self._read_columns()
        for _ in range(2):  # a variable may rest on another
            for node in ast.walk(self.function):
                self._read_names(node)
        for node in ast.walk(self.function):
            if isinstance(node, ast.Compare):
                sides = [node.left, *node.comparators]
                spoken = [side for side in sides if self.speaks(side)]
                words = 4 if spoken and all(map(self._is_evidence, spoken)) else 2
                if spoken and any(self.holds_prose(side, words) for side in sides):
                    yield node.lineno
            elif isinstance(node, ast.Call) and self._compares(node):
                yield node.lineno

    def _read_columns(self) -> None:
        for decorator in self.function.decorator_list:
            if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith("parametrize"):
                names = _names(decorator.args[0])
                rows = decorator.args[1].elts if isinstance(decorator.args[1], ast.List | ast.Tuple) else []
                for row in rows:
                    values = (
                        row.args if isinstance(row, ast.Call) and ast.unparse(row.func) == "pytest.param" else [row]
                    )
                    if len(names) > 1 and len(values) == 1:
                        values = list(getattr(values[0], "elts", []))
                    for name, value in zip(names, values, strict=False):
                        self.literals[name].append(value)

    def _read_names(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._bind(target, value)
            case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                self._bind(target, value)

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        names = {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}
        if self.speaks(value):
            self.spoken |= names
            self.evidence |= names if self._is_evidence(value) else set()
        elif isinstance(value, ast.Constant | ast.Tuple | ast.List | ast.Dict):
            for name in names:
                self.literals[name].append(value)

    def _compares(self, call: ast.Call) -> bool:
        if any(word.arg == "match" and self.holds_prose(word.value) for word in call.keywords):
            return True
        if not isinstance(call.func, ast.Attribute):
            return False
        if call.func.attr in _METHODS and self.speaks(call.func.value):
            return any(map(self.holds_prose, call.args))
        called = ast.unparse(call.func)
        if called in {f"re.{name}" for name in _PATTERNS} and len(call.args) > 1:
            return self.speaks(call.args[1]) and self.holds_prose(call.args[0])
        return False

    def speaks(self, value: ast.expr) -> bool:
        """True if a finding, an error or a command says it."""
        for node in ast.walk(value):
            match node:
                case ast.Attribute(attr=name) if name in SPOKEN:
                    return True
                case ast.Call(func=ast.Name(id=name)) if name in _CALLS:
                    return True
                case ast.Name(id=name) if name in self.spoken:
                    return True
        return False

    def holds_prose(self, value: ast.expr, words: int = 2) -> bool:
        """True if it is a literal with prose, or a group of such; names of evidence are none."""
        match value:
            case ast.Constant(value=str(text)):
                return is_prose(text, words)
            case ast.JoinedStr(values=parts):
                text = "".join(str(part.value) if isinstance(part, ast.Constant) else "x1" for part in parts)
                return is_prose(text, words)
            case ast.Tuple(elts=[ast.Constant(value=str()), second]):
                return self.holds_prose(second, words)
            case ast.Tuple(elts=each) | ast.List(elts=each) | ast.Set(elts=each) | ast.Dict(values=each):
                return any(self.holds_prose(one, words) for one in each)
            case ast.Name(id=name):
                return any(self.holds_prose(one, words) for one in self.literals.get(name, ()))
        return False

    def _is_evidence(self, value: ast.expr) -> bool:
        """True if it is made of a finding's evidence."""
        return any(
            (isinstance(node, ast.Attribute) and node.attr == "evidence")
            or (isinstance(node, ast.Name) and node.id in self.evidence)
            for node in ast.walk(value)
        )


def _names(argument: ast.expr) -> list[str]:
    match argument:
        case ast.Constant(value=str(text)):
            return [name.strip() for name in text.split(",")]
        case ast.Tuple(elts=each) | ast.List(elts=each):
            return [str(name.value) for name in each if isinstance(name, ast.Constant)]
    return []


def listed(folder: Path) -> list[tuple[str, int, str]]:
    """Every assertion on prose below a folder: file, line and the line's text."""
    found = []
    for path in sorted(folder.rglob("*.py")):
        source = path.read_text("utf-8")
        lines = source.splitlines()
        name = path.relative_to(folder).as_posix()
        found += [(name, line, lines[line - 1].strip()) for line in assertions_on_prose(source)]
    return found


if __name__ == "__main__":
    shown = listed(Path(sys.argv[1]) if sys.argv[1:] else TESTS)
    for file, line, text in shown:
        print(f"{file}:{line}: {text}")
    print(f"{len(shown)} assertions on prose")
