"""Figures of the README and the site: each table of them names what made it, and those that are quick are compared."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from rota.targets.device import Fitted, problem_facts_of
from rota.targets.registry import device_named
from tests.campaigns.command_source import source_of
from tests.campaigns.machine_code import malformed, race_mutants
from tests.campaigns.measured.measured_rows import read_rows, table
from tests.campaigns.schedules import fuzz_json
from tests.campaigns.schedules.races import after_repair, as_recorded, by_phase, prove_file
from tests.campaigns.tuning import tune_library
from tests.campaigns.tuning.tune_regret import (
    LARGE,
    by_any,
    by_earlier,
    by_nearest_area,
    by_ranking,
    first_dates,
    regret_of,
    several,
    shipped,
)
from tests.conformance.corpus import cases
from tests.conformance.replays import FILES
from tests.docs.blocks import PAGES, ROOT
from tests.isa.matrix_checks import CHECKS
from tests.shared import shared

pytestmark = pytest.mark.no_cover  # what pages run counts as covered where it is tested by itself

GENERATED = ("reference_tables.md", "wait_states.md")
"""Made from the code and compared as a whole (test_tables.py, test_hazard_twins.py)."""
_MARKER = re.compile(r"<!-- (?P<kind>no figures|figures): (?P<what>[^>]+) -->")
_COMMAND = re.compile(r"python -m (?P<module>(?:benchmarks|tests|pytest)[\w./]*)(?P<options>[^;`]*)")
_RULE = re.compile(r"\|[\s:|-]+\|")
_NOT_COUNTED = re.compile(r"`[^`]*`|\[[^\]]*\]\([^)]*\)")  # code and links


class Figures(NamedTuple):
    """A table, and the line above it."""

    page: Path
    line: int
    above: str
    head: str
    rows: tuple[str, ...]

    @property
    def counted(self) -> bool:
        """Is there a number in every second row, outside of code and links?"""
        return 2 * sum(bool(re.search(r"\d", _NOT_COUNTED.sub("", row))) for row in self.rows) >= len(self.rows)

    @property
    def place(self) -> str:
        """Page and line."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def tables_of(page: Path, text: str) -> Iterator[Figures]:
    """All tables of a page."""
    lines = text.splitlines()
    for number, rule in enumerate(lines):
        if number and _RULE.fullmatch(rule) and lines[number - 1].startswith("|"):
            below = lines[number + 1 :]
            end = next((at for at, line in enumerate(below) if not line.startswith("|")), len(below))
            above = lines[number - 2] if number > 1 else ""
            yield Figures(page, number, above, lines[number - 1], tuple(below[:end]))


def trouble(table: Figures) -> str | None:
    """What is missing of what made a table."""
    if not table.counted:
        return None
    if table.head.rstrip("| ").endswith("command"):
        bare = [row for row in table.rows if not _COMMAND.search(row)]
        return f"no command in {bare[0]}" if bare else None
    marker = _MARKER.fullmatch(table.above)
    if marker is None:
        return "no <!-- figures: COMMAND --> above it"
    if marker["kind"] == "no figures":
        return None
    made, *more = marker["what"].split("; ")
    found = _COMMAND.fullmatch(made)
    if found:
        source = ROOT / Path(*found["module"].split(".")).with_suffix(".py")
        if not source.is_file():
            return f"no {found['module']}"
        options, text = re.findall(r"--[\w-]+", found["options"]), source_of(ROOT, found["module"])
        unknown = [each for each in options if f'"{each}"' not in text]
        if unknown:
            return f"{found['module']} has no {unknown[0]}"
    elif not (made.startswith("rota ") or (ROOT / made).is_file()):
        return f"{made} is no command"
    return next(filter(None, (_not_compared(each, table.page) for each in more)), None)


def _not_compared(said: str, page: Path) -> str | None:
    if said == "read by hand":
        return None
    test = ROOT / said.removeprefix("compared: ")
    if not said.startswith("compared: ") or not test.is_file():
        return f"{said} is no test"
    return None if page.name in test.read_text("utf-8") else f"{said} doesn't read {page.name}"


@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in GENERATED], ids=lambda page: page.stem)
def test_a_table_of_figures_names_what_made_it(page: Path) -> None:
    found = [(each.place, trouble(each)) for each in tables_of(page, page.read_text("utf-8"))]
    assert [each for each in found if each[1] is not None] == []


@pytest.mark.parametrize(
    ("above", "said"),
    [
        ("", "no <!-- figures: COMMAND --> above it"),
        ("<!-- figures: python -m benchmarks.nothing -->", "no benchmarks.nothing"),
        ("<!-- figures: python -m benchmarks.races --fast -->", "benchmarks.races has no --fast"),
        ("<!-- figures: somebody said so -->", "somebody said so is no command"),
        ("<!-- figures: python -m benchmarks.races; believed -->", "believed is no test"),
        (
            "<!-- figures: rota kernels; compared: tests/shared.py -->",
            "compared: tests/shared.py doesn't read cycles.md",
        ),
        ("<!-- figures: python -m benchmarks.races --execute -->", None),
        ("<!-- no figures: years -->", None),
    ],
)
def test_a_table_without_a_command_is_noticed(above: str, said: str | None) -> None:
    (found,) = tables_of(ROOT / "docs" / "cycles.md", f"{above}\n| a | b |\n|---|---:|\n| one | 1 |\n| `2` | two |\n")
    assert trouble(found) == said


def test_a_row_without_a_command_is_noticed() -> None:
    text = "\n| what | command |\n|---|---|\n| 3 things | `python -m benchmarks.zoo` |\n| 4 things | |\n"
    (found,) = tables_of(ROOT / "README.md", text)
    assert trouble(found) == "no command in | 4 things | |"


# Figures in the text


def _text(page: str) -> str:
    return " ".join((ROOT / page).read_text("utf-8").split())


def _measured() -> int:
    shared("measured/measured.csv.gz")
    with gzip.open(table(), "rt") as file:
        return sum(1 for _ in file) - 1


COUNTED: tuple[tuple[str, str, Callable[[], int]], ...] = (
    ("docs/figures.md", "{} recorded cases replayed", lambda: sum(len(cases(name)) for name in FILES)),
    ("docs/deviations.md", "{} recorded cases", lambda: sum(len(cases(name)) for name in FILES)),
    ("docs/figures.md", "{} edited exchange documents", lambda: fuzz_json.EDITS),
    ("docs/figures.md", "single edits of {} kernels", lambda: len(race_mutants.KERNELS)),
    ("docs/howto/run_any_kernel.md", "single edits of {} kernels", lambda: len(race_mutants.KERNELS)),
    ("docs/figures.md", "{} matrix instructions against a plain definition", lambda: len(CHECKS)),
    ("docs/figures.md", "{} real shapes", lambda: tune_library.SHAPES),
    ("docs/instructions.md", "By default there are {}", lambda: malformed.COUNT),
    ("docs/instructions.md", "and {}.", lambda: malformed.EXECUTED),
    ("docs/predict.md", "The table holds {} GEMMs", _measured),
    ("docs/howto/tune_a_library.md", "Against {} runs", _measured),
)


@pytest.mark.parametrize(("page", "sentence", "count"), COUNTED, ids=lambda each: each if isinstance(each, str) else "")
def test_a_count_is_what_the_code_counts(page: str, sentence: str, count: Callable[[], int]) -> None:
    assert sentence.format(f"{count():,}") in _text(page)


def test_the_edits_of_kernels_add_up() -> None:
    page = _text("docs/howto/run_any_kernel.md")
    rows = re.findall(r"\| (\d+) \| (\d+) \| (\d+) \|", page)
    assert len(rows) == 7
    made, flagged, harmless = (sum(int(row[column]) for row in rows) for column in range(3))
    assert made == flagged + harmless
    assert f"makes {made} single edits" in page
    assert f"{made} single edits of" in _text("docs/figures.md")
    assert f"None is missed: {flagged} are flagged, and {harmless} are harmless" in page


# Tables


def test_the_parameters_of_whole_problems() -> None:
    facts = problem_facts_of(device_named("mi355x"))

    def row(name: str, fact: Fitted, unit: str, digits: int = 1) -> str:
        band = f"{fact.low:.{digits}f} to {fact.high:.{digits}f}" if fact.low < fact.high else ""
        return rf"\| `{name}` \| [^|]+ \| {fact.value:.{digits}f}{unit} \| ?{band} \|"

    page = (ROOT / "docs" / "predict.md").read_text("utf-8")
    for each in (
        row("start", facts.start, " us"),
        row("share", facts.share, "", 2),
        row("feed", facts.feed, " bytes per clock"),
        row("trip", facts.trip, " clocks", 0),
        row("hbm", facts.hbm, " TB/s"),
        row("store", facts.store, " TB/s"),
    ):
        assert re.search(each, page), each
    busy = ", ".join(f"{facts.type_facts(name, 'MI355X').f_busy.value:.2f}" for name in ("bf16", "fp8", "fp4", "int8"))
    assert f"| {busy} GHz |" in page
    assert f"| {facts.split_start.value:.1f} us, {facts.split_traffic.value:.1f} |" in page


def test_the_races_of_one_file_of_the_reference() -> None:
    """The smallest one; `python -m benchmarks.races` has all of them."""
    page = (ROOT / "docs" / "races.md").read_text("utf-8")
    kept = {tuple(cell.strip() for cell in line.strip("|").split("|")) for line in page.splitlines()}
    file = prove_file("ping_pong_csp")
    for rows in (as_recorded, by_phase, after_repair):
        head, found = rows([file])
        assert tuple(map(str, head)) in kept
        assert tuple(map(str, found)) in kept


def test_what_a_choice_loses_on_the_smaller_device() -> None:
    shared("measured/measured.csv.gz")
    page = (ROOT / "docs" / "howto" / "tune_a_library.md").read_text("utf-8")
    rows = read_rows("MI300X", None)
    problems = several(rows)
    assert f" MI300X, {len(problems)} problems |" in page
    for words, pick in (
        ("rota's ranking, as shipped", by_ranking(rows, shipped(rows))),
        ("any of them", by_any(rows)),
        ("the tile nearest to 256x256", by_nearest_area(rows, LARGE)),
        ("AITER's earlier choice", by_earlier(rows, first_dates("MI300X"))),
    ):
        mean = regret_of(rows, problems, pick).mean
        assert re.search(rf"^\| {words} \| [^|]+ \| {mean:.1%} \|$".replace("%", " %"), page, re.MULTILINE), words
