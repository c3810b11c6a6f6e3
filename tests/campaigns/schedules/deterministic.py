"""The same schedule every time: takes nothing or parts of names, compiles each shipped loop often on a busy machine.

    python -m benchmarks.deterministic [--times 20] [PART_OF_NAME ...]

While every processor is kept busy by another process, each row of the zoo is compiled so many times, each in a process
of its own with its own hash seed; their documents must be identical, byte by byte, but for how long a search took.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rota.emit.document.exchange import to_json
from rota.errors import OrderError
from rota.values.compile_loop import compile_loop
from tests.campaigns.schedules.zoo import Row, rows

_BUSY = "while True: pass"


def digest(row: Row) -> str:
    """Of the document, without how many seconds a search took; of the finding, where there is no schedule."""
    try:
        compiled = compile_loop(row.loop, row.machine, stagger=row.stagger)
    except OrderError as error:
        return hashlib.sha256(str(error).encode()).hexdigest()
    document = json.dumps(_without_times(json.loads(to_json(compiled))), sort_keys=True)
    return hashlib.sha256(document.encode()).hexdigest()


def _without_times(value: object) -> object:
    if isinstance(value, dict):
        return {name: _without_times(each) for name, each in value.items() if name != "seconds"}
    return [_without_times(each) for each in value] if isinstance(value, list) else value


@contextmanager
def busy() -> Iterator[None]:
    """Every processor has something else to do."""
    others = [subprocess.Popen([sys.executable, "-c", _BUSY]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def digests(number: int, times: int) -> set[str]:
    """Of one row of the zoo, each in a process of its own."""
    found = set()
    for seed in range(times):
        command = [sys.executable, "-m", "benchmarks.deterministic", "--row", str(number)]
        environment = os.environ | {"PYTHONHASHSEED": str(seed)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        found.add(done.stdout.strip())
    return found


def main(arguments: Sequence[str]) -> int:
    """Print a row for each loop; 1 if one isn't the same every time."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.deterministic")
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--row", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    every = list(rows())
    if asked.row is not None:
        print(digest(every[asked.row]))
        return 0
    different = 0
    with busy():
        for number, row in enumerate(every):
            if asked.parts and not any(part in row.loop.name for part in asked.parts):
                continue
            found = digests(number, asked.times)
            different += len(found) > 1
            grain = row.grain + (", staggered" if row.stagger else "")
            said = "identical" if len(found) == 1 else f"{len(found)} different"
            print(f"{row.loop.name:36} {grain:22} {asked.times} compiles: {said}", flush=True)
    return int(different > 0)
