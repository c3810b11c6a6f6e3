"""The source of a command of `benchmarks/`, to look its options up without starting it."""

from __future__ import annotations

import re
from pathlib import Path

_FROM = re.compile(r"^from (tests\.campaigns\.[\w.]+) import", re.MULTILINE)


def source_of(root: Path, module: str) -> str:
    """Of the command itself, and of the module under `tests/campaigns` that it runs."""
    text = (root / Path(*module.split(".")).with_suffix(".py")).read_text("utf-8")
    return text + "".join(
        (root / Path(*each.split(".")).with_suffix(".py")).read_text("utf-8") for each in _FROM.findall(text)
    )
