"""Brings pages up to date: takes names of pages, writes into them what their code prints now.

`python -m tests.docs.refresh docs/tutorial.md`; without names all pages and pictures.  An output that still holds,
elisions included, stays as it is.
"""

from __future__ import annotations

import contextlib
import re
import sys
import tempfile
from pathlib import Path

from tests.cli.command import rota
from tests.docs.blocks import PAGES, PICTURES, ROOT
from tests.docs.running import run_page

_HOME = re.compile(r"--> /\S*/(\w+\.py):\d+")  # where rota is installed, and its own lines, are nobody's business
# Nor are a folder that is gone by now, and how many seconds a proof took.
_SCRATCH = re.compile(r"--> /\S*/(?=\w+\.hip:)|(?<=concrete, )[\d.]+(?= s)")


def refresh(page: Path) -> int:
    """How many outputs were rewritten."""
    with tempfile.TemporaryDirectory() as folder:
        stale = [shown for shown in run_page(page.resolve(), Path(folder)) if not shown.right]
    text = page.read_text("utf-8")
    for shown in reversed(stale):
        print(f"{page}:{shown.line}: {shown.what}\n{shown.printed.rstrip()}\n")
        text = text[: shown.start] + _ended(shown.printed) + text[shown.end :]
    page.write_text(text, "utf-8")
    return len(stale)


def _ended(printed: str) -> str:
    lines = "\n".join(_hidden(line.rstrip()) for line in printed.rstrip().splitlines())
    return f"{lines}\n" if lines else ""


def _hidden(line: str) -> str:
    return _SCRATCH.sub(lambda found: "--> .../" if "-->" in found[0] else "...", _HOME.sub(r"--> .../\1:...", line))


def redraw() -> None:
    """Every picture, by its command."""
    with contextlib.chdir(ROOT / "docs"):
        for command in PICTURES.values():
            print(rota(command).output)


if __name__ == "__main__":
    for name in sys.argv[1:] or PAGES:
        refresh(Path(name))
    if not sys.argv[1:]:
        redraw()
