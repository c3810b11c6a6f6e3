"""The README's code runs and prints what the README says, and each of its doors fits on a screen."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, re.DOTALL)
DOORS = re.findall(r"^## (I \w+ .+)$", README, re.MULTILINE)
SCREEN = 70
"""Lines; the text alone, as a browser shows it, takes fewer."""


def test_every_block_of_code_has_its_output() -> None:
    excused = len(re.findall(r"<!-- not run: [^\n]+ -->\n```python", README))
    assert len(EXAMPLES) == README.count("```python") - excused == README.count("```text") == 1


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
