"""The wording of findings and reports, kept as text beside the tests that look at it.

`tests/wording/T203.txt` holds how T203 reads in every test that looks at such a finding, and `tests/wording/cli.txt`
holds other texts that the tests in `tests/cli` look at.  An entry is the ids of the tests that saw a text, and below
them the text, each line after a bar.  A test that looks at several texts of one page has a number after its id from
the second on.

Tests call `worded`; the helpers that give findings, such as `raised`, call it for them.  `tests/wording/plugin.py`
compares what a test recorded with the pages, and `pytest --refresh-wording` writes the pages.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from rota.errors import Finding, RotaError

FOLDER = Path(__file__).parent

Recorded = dict[str, list[str]]
"""Texts by the page that they belong to, in the order in which a test saw them, each text once."""
Said = TypeVar("Said", Finding, RotaError, str)

# Where files lie, and on which lines, is no wording; neither are times and sizes that differ from run to run.
_VARYING = (
    (re.compile(r"(?<![\w.])/(?:[\w.+@~-]+/)+"), ".../"),
    (re.compile(r"(?<=\.\.\./)(test_[a-z_]+)\d+\b"), r"\1"),  # pytest numbers the folders of a test
    (re.compile(r"(?<=\.py:)\d+"), "..."),
    (re.compile(r"(?<=process: )\d+"), "..."),
    (re.compile(r"0x[0-9a-f]{9,}"), "0x..."),
    (re.compile(r"(?<= )\d+\.\d+(?= s\b)"), "..."),
    (re.compile(r"(?<=clang\+\+)-\d+"), ""),
)

_now: list[tuple[str, Recorded]] = []


@contextmanager
def recording(folder: str = "") -> Iterator[Recorded]:
    """What `worded` sees meanwhile; texts that are no findings go to the page named after the `folder`.

    A test that looks at hundreds of findings of one kind asks for it itself, and leaves them out of the pages.
    """
    seen: Recorded = {}
    _now.append((folder, seen))
    try:
        yield seen
    finally:
        _now.pop()


def worded(said: Said) -> Said:
    """Its argument, whose wording is compared with the pages when the test ends."""
    if _now:
        folder, seen = _now[-1]
        for part in getattr(said, "findings", (said,)):
            text = settled(str(part))
            texts = seen.setdefault(getattr(part, "code", folder), [])
            if text not in texts:
                texts.append(text)
    return said


def mentions(said: object, *names: object) -> bool:
    """True if what is said holds every name or number, each as a word of its own."""
    return all(re.search(rf"(?<!\w){re.escape(str(name))}(?!\w)", str(said)) for name in names)


def settled(text: str) -> str:
    """The text without what differs from place to place and run to run."""
    for pattern, instead in _VARYING:
        text = pattern.sub(instead, text)
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


Pages = dict[str, dict[str, list[str]]]
"""By page and by test id: the texts that the test saw, in order."""


def read_pages(folder: Path = FOLDER) -> Pages:
    return {path.stem: _parsed(path.read_text("utf-8")) for path in sorted(folder.glob("*.txt"))}


def _parsed(page: str) -> dict[str, list[str]]:
    numbered: dict[tuple[str, int], str] = {}
    for entry in page.strip("\n").split("\n\n"):
        lines = entry.splitlines()
        ids = [line for line in lines if not line.startswith("|")]
        text = "\n".join(line[2:] for line in lines if line.startswith("|"))
        numbered.update({_split(each): text for each in ids})
    texts: dict[str, list[str]] = defaultdict(list)
    for test, number in sorted(numbered):
        texts[test].append(numbered[test, number])
    return dict(texts)


_NUMBER = re.compile(r"(?P<test>.*?)(?: \((?P<number>\d+)\))?")


def _split(test: str) -> tuple[str, int]:
    found = _NUMBER.fullmatch(test)
    assert found
    return found["test"], int(found["number"] or 1)


def printed(texts: Mapping[str, list[str]]) -> str:
    """A page: one entry per text, under the ids of all tests that saw it."""
    shown: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for test, seen in texts.items():
        for number, text in enumerate(seen, 1):
            shown[text].append((test, number))
    entries = []
    for text, ids in sorted(shown.items(), key=lambda entry: min(entry[1])):
        heads = [test if number == 1 else f"{test} ({number})" for test, number in sorted(ids)]
        entries.append("\n".join((*heads, *(f"| {line}".rstrip() for line in text.split("\n")))))
    return "\n\n".join(entries) + "\n"


def write_pages(pages: Pages, folder: Path = FOLDER) -> None:
    for path in folder.glob("*.txt"):
        if not pages.get(path.stem):
            path.unlink()
    for name, texts in pages.items():
        if texts:
            (folder / f"{name}.txt").write_text(printed(texts), "utf-8")
