"""What types the doors finds them, the README's first screen first, and notices what isn't as shown or takes long."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.campaigns.pages.doors import (
    EXTRAS,
    FIRST_SCREEN,
    LANDING,
    SLOW,
    Door,
    doors,
    install_line,
    is_late,
    type_door,
)
from tests.docs.blocks import ROOT, blocks_of

pytestmark = pytest.mark.no_cover  # what pages run counts as covered where it is tested by itself


def test_every_door_is_found_with_something_to_type() -> None:
    found = list(doors())
    assert found[0].name == FIRST_SCREEN
    assert {page.stem for page in (ROOT / "docs").glob("i_*.md")} == set(LANDING)
    assert set(EXTRAS) <= {door.name for door in found}
    assert all("```console" in door.text or "```python" in door.text for door in found)
    assert {door.name for door in found[1:] if not door.name.startswith("I ")} == set(SLOW)


def test_the_first_screen_has_its_example_to_type() -> None:
    (example,) = [block for block in blocks_of(next(doors()).text) if block.language == "python"]
    assert example.file == "my_gemm.py"
    assert example.output is not None


def test_a_door_that_takes_long_is_noticed() -> None:
    screen, other = Door(FIRST_SCREEN, ""), Door("I try", "")
    assert [is_late(screen, took, typing) for took, typing in ((200, 59), (200, 61), (301, 10))] == [False, True, True]
    assert [is_late(other, took, typing) for took, typing in ((200, 61), (301, 10))] == [False, True]


@pytest.mark.parametrize(
    ("extras", "asked"), [((), "dist/rota-9.whl"), (("hip", "prove"), "dist/rota-9.whl[hip,prove]")]
)
def test_the_shell_finds_the_wheel_with_extras_or_without(tmp_path: Path, extras: tuple[str, ...], asked: str) -> None:
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "rota-9.whl").touch()
    line = install_line(extras).replace("pip ", "printf '%s\\n' ", 1)
    typed = subprocess.run(("bash", "-c", line), cwd=tmp_path, check=True, capture_output=True, text=True)
    assert typed.stdout.split() == ["install", "--quiet", asked]


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
