"""A page's code, run: takes a page and an empty folder, gives what each block and command printed."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rota.errors import RotaError
from tests.docs.blocks import ROOT, Block, blocks_of, commands_of, matches

_TIME_LIMIT = 300  # seconds for a command; a page that needs more is no page


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a page says that something prints, what it printed, and where the page says so."""

    what: str
    line: int
    shown: str
    printed: str
    start: int
    end: int

    @property
    def right(self) -> bool:
        """Do they agree?"""
        return matches(self.shown, self.printed)


def run_page(page: Path, folder: Path) -> Iterator[Shown]:
    """Runs the page's blocks in their order, in that folder."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    with contextlib.chdir(folder), _importable(folder):
        for block in blocks_of(page.read_text("utf-8")):
            if block.excuse is not None:
                continue
            if block.file:
                Path(block.file).write_text(block.text, "utf-8")
            if block.language == "python":
                yield _python(block, namespace)
            elif block.language == "console":
                yield from _console(block)
            else:
                named = block.language in {"cpp", "asm"} and block.file
                assert named, f"{page.name}:{block.line}: a {block.language or 'bare'} block is neither run nor excused"


@contextlib.contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Files that the page saves can be imported, and are forgotten with it."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for file in folder.glob("*.py"):
            sys.modules.pop(file.stem, None)


def _python(block: Block, namespace: dict[str, object]) -> Shown:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        try:
            exec(compile(block.text, block.file or "example.py", "exec"), namespace)
        except RotaError as error:
            print(error)
    output = block.output
    return Shown(
        what=f"python at line {block.line}",
        line=block.line,
        shown=output.text if output else "",
        printed=said.getvalue(),
        start=output.start if output else block.end,
        end=output.end if output else block.end,
    )


def _console(block: Block) -> Iterator[Shown]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    imported = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))  # the rota of these tests
    environment = os.environ | {"PATH": path, "PYTHONPATH": imported, "NO_COLOR": "1", "COLUMNS": "120"}
    for command in commands_of(block):
        done = subprocess.run(
            command.line,
            shell=True,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_TIME_LIMIT,
            check=False,
        )
        yield Shown(
            what=f"$ {command.line}",
            line=block.line,
            shown=command.shown,
            printed=done.stdout,
            start=command.start,
            end=command.end,
        )
