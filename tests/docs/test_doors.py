"""What types the README's doors: it finds them all, and notices what isn't as shown."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.doors import EXTRAS, Door, doors, type_door
from tests.docs.blocks import ROOT

pytestmark = pytest.mark.no_cover  # what pages run counts as covered where it is tested by itself


def test_every_door_is_found_with_something_to_type() -> None:
    found = list(doors())
    assert len(found) >= 3
    assert set(EXTRAS) <= {door.name for door in found}
    assert all("```console" in door.text for door in found)
    assert all(f"## {door.name}\n" in (ROOT / "README.md").read_text("utf-8") for door in found)


def test_what_differs_is_noticed(tmp_path: Path) -> None:
    text = (
        "```python\n# say.py\nprint('one')\n```\n\n```text\ntwo\n```\n\n"
        "```console\n$ python say.py\none\n$ echo three\nfour\n```\n"
    )
    typed = list(type_door(Door("I try", text), tmp_path, Path(sys.executable).parent))
    assert [(each.line, each.right) for each in typed] == [
        ("python say.py", False),
        ("python say.py", True),
        ("echo three", False),
    ]
