"""ARCHITECTURE.md names what is there: its modules exist, and every folder of the package is in its table."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "rota"
PAGE = (ROOT / "ARCHITECTURE.md").read_text("utf-8")


def test_a_module_that_it_names_exists() -> None:
    named = set(re.findall(r"`([a-z_]+(?:/[a-z_]+)*\.py)`", PAGE))
    assert len(named) > 40
    there = [f"/{path.relative_to(ROOT).as_posix()}" for path in (*PACKAGE.rglob("*.py"), *ROOT.glob("tests/**/*.py"))]
    assert sorted(name for name in named if not any(path.endswith(f"/{name}") for path in there)) == []


def test_every_folder_of_the_package_has_its_row() -> None:
    for folder in (PACKAGE, PACKAGE / "isa"):
        inner = {path.parent.name for path in folder.glob("*/__init__.py")}
        (table,) = re.findall(
            rf"^\| `{folder.relative_to(ROOT).as_posix()}/` \|.*?\n\n", PAGE, re.DOTALL | re.MULTILINE
        )
        assert inner <= set(re.findall(r"`(\w+)/`", table))


def test_the_ladder_has_the_steps_that_others_take() -> None:
    ladder = PAGE.partition("## Extension ladder")[2].partition("\n## ")[0]
    for step in ("an instruction", "a rule of the judgement", "a front end", "a device", "a finding", "a command"):
        assert f"\n| {step} |" in ladder
