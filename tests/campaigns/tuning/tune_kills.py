"""A tuning run whose processes are killed: takes numbers of kills, prints whether anything was lost or done twice.

    python -m benchmarks.tune_kills [--workers 20] [--drivers 5] [--points 12] [--seed 19]

Workers, the processes of points among them, and drivers get SIGKILL at moments drawn with a seed; a driver that was
killed is started again on the same store.  In the end the table has to be that of an undisturbed run, byte for byte,
and one more run has to compute nothing.  Then a process that only writes rows is killed, again and again, while it
writes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from rota.tune.dispatch_table import table_files
from rota.tune.point import JobKind, LoopPoint, PointRow, PointStatus
from rota.tune.space import ProblemShape, TuneSpace, space_of
from rota.tune.tune_library import Store, library_in, tune_library
from rota.workers.local_pool import LocalPool

SHAPES = tuple(ProblemShape(m, n, 4096) for m in (1, 64, 4096) for n in range(1024, 8192, 512))
ROW = PointRow(
    key="", kind=JobKind.SOLVE, point=LoopPoint(device="MI355X"), status=PointStatus.PROVED, message="x" * 5000
)


class Killed(NamedTuple):
    """How many processes were killed, and how many runs it took."""

    workers: int
    drivers: int
    runs: int


def space(points: int) -> TuneSpace:
    """So many loops, each a fraction of a second; seeds make them different."""
    given = {"tile": "64x64x64", "waves": 4, "grain": "tiles", "effort": 0.0, "split_k": [1, 4]}
    return space_of({**given, "seed": list(range(points))})


def drive(folder: Path, points: int) -> None:
    """What a driver does, in a process of its own."""
    tune_library(SHAPES, space(points), folder, pool=LocalPool(2))


def disturbed(folder: Path, points: int, workers: int, drivers: int, drawn: random.Random) -> Killed:
    """Runs until one comes to its end; drivers are killed at drawn moments, each after its share of workers."""
    killed_workers = killed_drivers = runs = 0
    while True:
        runs += 1
        driver = subprocess.Popen([sys.executable, "-m", "benchmarks.tune_kills", "--drive", str(folder), str(points)])
        share = -(-workers * (killed_drivers + 1) // (drivers + 1))
        while driver.poll() is None:
            time.sleep(drawn.uniform(0.05, 0.6))
            below = descendants(driver.pid)
            if killed_workers < share and below:
                killed_workers += kill(drawn.choice(below))
            elif killed_drivers < drivers and killed_workers >= share:
                killed_drivers += kill(driver.pid)
                driver.wait()
        if driver.returncode == 0 or runs > workers + drivers + 20:
            return Killed(killed_workers, killed_drivers, runs)


def descendants(process: int) -> list[int]:
    """Every process that a process has started, and theirs."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue  # it has ended meanwhile
    found, below = [], [process]
    while below:
        above = below.pop()
        below += [each for each, parent in parents.items() if parent == above]
        found.append(above)
    return sorted(found[1:])


def kill(process: int) -> int:
    """1 if it was there to be killed."""
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return 0
    return 1


def content(folder: Path) -> dict[str, str]:
    """All rows without what a clock says: by key, so that none is there twice."""
    with Store(folder) as store:
        rows = store.rows()
    return {key: replace(row, seconds=0.0, attempts=1).line() for key, row in rows.items()}


def write_rows(folder: Path) -> None:
    """Rows without end, each said on standard output once it is written."""
    with Store(folder, write=True) as store:
        number = len(store.rows())
        while True:
            store.put(replace(ROW, key=f"k{number}"))
            number += 1
            sys.stdout.write(f"{number}\n")
            sys.stdout.flush()


def killed_while_writing(folder: Path, times: int, drawn: random.Random) -> int:
    """Rows after so many kills of their writer; none that it said was written may be missing."""
    rows = 0
    for _ in range(times):
        writer = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.tune_kills", "--write", str(folder)], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        for _ in range(drawn.randint(1, 60)):
            said = int(writer.stdout.readline())
        time.sleep(drawn.uniform(0, 0.005))
        writer.kill()
        writer.stdout.close()
        writer.wait()
        with Store(folder, write=True) as store:
            keys = store.rows().keys()
            rows = len(keys)
            assert rows >= said, f"{said} rows were written, {rows} are there"
            assert keys == {f"k{number}" for number in range(rows)}
    return rows


def main() -> None:
    """The campaign."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=20)
    parser.add_argument("--drivers", type=int, default=5)
    parser.add_argument("--points", type=int, default=12)
    parser.add_argument("--writers", type=int, default=20)
    parser.add_argument("--seed", type=int, default=19)
    parser.add_argument("--drive", nargs=2, metavar=("FOLDER", "POINTS"))
    parser.add_argument("--write", type=Path)
    asked = parser.parse_args()
    if asked.drive:
        drive(Path(asked.drive[0]), int(asked.drive[1]))
        return
    if asked.write:
        write_rows(asked.write)
        return
    drawn = random.Random(asked.seed)
    with tempfile.TemporaryDirectory() as scratch:
        plain, other = Path(scratch) / "undisturbed", Path(scratch) / "disturbed"
        drive(plain, asked.points)
        killed = disturbed(other, asked.points, asked.workers, asked.drivers, drawn)
        print(f"killed {killed.workers} workers and {killed.drivers} drivers; {killed.runs} runs", flush=True)
        due, found = content(plain), content(other)
        differ = sum(found[key] != due[key] for key in due.keys() & found.keys())
        print(
            f"rows lost {len(due.keys() - found.keys())}, too many {len(found.keys() - due.keys())}, changed {differ}"
        )
        same = json.dumps(table_files(library_in(plain))) == json.dumps(table_files(library_in(other)))
        again = tune_library(SHAPES, space(asked.points), other)
        print(f"final table identical: {same}; one more run computes {again.tally.done} loops")
        print(f"and evaluates {again.tally.evaluated} points", flush=True)
        rows = killed_while_writing(Path(scratch) / "written", asked.writers, drawn)
        print(f"a writer killed {asked.writers} times: {rows:,} rows, none lost, the store sound each time")
