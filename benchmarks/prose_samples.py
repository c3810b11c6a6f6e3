"""Docstrings, messages and pages of two trees, side by side, drawn by a seed.

    python -m benchmarks.prose_samples BEFORE AFTER [--seed N] [--docstrings N] [--messages N] [--pages N]

BEFORE and AFTER are git revisions, or `.` for the files as they are.  The draw is from all of BEFORE; the counterpart
in AFTER is the function of the most similar body, since names and modules may have changed.  A page's counterpart has
the same path; its changed lines are printed.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.tree_figures import ROOT, read_tree
from rota.errors import CODES

ALIKE = 0.6
Function = ast.FunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True)
class Part:
    """A function or class: its file, docstring, messages of findings, and the words of its body."""

    path: str
    name: str
    docstring: str
    messages: tuple[tuple[str, str], ...]
    words: Counter[str]


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--seed", type=int, default=34)
    parser.add_argument("--docstrings", type=int, default=20)
    parser.add_argument("--messages", type=int, default=20)
    parser.add_argument("--pages", type=int, default=5)
    options = parser.parse_args(arguments)
    drawn = random.Random(options.seed)
    before, after = (list(_parts(read_tree(each))) for each in (options.before, options.after))
    described = [part for part in before if part.docstring]
    for part in drawn.sample(described, options.docstrings):
        twin = _counterpart(part, after)
        if likeness(part, twin) < ALIKE:
            print(f"{part.name} ({part.path}), now written where it was used\n  before: {part.docstring}\n")
            continue
        print(f"{part.name} ({part.path}), now {twin.name} ({twin.path})")
        print(f"  before: {part.docstring}\n  after:  {twin.docstring or '(none: the name says it)'}\n")
    said = [(part, code, message) for part in before for code, message in part.messages]
    for part, code, message in drawn.sample(said, options.messages):
        own = [text for other, text in _counterpart(part, after, code).messages if other == code] or ["(gone)"]
        near = difflib.get_close_matches(message, own, n=1, cutoff=0.0)[0]
        print(f"{code} in {part.name} ({part.path})\n  before: {message}\n  after:  {near}\n")
    old, new = _pages(options.before), _pages(options.after)
    for path in drawn.sample(sorted(old), options.pages):
        lines = difflib.unified_diff(
            old[path].splitlines(), new.get(path, "").splitlines(), path, path, lineterm="", n=0
        )
        print("\n".join(lines) or f"{path}: unchanged", end="\n\n")
    return 0


def _parts(sources: Mapping[str, str]) -> Iterator[Part]:
    for path, text in sorted(sources.items()):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, Function):
                docstring = " ".join((ast.get_docstring(node) or "").split())
                yield Part(path, node.name, docstring, tuple(_messages(node)), Counter(_words(node)))


def _words(node: Function) -> Iterator[str]:
    """What a renamed function keeps: attributes, numbers, keywords, kinds of statements."""
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute):
            yield each.attr
        elif isinstance(each, ast.Name):
            yield each.id
        elif isinstance(each, ast.keyword | ast.arg):
            yield str(each.arg)
        elif isinstance(each, ast.Constant) and not isinstance(each.value, str):
            yield repr(each.value)
        else:
            yield type(each).__name__


def _messages(node: Function) -> Iterator[tuple[str, str]]:
    """Code and message of each finding that is built here, by keyword or by position, or under a name given before."""
    texts = {
        target.id: each.value
        for each in ast.walk(node)
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant | ast.JoinedStr)
        for target in each.targets
        if isinstance(target, ast.Name)
    }
    for call in ast.walk(node):
        if not isinstance(call, ast.Call):
            continue
        named = {each.arg: each.value for each in call.keywords}
        code, message = (*call.args[:2], None, None)[:2] if call.args else (named.get("code"), named.get("message"))
        if isinstance(message, ast.Name):
            message = texts.get(message.id)
        if (
            isinstance(code, ast.Constant)
            and isinstance(code.value, str)
            and code.value in CODES
            and isinstance(message, ast.Constant | ast.JoinedStr)
        ):
            yield code.value, ast.unparse(message)


def _counterpart(part: Part, others: Sequence[Part], code: str = "") -> Part:
    """The most similar part, with a finding of that code if one is given and there is one."""
    own = [each for each in others if any(other == code for other, _ in each.messages)] if code else []
    return max(own or others, key=lambda other: likeness(part, other) + (part.name == other.name) * 0.2)


def likeness(part: Part, other: Part) -> float:
    """The share of words that both have."""
    return (part.words & other.words).total() / max((part.words | other.words).total(), 1)


def _pages(revision: str) -> dict[str, str]:
    folders = ("docs", "src/rota/findings")
    if revision == ".":
        files = [path for folder in folders for path in (ROOT / folder).rglob("*.md")]
        return {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in files}
    listed = _git("ls-tree", "-r", "--name-only", revision, *folders).splitlines()
    return {path: _git("show", f"{revision}:{path}") for path in listed if Path(path).suffix == ".md"}


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    sys.exit(main())
