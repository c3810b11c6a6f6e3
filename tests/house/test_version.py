"""The version stands in rota/version.py; where it must be repeated, it is the same."""

from __future__ import annotations

import re
from pathlib import Path

from rota import __version__

ROOT = Path(__file__).parents[2]


def test_the_citation_and_the_changelog_are_of_this_version() -> None:
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    sections = re.findall(r"^## \[(.+)\]", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert next(name for name in sections if name != "Unreleased") == __version__
