"""A library of 10,000 real shapes: takes the measured table's problems, prints what tuning them costs, level by level.

    python -m benchmarks.tune_library [FOLDER] [--workers N] [--small] [--audit]

The shapes are those that AITER's tuners measured on MI355X and MI300X.  Printed are wall time, solves, proofs, what was
in the store already, and points per second of the formula in one process; then the solve level alone, in fresh stores,
on one and on two workers.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from rota.tune.dispatch_table import table_files
from rota.tune.space import ProblemShape, TuneSpace, sift, space_of
from rota.tune.tune_library import TunedLibrary, predict_times, summary, tune_library
from rota.workers.local_pool import LocalPool
from tests.campaigns.measured.measured_rows import DEVICES, measured_on

SHAPES = 10_000
SEED = 19
SPACE = space_of(
    {
        "device": ["mi355x", "mi300x"],
        "tile": [
            *("256x256x64", "256x128x64", "128x256x64", "128x128x64", "128x64x64", "64x128x64", "64x64x64"),
            *("256x64x64", "64x256x64", "32x128x64", "32x64x64", "64x32x64", "128x128x32", "256x256x32", "64x64x128"),
        ],
        "waves": [4, 8],
        "mma": [16, 32],
        "split_k": [1, 2, 4, 8, 16],
        "grain": "tiles",
        "effort": 0.5,
    }
)
FEW = space_of({"tile": ["128x128x64", "128x64x64"], "waves": 4, "seed": [0, 1, 2, 3], "grain": "tiles", "effort": 0.5})
"""Loops of about the same cost, for the rate of the solve level."""


def real_shapes(count: int, devices: Sequence[str] = ("MI355X", "MI300X"), seed: int = SEED) -> list[ProblemShape]:
    """Problems that were measured on either device, drawn with a seed."""
    found = sorted(
        {
            ProblemShape(int(row["M"]), int(row["N"]), int(row["K"]))
            for name in devices
            for row in measured_on(DEVICES[name])
        }
    )
    return sorted(random.Random(seed).sample(found, min(count, len(found))))


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--small", action="store_true", help="a tenth of the shapes, two tiles")
    parser.add_argument("--audit", action="store_true", help="only what a compiler kept may win")
    asked = parser.parse_args()
    shapes = real_shapes(SHAPES // 10 if asked.small else SHAPES)
    space = FEW if asked.small else SPACE
    with tempfile.TemporaryDirectory() as scratch:
        folder = asked.folder or Path(scratch) / "library"
        print(f"{len(shapes):,} real shapes, {os.cpu_count()} processors, {asked.workers} workers", flush=True)
        library = run(shapes, space, folder, asked.workers, audit=asked.audit)
        again = run(shapes, space, folder, asked.workers, audit=asked.audit)
        same = table_files(library) == table_files(again)
        print(f"second run: {again.tally.done} solves, {again.tally.evaluated} points by formula, same table: {same}")
        formula_rate(library, shapes)
        solve_rates(Path(scratch))


def run(
    shapes: Sequence[ProblemShape], space: TuneSpace, folder: Path, workers: int, *, audit: bool = False
) -> TunedLibrary:
    """One run, with its figures."""
    started = perf_counter()
    sifted = sift(space)
    library = tune_library(shapes, space, folder, pool=LocalPool(workers), audit=audit)
    took, tally = perf_counter() - started, library.tally
    loops = len(sifted.points)
    per_device = [len(table.ranking.configurations) for table in library.tables]
    print(f"{loops} loops, {len(sifted.pruned)} left out by arithmetic; configurations per device {per_device}")
    print(summary(tally))
    points = tally.evaluated + tally.kept
    print(
        f"wall {took:,.1f} s: {tally.done} solves, {tally.proved} proofs, {tally.hits} hits; {points:,} points, "
        f"{points / took:,.0f} a second over all",
        flush=True,
    )
    return library


def formula_rate(library: TunedLibrary, shapes: Sequence[ProblemShape]) -> None:
    """All shapes by all configurations, once more, in this process alone."""
    for table in library.tables:
        started = perf_counter()
        found = predict_times(table.ranking.candidates, shapes)
        took = perf_counter() - started
        print(
            f"formula on {table.device}: {found.size:,} points in {took:.2f} s, {60 * found.size / took:,.0f} a minute"
        )


def solve_rates(scratch: Path) -> None:
    """The same loops in fresh stores, on one worker and on two."""
    seconds = {}
    for workers in (1, 2):
        started = perf_counter()
        library = tune_library(real_shapes(1), FEW, scratch / f"rate{workers}", pool=LocalPool(workers))
        seconds[workers] = perf_counter() - started
        done = library.tally.done
        print(
            f"solve level, {workers} workers: {done} loops in {seconds[workers]:.1f} s, {done / seconds[workers]:.2f}/s"
        )
    print(f"parallel efficiency on 2 workers: {seconds[1] / 2 / seconds[2]:.0%}")
