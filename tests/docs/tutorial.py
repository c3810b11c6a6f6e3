"""The tutorial as a newcomer does it: takes a folder and a PATH, gives the seconds it took; every command must succeed.

`PATH=<venv>/bin:$PATH python -m tests.docs.tutorial` types it with that environment's rota, in an empty folder, without
this checkout on the import path.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

from tests.docs.blocks import ROOT, Block, blocks_of, commands_of

TUTORIAL = ROOT / "docs" / "tutorial.md"


def type_tutorial(folder: Path, path: str) -> float:
    """Saves its files, types its commands, and runs its Python as one session."""
    blocks = blocks_of(TUTORIAL.read_text("utf-8"))
    session = "".join(block.text for block in blocks if block.language == "python" and not block.file)
    (folder / "session.py").write_text(session, "utf-8")
    started = perf_counter()
    for block in blocks:
        for line in _lines(block, folder):
            _type(line, folder, path)
    _type("python session.py", folder, path)
    return perf_counter() - started


def _lines(block: Block, folder: Path) -> Iterator[str]:
    if block.file:
        (folder / block.file).write_text(block.text, "utf-8")
    elif block.language == "console":
        yield from (command.line for command in commands_of(block))


def _type(line: str, folder: Path, path: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"PATH": path}
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", line],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    print(f"$ {line}\n{done.stdout}", end="")
    assert done.returncode in (0, 141), f"{line} ended with {done.returncode}"  # 141: head has read enough


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        print(f"\nthe tutorial took {type_tutorial(Path(scratch), os.environ['PATH']):.0f} s")
