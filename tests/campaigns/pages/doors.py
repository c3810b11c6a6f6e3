"""The documentation as a newcomer types it, in a fresh environment for each of its doors, with the time that each took.

    python -m benchmarks.doors [--only "I have a kernel"]

The first door is the README's first screen; then come the landing pages, `docs/i_*.md`, and of two pages on slow
kernels the part about a Triton matmul.  Builds the wheel, makes a clean virtual environment for each door, installs
the wheel with the extras that the door needs, and types the door's files and commands literally, in an empty folder,
without the checkout on the path. Ends with an error if a command doesn't print what the page shows, if a door takes
longer than five minutes, or the first one longer than a minute after installing. Seconds of processor time are
printed too: on a busy machine they say more.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from tests.docs.blocks import ROOT, blocks_of, commands_of, matches

MOST_SECONDS = 300
FIRST_SCREEN = "The first screen"
MOST_TYPING = {FIRST_SCREEN: 60}
"""Seconds after installing."""
LANDING = ("i_want_a_schedule", "i_have_a_kernel", "i_write_triton", "i_have_a_thousand_shapes")
SLOW = {
    "Find what makes a kernel slow": "find_what_makes_a_kernel_slow",
    "Improve a compiled loop": "improve_a_compiled_loop",
}
EXTRAS = {"I have a kernel": ("hip", "prove"), "I write Triton": ("triton",)} | dict.fromkeys(SLOW, ("triton",))
BESIDE = {"I write Triton": ("pytest",)}
"""What a door's reader has already."""
_PLAIN = "pip install --quiet dist/rota-*.whl"


class Door(NamedTuple):
    """What one kind of reader types."""

    name: str
    text: str


class Typed(NamedTuple):
    """A command, how long it took, and whether it printed what is shown."""

    line: str
    seconds: float
    right: bool
    printed: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints a line for each command and each door; 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", help="the name of a door")
    chosen = parser.parse_args(arguments).only
    failed = False
    with tempfile.TemporaryDirectory() as scratch:
        wheel = build_wheel(Path(scratch, "dist"))
        for number, door in enumerate(doors()):
            if chosen and door.name not in chosen:
                continue
            started, before = perf_counter(), _processor_seconds()
            python = installed(wheel, door, Path(scratch, f"venv{number}"))
            ready = perf_counter() - started
            folder = Path(scratch, f"door{number}")
            folder.mkdir()
            right = True
            for typed in type_door(door, folder, python.parent):
                right = right and typed.right
                print(f"  {'ok' if typed.right else 'NO':3} {typed.seconds:6.1f} s  $ {typed.line}")
                if not typed.right:
                    print(typed.printed)
            took = perf_counter() - started
            late = is_late(door, took, took - ready)
            failed = failed or late or not right
            work = _processor_seconds() - before
            told = f"{took:.0f} s, {ready:.0f} of them to install; {work:.0f} s of processor time"
            print(f"{door.name}: {told}{', which is too long' if late else ''}", flush=True)
    return int(failed)


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def is_late(door: Door, took: float, typing: float) -> bool:
    """True if a door takes longer than its reader should wait, in all or after installing."""
    return took > MOST_SECONDS or typing > MOST_TYPING.get(door.name, MOST_SECONDS)


def doors() -> Iterator[Door]:
    """The README up to its first section, then the landing pages."""
    yield Door(FIRST_SCREEN, (ROOT / "README.md").read_text("utf-8").partition("\n## ")[0])
    for page in LANDING:
        title, _, text = (ROOT / "docs" / f"{page}.md").read_text("utf-8").partition("\n")
        yield Door(title.removeprefix("# "), text)
    for title, page in SLOW.items():
        text = (ROOT / "docs" / "howto" / f"{page}.md").read_text("utf-8")
        yield Door(title, text.partition("\n## A Triton matmul\n")[2].partition("\n## ")[0])


def build_wheel(folder: Path) -> Path:
    """As the README says."""
    _run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), ".", at=ROOT)
    (wheel,) = folder.glob("rota-*.whl")
    return wheel


def installed(wheel: Path, door: Door, venv: Path) -> Path:
    """The interpreter of a clean environment with the wheel and the door's extras."""
    _run(sys.executable, "-m", "venv", str(venv), at=ROOT)
    python = venv / "bin" / "python"
    line = f"{install_line(EXTRAS.get(door.name, ()))} -c {ROOT / 'constraints.txt'}"
    _run("bash", "-c", " ".join((line, *BESIDE.get(door.name, ()))), at=wheel.parents[1], binaries=python.parent)
    return python


def install_line(extras: Sequence[str] = ()) -> str:
    """How the README installs the wheel from where it was built, with extras or without.

    A shell doesn't expand the pattern if brackets follow it: they are part of the pattern.
    """
    return f'pip install --quiet "$(ls dist/rota-*.whl)[{",".join(extras)}]"' if extras else _PLAIN


def type_door(door: Door, folder: Path, binaries: Path) -> Iterator[Typed]:
    """Saves the door's files, types its commands, and runs its Python that isn't a file's."""
    for block in blocks_of(door.text):
        if block.file:
            (folder / block.file).write_text(block.text, "utf-8")
        if block.language == "python" and block.output is not None:
            name = block.file or "typed.py"
            (folder / name).write_text(block.text, "utf-8")
            yield _typed(f"python {name}", block.output.text, folder, binaries)
        elif block.language == "console":
            for command in commands_of(block):
                yield _typed(command.line, command.shown, folder, binaries)


def _typed(line: str, shown: str, folder: Path, binaries: Path) -> Typed:
    started = perf_counter()
    path = os.pathsep.join((str(binaries), os.environ["PATH"]))
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env=kept | {"PATH": path, "NO_COLOR": "1", "COLUMNS": "120", "ROTA_CACHE": "off"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return Typed(line, perf_counter() - started, matches(shown, done.stdout), done.stdout)


def _run(*command: str, at: Path, binaries: Path | None = None) -> None:
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    if binaries is not None:
        kept["PATH"] = os.pathsep.join((str(binaries), kept["PATH"]))
    done = subprocess.run(command, cwd=at, env=kept, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)[:300]}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
