"""A fleet of code objects: takes a folder, prints how long it takes, on how many workers, and what a second run costs.

    python -m benchmarks.fleet FOLDER [--every N] [--kills 20] [--ray] [--one]

With `--one` the same objects are judged by one worker too, in another store, and the ratio is printed. With `--kills`
the run is disturbed in a third store: workers, their children and the driver get SIGKILL at drawn moments, and the
table must be the same in the end. With `--ray` it is done through Ray on this machine. Last comes what the measured
rate means for 100,000 objects.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rota.fleet.verdict_store import FleetRun, VerdictStore
from tests.campaigns.tuning.tune_kills import descendants, kill

_OBJECTS = 100_000


class Timed(NamedTuple):
    seconds: float
    run: FleetRun


def check(folder: Path, store: Path, *options: str) -> Timed:
    """`rota check` as a user types it."""
    begun = time.perf_counter()
    done = subprocess.run(
        ["rota", "check", str(folder), "--store", str(store), *options], stdout=subprocess.DEVNULL, check=False
    )
    took = time.perf_counter() - begun
    assert done.returncode in {0, 1}, done.returncode
    return Timed(took, read(store))


def read(store: Path) -> FleetRun:
    with VerdictStore(store) as opened:
        run = opened.last_run()
    assert run is not None
    return run


def table(run: FleetRun) -> list[tuple[str, ...]]:
    """What must be the same however a run went: the verdicts and the findings, without times."""
    return [(each.file, each.row.kernel, each.row.status, *map(str, each.row.findings)) for each in run.rows]


def disturb(folder: Path, store: Path, kills: int, drawn: random.Random) -> tuple[int, int, FleetRun]:
    """Workers, children and drivers are killed at drawn moments, until so many were; then a run ends undisturbed."""
    workers = drivers = 0
    command = ["rota", "check", str(folder), "--store", str(store)]
    while workers + drivers < kills:
        driver = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(4):
            time.sleep(drawn.uniform(0.5, 4.0))
            below = descendants(driver.pid)
            if driver.poll() is not None or not below:
                break
            workers += kill(drawn.choice(below))
        if driver.poll() is not None:
            break  # everything was judged before
        drivers += kill(driver.pid)
        driver.wait()
    return workers, drivers, check(folder, store).run


def summarise(name: str, timed: Timed) -> str:
    rows = [each.row for each in timed.run.rows]
    counts = ", ".join(f"{count} {status}" for status, count in Counter(row.status for row in rows).most_common())
    cpu = sum(row.seconds for row in rows)
    middle = statistics.median(row.seconds for row in rows)
    return (
        f"{name}: {len(rows)} kernels in {timed.seconds:.1f} s ({len(rows) / timed.seconds:.2f}/s; "
        f"{cpu:.0f} s in workers, median {middle:.1f}, most {max(row.seconds for row in rows):.1f}): {counts}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--every", type=int, default=1, help="only each so many-th object")
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--ray", action="store_true")
    parser.add_argument("--one", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="rota-fleet-") as scratch:
        place = Path(scratch)
        folder = place / "objects"
        folder.mkdir()
        found = sorted(each for each in given.folder.rglob("*") if each.suffix in {".co", ".hsaco"})
        for number, file in enumerate(found[:: given.every]):
            shutil.copy(file, folder / f"{number:05}_{file.name}")
        cores = len(os.sched_getaffinity(0))
        first = check(folder, place / "first")
        print(summarise(f"{cores} workers", first), flush=True)
        again = check(folder, place / "first")
        same = [table(again.run) == table(first.run)]
        print(f"a second run: {again.seconds:.1f} s, the same table: {same[0]}", flush=True)
        if given.one:
            one = check(folder, place / "one", "--jobs", "1")
            same.append(table(one.run) == table(first.run))
            ratio = one.seconds / first.seconds
            print(summarise("1 worker", one), f"\nratio {ratio:.2f}, the same table: {same[-1]}", flush=True)
        if given.kills:
            workers, drivers, run = disturb(folder, place / "kills", given.kills, random.Random(given.seed))
            same.append(table(run) == table(first.run))
            print(f"killed {workers} workers and {drivers} drivers, the same table: {same[-1]}", flush=True)
        if given.ray:
            ray = check(folder, place / "ray", "--ray")
            same.append(table(ray.run) == table(first.run))
            print(summarise("Ray", ray), f"\nthe same table: {same[-1]}", flush=True)
        rate = len(first.run.rows) / first.seconds / cores
        hours = {nodes: _OBJECTS / (rate * cores * nodes) / 3600 for nodes in (1, 10, 100)}
        estimate = ", ".join(f"{count:.1f} h on {nodes}" for nodes, count in hours.items())
        print(f"estimated from this rate, for {_OBJECTS:,} objects on nodes of {cores} cores: {estimate}")
    return 0 if all(same) else 1
