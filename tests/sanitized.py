"""Compiled parts with AddressSanitizer and UndefinedBehaviorSanitizer: takes C files, gives where Python loads them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

_OPTIONS = (
    "-O0", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-shared-libasan",
    "-ffp-contract=off", "-fPIC", "-shared",
)  # fmt: skip


def sanitised(library: Path, sources: Iterable[Path]) -> dict[str, str]:
    """Builds the library; the environment of a process that takes it for the one of the package."""
    subprocess.run(["clang-22", *_OPTIONS, "-o", str(library), *sorted(map(str, sources)), "-lm"], check=True)
    asked = ["clang-22", "-print-file-name=libclang_rt.asan-x86_64.so"]
    runtime = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
    assert Path(runtime).exists(), "the sanitizers' runtime is in libclang-rt-22-dev"
    loaded = {"LD_PRELOAD": runtime, "ASAN_OPTIONS": "detect_leaks=0", "ROTA_NATIVE": str(library.parent)}
    return {**os.environ, **loaded}
