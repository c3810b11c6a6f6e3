"""Compiled kernels, judged twice: `python -m benchmarks.same_verdicts [--slower 10] [--without-core] [PATTERN]`.

Once as it is, once on a clock that is so many times slower, or in a process without the native core (`ROTA_NATIVE=0`).
Prints every kernel whose verdict differs in anything but its seconds, and how many were judged; fails if one does.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from rota.cli.output import plain
from rota.errors import RotaError
from rota.prove.kernel_proof import prove_object
from tests.campaigns.shared_folder import shared_folder

Row = tuple[str, Any]


def judged(files: list[Path]) -> Iterator[Row]:
    """What is said about each file, but for how long it took."""
    for file in files:
        try:
            verdicts = plain(prove_object(file))
        except RotaError as error:
            verdicts = plain(error.findings)
        for each in verdicts:
            each.get("statistics", {}).pop("seconds", None)
        yield str(file), json.loads(json.dumps(verdicts))


def _slower(files: list[Path], times: float) -> list[Row]:
    clock = SimpleNamespace(process_time=lambda: times * time.process_time())
    with patch("rota.prove.verdict.time", clock):
        return list(judged(files))


def _without_core(files: list[Path]) -> list[Row]:
    code = "import json, sys; from pathlib import Path; from benchmarks.same_verdicts import judged\n"
    code += "print(json.dumps([*judged([*map(Path, json.load(sys.stdin))])]))"
    given = json.dumps([*map(str, files)])
    environment = {**os.environ, "ROTA_NATIVE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code], input=given, capture_output=True, text=True, env=environment, check=True
    )
    return [(name, verdicts) for name, verdicts in json.loads(done.stdout)]


def main() -> int:
    """Judges and compares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slower", type=float, default=0.0)
    parser.add_argument("--without-core", action="store_true")
    parser.add_argument("pattern", nargs="?", default="")
    options = parser.parse_args()
    every = sorted(shared_folder("kernels/compiled").rglob("*.hsaco"))
    files = [each for each in every if options.pattern in str(each)]
    before = list(judged(files))
    others = []
    if options.slower or not options.without_core:
        others.append(_slower(files, options.slower or 10.0))
    if options.without_core:
        others.append(_without_core(files))
    differ = [name for other in others for (name, one), (_, two) in zip(before, other, strict=True) if one != two]
    for name in differ:
        print(f"differs: {name}")
    print(f"{len(files)} objects, judged {1 + len(others)} times, {len(differ)} verdicts differ")
    return bool(differ)


if __name__ == "__main__":
    sys.exit(main())
