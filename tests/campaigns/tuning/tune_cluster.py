"""A tuning run on a cluster, simulated: takes measured rates, prints what limits 10^6 schedules on 1 to 1000 nodes.

    python -m benchmarks.tune_cluster [--seconds 2.0] [--cores 64]

Measured here first: what the driver takes to read a row of a batch from its line and to write it, a batch in one
transaction, as a run does it; and beside it what it would take row by row.  The rest is given: seconds of a point
(those of the points in a store, if a folder is named), what a Ray task costs the driver, cores of a node.  Batches go
to free workers in turn; their rows wait for the one driver, which reads and writes them one after the other.
"""

from __future__ import annotations

import argparse
import heapq
import random
import tempfile
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from rota.tune.point import JobKind, LoopPoint, PointRow, PointStatus, row_of
from rota.tune.tune_library import Store
from rota.workers.ray_pool import BATCH_SECONDS

SCHEDULES = 1_000_000
TASK_SECONDS = 0.001  # of the driver for one Ray task: Ray's own figure is thousands of tasks a second
SEED = 19
ROW = PointRow(
    key="k" * 64,
    kind=JobKind.SOLVE,
    point=LoopPoint(device="MI355X"),
    status=PointStatus.PROVED,
    facts={"loop_clocks": 516.0, "matrix_clocks": 512.0, "certificate": "proved for every trip count" * 4},
    answer='{"k": {"starts": [' + ", ".join(["123"] * 100) + "]}}",
)


class Rates(NamedTuple):
    """Seconds: of the driver per row, read and written, and per task; of a worker per point."""

    read: float
    write: float
    task: float
    point: float


class Simulated(NamedTuple):
    """How a run went: hours, and how busy workers and driver were."""

    nodes: int
    hours: float
    workers_busy: float
    driver_busy: float

    @property
    def limit(self) -> str:
        """What there was too little of."""
        return "limited by the driver" if self.driver_busy > 0.9 else "limited by the workers"


def measured_rates(point: float, rows: int = 300, *, batched: bool = True) -> Rates:
    """The driver's share, on this machine and its disk."""
    lines = [replace(ROW, key=f"{number:064}").line() for number in range(rows)]
    started = perf_counter()
    found = [row_of(line) for line in lines]
    read = (perf_counter() - started) / rows
    size = max(1, int(BATCH_SECONDS / point)) if batched else 1
    with tempfile.TemporaryDirectory() as folder, Store(Path(folder), write=True) as store:
        started = perf_counter()
        for first in range(0, rows, size):
            store.put(*found[first : first + size])
        write = (perf_counter() - started) / rows
    return Rates(read, write, TASK_SECONDS, point)


def simulate(nodes: int, cores: int, rates: Rates, schedules: int = SCHEDULES, seed: int = SEED) -> Simulated:
    """Events: a batch is done on a worker; the driver takes its rows when it has time, then that worker gets the next.

    Points take times around the mean, drawn with a seed: exponential, as searches are.  Two batches per worker wait or
    run, so that a worker starts the next at once while the driver is busy with its last one.
    """
    drawn, workers = random.Random(seed), nodes * cores
    size = max(1, min(int(BATCH_SECONDS / rates.point), -(-schedules // workers)))
    batches = -(-schedules // size)
    spread = size**0.5  # of a sum of so many
    free = [(0.0, number) for number in range(workers)]
    heapq.heapify(free)
    ends: list[float] = []
    busy = 0.0
    for _ in range(batches):
        at, worker = heapq.heappop(free)
        took = max(0.1, drawn.gauss(size, spread)) * rates.point
        busy += took
        ends.append(at + took)
        heapq.heappush(free, (at + took, worker))
    driver = spent = 0.0
    each = rates.task + size * (rates.read + rates.write)
    for end in sorted(ends):
        driver = max(driver, end) + each
        spent += each
    return Simulated(nodes, driver / 3600, busy / (workers * driver), spent / driver)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--cores", type=int, default=64)
    asked = parser.parse_args()
    point = asked.seconds
    if asked.folder:
        with Store(asked.folder) as store:
            times = [row.seconds for row in store.rows().values() if row.kind is JobKind.SOLVE]
            point = sum(times) / len(times)
    print(f"{SCHEDULES:,} schedules of {point:.2f} s, {asked.cores} cores a node, batches of {BATCH_SECONDS:.0f} s")
    for batched in (True, False):
        rates = measured_rates(point, batched=batched)
        most = 1 / (rates.read + rates.write)
        print(f"{'a batch' if batched else 'every row'} in a transaction of its own: a row is read in", end=" ")
        print(f"{1e6 * rates.read:.0f} us and written in {1e6 * rates.write:.0f} us, {most:,.0f} rows a second at most")
        for nodes in (1, 10, 100, 1000):
            found = simulate(nodes, asked.cores, rates)
            print(
                f"  {nodes:5} nodes: {found.hours:8.3f} h, workers busy {found.workers_busy:4.0%}, driver busy "
                f"{found.driver_busy:6.1%}: {found.limit}",
                flush=True,
            )
