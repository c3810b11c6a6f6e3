"""Builds the compiled parts into the package, with the ziglang wheel, so that nobody needs a compiler of their own.

Where there is no build for a platform, or with `ROTA_PURE=1`, the wheel holds none, and Python and NumPy do the same
work.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LIBRARIES = {"src/rota/isa/native": "lib/librota_core.so", "src/rota/cycles/native": "lib/librota_pace.so"}
# glibc 2.17 is what the oldest wheels that pip still installs are built for.
TARGETS = {"x86_64": ("x86_64-linux-gnu.2.17", "x86_64"), "aarch64": ("aarch64-linux-gnu.2.17", "aarch64")}
OPTIONS = ("-O3", "-ffp-contract=off", "-fPIC", "-shared", "-s", "-Wall", "-Wextra", "-Werror")


class NativeCore(BuildHookInterface[Any]):
    """Compiles the libraries, and says for which platform the wheel is."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Before the files of the wheel are gathered."""
        if os.environ.get("ROTA_PURE") or not sys.platform.startswith("linux") or platform.machine() not in TARGETS:
            return
        target, machine = TARGETS[platform.machine()]
        for folder, library in LIBRARIES.items():
            _build(Path(self.root, folder), library, ("-target", target, "-mcpu=baseline", *OPTIONS))
            build_data["artifacts"].append(f"{folder}/{library}")
        build_data["pure_python"] = False
        if version != "editable":
            build_data["tag"] = f"py3-none-manylinux_2_17_{machine}"


def _build(folder: Path, name: str, options: tuple[str, ...]) -> None:
    """A library of all C files of a folder, unless it is there and newer than these."""
    library = folder / name
    library.parent.mkdir(exist_ok=True)
    sources = sorted(folder.glob("*.c"))
    newest = max(path.stat().st_mtime for path in folder.glob("*.[ch]"))
    # One that somebody built by hand may need a newer glibc than the wheel's name says.
    built, how = library.with_suffix(".options"), " ".join(options)
    fits = library.exists() and built.exists() and built.read_text("utf-8") == f"{how} {library.stat().st_size}"
    if not fits or library.stat().st_mtime < newest:
        compiler = (sys.executable, "-m", "ziglang", "cc")
        command = (*compiler, *options, "-o", str(library), *map(str, sources), "-lm")
        subprocess.run(command, check=True)  # noqa: S603  # our own sources
        built.write_text(f"{how} {library.stat().st_size}", "utf-8")
