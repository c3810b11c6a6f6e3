"""No test asserts prose: the wording of findings and reports stands in tests/wording alone, and no entry is stale."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from rota.errors import CODES
from tests.wording.golden import read_pages
from tests.wording.prose import TESTS, assertions_on_prose, listed

EXCEPTIONS = {
    "docs/test_blocks.py": "what the test's own tool says",
    "isa/native/test_sanitizers.py": "what a tool of the tests prints",
    "findings/test_G105.py": "the name of a resource has a blank",
    "findings/test_I132.py": "a long name of evidence",
}
"""Files with assertions that read like prose and aren't about rota's wording, each with its reason."""


@pytest.mark.thorough  # parses every test
def test_no_test_asserts_prose() -> None:
    found = [each for each in listed(TESTS) if each[0] not in EXCEPTIONS and not each[0].startswith("wording/")]
    assert found == [], "assert codes, ends, evidence and names, and give the finding to tests.wording.golden.worded"


def test_every_exception_is_one() -> None:
    assert all(assertions_on_prose((TESTS / name).read_text("utf-8")) for name in EXCEPTIONS)


@pytest.mark.parametrize(
    ("asserted", "prose"),
    [
        ('assert "is no whole slice" in finding.message', True),
        ('assert finding.message.startswith("the loop")', True),
        ('assert str(finding) == f"{op} is late"', True),
        ('assert dict(finding.evidence)["found"] == "no wait stands between them"', True),
        ('with pytest.raises(RotaError, match="which problem"):\n        call()', True),
        ('said = result.output\n    assert "nothing to do" in said', True),
        ('assert "load_A0" in finding.message', False),
        ('assert finding.evidence == (("registers live at once", 4), ("due", "x of iteration 1"))', False),
        ('assert "--set depth=3" in finding.fixes[0]', False),
        ('with pytest.raises(RotaError, match="D102"):\n        call()', False),
        ('assert text == "two words"', False),
    ],
)
def test_prose_is_told_from_names_and_numbers(asserted: str, prose: bool) -> None:
    assert bool(assertions_on_prose(f"def test_it():\n    {asserted}\n")) == prose


def test_columns_are_followed() -> None:
    column = '@pytest.mark.parametrize(("op", "why"), [(1, "in words"), (2, "so_called")])\n'
    assert assertions_on_prose(f"{column}def test_it(op, why):\n    assert why in finding.message\n") == [3]


def test_every_page_is_about_a_code_or_a_folder() -> None:
    folders = {path.name for path in TESTS.iterdir() if path.is_dir()}
    assert set(read_pages()) <= {*CODES, *folders}


def test_every_entry_has_its_test() -> None:
    """What is parametrised is compared where the test runs."""
    named = {tuple(test.partition("[")[0].split("::")) for texts in read_pages().values() for test in texts}
    files = {file: _tests_of(TESTS / file) for file, *_ in named}
    assert {each for each in named if each[-1] not in files[each[0]]} == set()


def _tests_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8")) if path.exists() else ast.Module([], [])
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
