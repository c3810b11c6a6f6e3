"""The README's code runs and prints what the README says, and each of its doors fits on a screen."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.docs.blocks import ROOT, blocks_of

README = (ROOT / "README.md").read_text("utf-8")
PYTHON = [block for block in blocks_of(README) if block.language == "python" and block.excuse is None]
EXAMPLES = [(block.text, block.output.text) for block in PYTHON if block.output is not None]
DOORS = re.findall(r"^## (I \w+ .+)$", README, re.MULTILINE)
SCREEN = 70
"""Lines; the text alone, as a browser shows it, takes fewer."""


def test_every_block_of_code_has_its_output() -> None:
    assert len(EXAMPLES) == len(PYTHON) == README.count("```text") == 1


@pytest.mark.parametrize(("code", "shown"), EXAMPLES, ids=["by values"])
def test_an_example_prints_what_the_readme_shows(code: str, shown: str) -> None:
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ran.stdout == shown
    lines = [line for line in code.splitlines() if line and not line.startswith(("from", "print"))]
    assert len(lines) <= 30


def test_every_door_is_in_the_table_at_the_top() -> None:
    assert len(DOORS) >= 3
    for door in DOORS:
        assert f"[{door}](#{door.lower().replace(' ', '-')})" in README


@pytest.mark.parametrize("door", DOORS)
def test_a_door_fits_on_a_screen(door: str) -> None:
    (section,) = re.findall(rf"^## {door}\n(.*?)^## ", README, re.DOTALL | re.MULTILINE)
    assert section.count("\n") <= SCREEN
