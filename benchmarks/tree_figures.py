"""Figures of the source tree: `python -m benchmarks.tree_figures [REVISION ...] [--list participles|words|callers]`.

Prints one column for each git revision (by default the files as they are): lines and modules of `src`, their sizes,
functions, functions named by participles, modules that serve a single caller in their own folder, own-line comments,
and the words that plain technical English has a better one for.  With --list, where they are.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import statistics
import subprocess
import sys
import tarfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
SUFFIXES = (".py", ".pyi")
WORDS = {
    "behind": r"\bbehind\b",
    "under way": r"\bunder way\b",
    "comes to": r"\bcomes? to\b",
    "is told": r"\b(?:is|are|was|were) told\b",
    "stands for": r"\bstands? for\b",
    "due": r"\bis due\b|\bare due\b",
    "takes X, gives Y": r"\btakes [^.\n]*, (?:and )?gives\b",
}
IRREGULAR = frozenset(
    [
        "told",
        "found",
        "seen",
        "kept",
        "given",
        "taken",
        "made",
        "said",
        "held",
        "met",
        "shown",
        "known",
        "written",
        "drawn",
        "laid",
        "left",
        "lost",
        "put",
        "read",
        "run",
        "sent",
        "set",
        "split",
        "stood",
        "thought",
        "bound",
        "built",
        "bought",
        "brought",
        "caught",
        "dealt",
        "fed",
        "felt",
        "forgotten",
        "fought",
        "gone",
        "grown",
        "hidden",
        "paid",
        "sold",
        "sought",
        "spent",
        "spread",
        "struck",
        "taught",
        "torn",
        "thrown",
        "worn",
    ]
)
NOT_PARTICIPLES = frozenset(
    [
        "need",
        "seed",
        "speed",
        "feed",
        "embed",
        "exceed",
        "proceed",
        "red",
        "bed",
        "led",
        "shed",
        "hundred",
        "indeed",
        "based",
    ]
)
# Words that are verbs in the present as well: a function of that name may tell what it does.
PRESENT = frozenset(["put", "read", "run", "set", "split", "spread"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("revisions", nargs="*", help="revisions of git, or . for the files as they are")
    parser.add_argument("--list", choices=("participles", "words", "callers"), dest="listed")
    options = parser.parse_args(arguments)
    trees = {each: read_tree(each) for each in options.revisions or ["."]}
    if options.listed:
        for tree in trees.values():
            print(
                *{"participles": participles, "words": words, "callers": single_callers}[options.listed](tree), sep="\n"
            )
        return 0
    columns = {name: figures(tree) for name, tree in trees.items()}
    rows = next(iter(columns.values()))
    print(f"{'':44}" + "".join(f"{name[:12]:>14}" for name in columns))
    for row in rows:
        print(f"{row:44}" + "".join(f"{column[row]:>14}" for column in columns.values()))
    return 0


def read_tree(revision: str) -> dict[str, str]:
    """The modules and stubs of `src/rota` by path."""
    if revision == ".":
        paths = (path for path in sorted(ROOT.glob("src/rota/**/*.py*")) if path.suffix in SUFFIXES)
        return {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in paths}
    packed = subprocess.run(["git", "archive", revision, "src/rota"], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        members = [each for each in archive.getmembers() if each.name.endswith(SUFFIXES)]
        return {each.name: (archive.extractfile(each) or io.BytesIO()).read().decode() for each in members}


def figures(tree: Mapping[str, str]) -> dict[str, int]:
    """The rows of the table."""
    sizes = [text.count("\n") for path, text in tree.items() if path.endswith(".py")]
    functions = list(_functions(tree))
    found = Counter(name for name, _ in _find_words(tree))
    return {
        "lines of src": sum(text.count("\n") for text in tree.values()),
        "modules": len(sizes),
        "median lines of a module": int(statistics.median(sizes)),
        "modules of more than 800 lines": sum(size > 800 for size in sizes),
        "modules with a single caller in their folder": len(list(single_callers(tree))),
        "functions": len(functions),
        "functions named by participles": len(list(participles(tree))),
        "own-line comments": sum(line.lstrip().startswith("#") for text in tree.values() for line in text.split("\n")),
        **{f"'{word}'": found[word] for word in WORDS},
    }


def _functions(tree: Mapping[str, str]) -> Iterator[tuple[str, ast.FunctionDef, bool]]:
    for path, text in tree.items():
        parsed = ast.parse(text)
        for node in ast.walk(parsed):
            if isinstance(node, ast.FunctionDef):
                properties = {getattr(each, "id", getattr(each, "attr", "")) for each in node.decorator_list}
                yield path, node, bool(properties & {"property", "cached_property"})


def participles(tree: Mapping[str, str]) -> Iterator[str]:
    """Functions, properties aside, whose name is a participle or begins with one."""
    for path, node, is_property in _functions(tree):
        first = node.name.strip("_").split("_")[0]
        regular = first.endswith("ed") and first not in NOT_PARTICIPLES and len(first) > 3
        if not is_property and (regular or first in IRREGULAR - PRESENT):
            yield f"{path}:{node.lineno}: {node.name}"


def words(tree: Mapping[str, str]) -> Iterator[str]:
    """Where the words are."""
    return (f"{where}: {word}" for word, where in _find_words(tree))


def _find_words(tree: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for path, text in tree.items():
        for word, pattern in WORDS.items():
            for hit in re.finditer(pattern, text, re.IGNORECASE):
                yield word, f"{path}:{text.count(chr(10), 0, hit.start()) + 1}"


def single_callers(tree: Mapping[str, str]) -> Iterator[str]:
    """Modules that one module of their folder imports, and nothing else in `src`."""
    names = {
        path: path.removeprefix("src/").removesuffix(".py").replace("/", ".") for path in tree if path.endswith(".py")
    }
    importers: dict[str, set[str]] = defaultdict(set)
    for path, text in tree.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module:
                importers[node.module].add(path)
                for each in node.names:
                    importers[f"{node.module}.{each.name}"].add(path)
    for path, name in names.items():
        callers = importers[name] - {path}
        if len(callers) == 1 and next(iter(callers)).rpartition("/")[0] == path.rpartition("/")[0]:
            yield f"{path}: {next(iter(callers))}"


LISTS = {"participles": participles, "words": words, "callers": single_callers}


if __name__ == "__main__":
    sys.exit(main())
