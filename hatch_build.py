"""Builds the native core into the package, with the ziglang wheel as compiler, so that nobody needs one of their own.

Where there is no build for a platform the wheel holds none, and the NumPy interpreter does the same work.
"""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = "src/rota/isa/native"
CORE = "lib/librota_core.so"
# glibc 2.17 is what the oldest wheels that pip still installs are built for.
TARGETS = {"x86_64": ("x86_64-linux-gnu.2.17", "x86_64"), "aarch64": ("aarch64-linux-gnu.2.17", "aarch64")}
OPTIONS = ("-O3", "-ffp-contract=off", "-fPIC", "-shared", "-s", "-Wall", "-Wextra", "-Werror")


class NativeCore(BuildHookInterface[Any]):
    """Compiles the core, and says for which platform the wheel is."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Before the files of the wheel are gathered."""
        if not sys.platform.startswith("linux") or platform.machine() not in TARGETS:
            return
        target, machine = TARGETS[platform.machine()]
        folder = Path(self.root, FOLDER)
        core = folder / CORE
        core.parent.mkdir(exist_ok=True)
        sources = sorted(folder.glob("*.c"))
        newest = max(path.stat().st_mtime for path in folder.glob("*.[ch]"))
        if not core.exists() or core.stat().st_mtime < newest:
            compiler = (sys.executable, "-m", "ziglang", "cc", "-target", target, "-mcpu=baseline")
            command = (*compiler, *OPTIONS, "-o", str(core), *map(str, sources), "-lm")
            subprocess.run(command, check=True)  # noqa: S603  # our own sources
        build_data["artifacts"].append(f"{FOLDER}/{CORE}")
        build_data["pure_python"] = False
        if version != "editable":
            build_data["tag"] = f"py3-none-manylinux_2_17_{machine}"
