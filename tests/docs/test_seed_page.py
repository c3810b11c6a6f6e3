"""`docs/pipeline/seed.md` leaves out no name and no sentence of the five pages, and its lines are true."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from typing import NamedTuple

import pytest

from rota import ScheduleConfig
from tests.docs.blocks import ROOT, blocks_of
from tests.shared import shared

pytestmark = pytest.mark.no_cover  # what pages run counts as covered where it is tested by itself

PAGE = ROOT / "docs" / "pipeline" / "seed.md"
HEAD = "| on the page | here | does it hold? | try it |"
TITLES = ("PipelineSchedule", "ScheduleConfig", "build_kernel_program", "derive_prologue_from_program", "Pipeline4Wave")
# The language's own types, and what stands on every page of that site.
MOJO = {"Int", "Bool", "List", "Self", "_Self", "self", "md", "txt"}
_WORD = re.compile(r"\b_{0,2}[A-Za-z]\w*")
_SIGNATURE = re.compile(r"^(?:def |static |struct )?\w+[\[(].*?(?:->.*|[\])])$", re.MULTILINE)


class Row(NamedTuple):
    """A row of the page."""

    said: str
    here: str
    verdict: str
    line: str


def rows_of(text: str) -> Iterator[Row]:
    """The rows of the tables that hold the five pages against rota."""
    inside = False
    for line in text.splitlines():
        inside = line == HEAD or (inside and line.startswith("|"))
        if inside and line != HEAD and not line.startswith("|--"):
            yield Row(*(cell.strip() for cell in line.strip("|").split(" | ")))


def named(rows: list[Row]) -> set[str]:
    """Names in the first cells."""
    return {word for row in rows for code in re.findall(r"`([^`]+)`", row.said) for word in re.findall(r"\w+", code)}


def quoted(rows: list[Row]) -> set[str]:
    """Quotations in the first cells."""
    return {each for row in rows for each in re.findall(r'"([^"]+)"', row.said)}


def names_in(text: str) -> set[str]:
    """What a page declares, parameters too, and what its text writes like code: `a_b`, `AbC`, `f()`."""
    declared = {name for line in _SIGNATURE.findall(text) for name in re.findall(r"(\w+)(?=: )", line)}
    coded = {word for word in _WORD.findall(text) if "_" in word.rstrip("_") or re.search(r"[a-z\d][A-Z]", word)}
    return (declared | coded | set(re.findall(r"(\w+)\(", text)) | set(re.findall(r"\.([a-z]\w+)", text))) - MOJO


FIELDS = {field.name for field in fields(ScheduleConfig)}


def sentences_of(text: str) -> list[str]:
    """Everything on a page that says something: four words or more, signatures left out."""
    lines = [line.strip() for line in text.splitlines()[4:]]
    told = [line for line in lines if not re.match(r"(?:def |static )?\w+\(.*\) ->|(?:def )?__init__\(", line)]
    pieces = [piece.strip() for line in told for piece in re.split(r"(?<=[.:])\s+(?=[A-Z]|\w+: )", line)]
    return [piece for piece in pieces if len(piece.split()) >= 4]


@pytest.fixture(scope="module")
def seeds() -> dict[str, str]:
    """The five pages by the names that they are about."""
    texts = [file.read_text("utf-8") for file in sorted(shared("seeds").glob("*.txt"))]
    found = {title: text for title in TITLES for text in texts if re.search(rf"^{title}$", text, re.MULTILINE)}
    assert len(found) == len(texts) == len(TITLES)
    return found


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return list(rows_of(PAGE.read_text("utf-8")))


@pytest.mark.parametrize("title", TITLES)
def test_every_name_has_a_row(title: str, seeds: dict[str, str], rows: list[Row]) -> None:
    missing = names_in(seeds[title]) - named(rows)
    assert missing == set()


@pytest.mark.parametrize("title", TITLES)
def test_every_sentence_is_quoted(title: str, seeds: dict[str, str], rows: list[Row]) -> None:
    known = [each.lower() for each in quoted(rows)]
    missing = [each for each in sentences_of(seeds[title]) if not any(quote in each.lower() for quote in known)]
    assert missing == []


def test_every_quotation_is_on_a_page(seeds: dict[str, str], rows: list[Row]) -> None:
    texts = [text.lower() for text in seeds.values()]
    assert [each for each in quoted(rows) if not any(each.lower() in text for text in texts)] == []


def test_all_nineteen_fields_are_on_the_page_and_here(seeds: dict[str, str]) -> None:
    listed = re.findall(r"^\s+• (\w+) \((?:SchedulingStrategy|Int|Bool)\):", seeds["ScheduleConfig"], re.MULTILINE)
    assert len(FIELDS) == 19
    assert set(listed) == FIELDS


def test_every_line_is_true(rows: list[Row]) -> None:
    space: dict[str, object] = {}
    for block in blocks_of(PAGE.read_text("utf-8")):
        if block.language == "python":
            exec(block.text, space)
    lines = [re.fullmatch(r"`([^`]+)`", row.line) for row in rows]
    assert [row.said for row, line in zip(rows, lines, strict=True) if line is None] == []
    assert [line[1] for line in lines if line is not None and not eval(line[1], space)] == []


def test_what_is_missing_is_noticed() -> None:
    page = (
        "Mojo function\n\n\n\n\nrun_it(op: OpDesc) -> Int\n\nRuns the first one of them. Never asks for_more, ends.\n"
    )
    given = list(rows_of(f'{HEAD}\n|---|---|---|---|\n| `run_it` "first one of" | x | yes | `1 == 1` |\n'))
    assert names_in(page) - named(given) == {"op", "OpDesc", "for_more"}
    assert [each for each in sentences_of(page) if not any(quote in each for quote in quoted(given))] == [
        "Never asks for_more, ends."
    ]
