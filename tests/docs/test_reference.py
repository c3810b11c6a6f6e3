"""The reference has every public name, once."""

from __future__ import annotations

import re
from collections import Counter

import pytest

import rota
from tests.docs.blocks import ROOT

pytestmark = pytest.mark.no_cover  # what pages run counts as covered where it is tested by itself

REFERENCE = (ROOT / "docs" / "reference.md").read_text("utf-8")


def test_every_public_name_is_in_the_reference_once() -> None:
    named = Counter(re.findall(r"^\.\. [a-z:]+:: rota\.(\w+)$", REFERENCE, re.MULTILINE))
    assert set(named) == set(rota.__all__) - {"__version__"}
    assert set(named.values()) == {1}


def test_every_section_of_it_shows_where_it_is_used() -> None:
    surface, _, _ = REFERENCE.partition("## Further modules")
    for section in surface.split("\n## ")[1:]:
        assert re.search(r"\]\([\w/]+\.md\)|`--set`", section), section.splitlines()[0]
