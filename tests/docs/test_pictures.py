"""A picture of the documentation is what the command beside it draws."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.command import rota
from tests.docs.blocks import PICTURES, ROOT

pytestmark = pytest.mark.no_cover  # what pages run counts as covered where it is tested by itself

FOLDER = ROOT / "docs"
LINE = re.compile(r"(?<=\.py):\d+")  # of rota's own source, which moves with every change above it


def test_every_picture_names_its_command() -> None:
    assert set(PICTURES) == {file.name for file in FOLDER.glob("*.svg")}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_up_to_date(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert rota(PICTURES[name]).exit_code == 0
    drawn, kept = (LINE.sub("", (folder / name).read_text("utf-8")) for folder in (tmp_path, FOLDER))
    assert drawn == kept, f"in docs/: rota {PICTURES[name]}"
