"""Changed wording is red, a text without an entry is red, and a refresh mends both."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.wording.golden import mentions, printed, read_pages, settled

pytest_plugins = ["pytester"]

TEST = """
import pytest
from rota.errors import Finding
from tests.wording.golden import worded

@pytest.mark.parametrize("op", ["load", "store"])
def test_of_an_op(op):
    worded(Finding(code="T203", message=f"{op} is {'too wide'}", evidence=(("bytes", 16),)))
    worded(Finding(code="T203", message="both"))

def test_of_a_report():
    worded("1 kernel is proved")

def test_of_nothing():
    pass
"""
PAGE = """\
small/test_small.py::test_of_an_op[load]
| error[T203]: load is too wide
|    bytes: 16

small/test_small.py::test_of_an_op[load] (2)
small/test_small.py::test_of_an_op[store] (2)
| error[T203]: both

small/test_small.py::test_of_an_op[store]
| error[T203]: store is too wide
|    bytes: 16
"""


@pytest.fixture
def pages(pytester: pytest.Pytester) -> Path:
    """Four tests, and the folder of their pages, which are written once."""
    pytester.makeconftest('pytest_plugins = ["tests.wording.plugin"]')
    write(pytester, TEST)
    folder = pytester.mkdir("pages")
    assert outcome(pytester, folder, "--refresh-wording") == {"passed": 4}
    return folder


def write(pytester: pytest.Pytester, text: str) -> None:
    file = pytester.path / "tests" / "small" / "test_small.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")


def outcome(pytester: pytest.Pytester, folder: Path, *options: str) -> dict[str, int]:
    command = ("-p", "no:rota", "-p", "no:cacheprovider", "--wording", str(folder), "tests/small", *options)
    outcomes = pytester.runpytest_inprocess(*command).parseoutcomes()
    return {word: count for word, count in outcomes.items() if word in ("passed", "failed", "errors")}


def test_a_page_is_a_document(pages: Path, pytester: pytest.Pytester) -> None:
    assert {path.name for path in pages.iterdir()} == {"T203.txt", "small.txt"}
    assert (pages / "T203.txt").read_text("utf-8") == PAGE
    assert read_pages(pages)["T203"]["small/test_small.py::test_of_an_op[load]"][1] == "error[T203]: both"
    assert printed(read_pages(pages)["T203"]) == PAGE
    assert outcome(pytester, pages) == {"passed": 4}


def test_changed_wording_is_red_and_a_refresh_mends_it(pages: Path, pytester: pytest.Pytester) -> None:
    write(pytester, TEST.replace("too wide", "wider than an instruction"))
    assert outcome(pytester, pages) == {"passed": 2, "failed": 2}
    assert outcome(pytester, pages, "--refresh-wording") == {"passed": 4}
    assert (pages / "T203.txt").read_text("utf-8") == PAGE.replace("too wide", "wider than an instruction")
    assert outcome(pytester, pages) == {"passed": 4}


def test_a_text_without_an_entry_and_an_entry_without_a_text_are_red(pages: Path, pytester: pytest.Pytester) -> None:
    (pages / "small.txt").unlink()
    assert outcome(pytester, pages) == {"passed": 3, "failed": 1}
    (pages / "S101.txt").write_text("small/test_small.py::test_of_nothing\n| error[S101]: nobody says so\n", "utf-8")
    assert outcome(pytester, pages) == {"passed": 2, "failed": 2}


def test_a_refresh_keeps_what_did_not_run_and_drops_what_is_gone(pages: Path, pytester: pytest.Pytester) -> None:
    before = (pages / "T203.txt").read_text("utf-8")
    for option in ("-k", "test_of_a_report"), ("-k", "not test_of_a_report"):
        outcome(pytester, pages, "--refresh-wording", *option)
        assert (pages / "T203.txt").read_text("utf-8") == before
        assert (pages / "small.txt").exists()
    write(pytester, TEST.replace('["load", "store"]', '["load"]'))
    outcome(pytester, pages, "--refresh-wording")
    assert set(read_pages(pages)["T203"]) == {"small/test_small.py::test_of_an_op[load]"}


def test_a_failing_test_keeps_its_entries(pages: Path, pytester: pytest.Pytester) -> None:
    before = (pages / "T203.txt").read_text("utf-8")
    write(pytester, TEST.replace('message="both"', "message=1 / 0"))
    assert outcome(pytester, pages, "--refresh-wording") == {"passed": 2, "failed": 2}
    assert (pages / "T203.txt").read_text("utf-8") == before


def test_worker_processes_give_what_they_saw_to_the_first(pages: Path, pytester: pytest.Pytester) -> None:
    before = (pages / "T203.txt").read_text("utf-8")
    for page in pages.iterdir():
        page.unlink()
    assert outcome(pytester, pages, "--refresh-wording", "-n", "2") == {"passed": 4}
    assert (pages / "T203.txt").read_text("utf-8") == before
    assert outcome(pytester, pages, "-n", "2") == {"passed": 4}


def test_places_and_runs_are_no_wording() -> None:
    assert settled("  --> /opt/somebody/rota/loop.py:17   load_A  \n   process: 4711\n") == (
        "  --> .../loop.py:...   load_A\n   process: ..."
    )
    assert settled("12 bytes/clk of A/B, ../x.py") == "12 bytes/clk of A/B, ../x.py"


def test_a_name_is_mentioned_as_a_word() -> None:
    assert mentions("load_A0 has 16 bytes at mma[0,0]", "load_A0", 16, "mma[0,0]")
    assert not mentions("load_A0 has 16 bytes", "load_A")
    assert not mentions("load_A0 has 16 bytes", 6)
