"""`rota tune`: a folder with a dispatch table of proved kernels, for many shapes."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from rota.cli.output import give, json_option, progress, tell, write_files
from rota.errors import several

if TYPE_CHECKING:
    from rota.tune.dispatch_table import ShapeRow
    from rota.tune.space import TuneSpace
    from rota.tune.tune_bench import MeasuringPlan
    from rota.tune.tune_library import KernelRun, Tally, TunedLibrary
    from rota.workers.job import JobLimits, Pool

_FILE = click.Path(dir_okay=False, path_type=Path)
_CLEAR = "\r\x1b[K"
_STATUS = "status"
_MOST_LEFT = 5
_MOST_ROWS = 12
_QUIET = 10.0
"""Seconds between lines of progress where stderr is no terminal."""


@click.command(
    epilog="\b\nExamples:\n  rota tune --example"
    "\n\n\b\nSHAPES is a CSV with the columns M, N and K, AITER's untuned CSV, or a model's config.json."
    "\nA space is a file of TOML in which every list is a dimension; --example prints one."
    "\nWithout one, nine tiles from 256x256 to 64x32 are searched with 4 and 8 waves and K split"
    "\nin 1, 2, 4 and 8, of the shapes' types: 16 to 18 loops for a device, of one to three seconds."
    "\nThe word status and a folder, instead of SHAPES, say how far a run is or what it found."
)
@click.argument("what", metavar="SHAPES", nargs=-1)
@click.option("--example", is_flag=True, help="Print a space with every dimension.")
@click.option("--space", type=_FILE, help="What is searched, instead of the default.")
@click.option("--device", metavar="NAME,NAME,...", help="Devices of the default space, as mi355x,mi300x.")
@click.option("-o", "--output", type=click.Path(file_okay=False, path_type=Path), help="The library's folder.")
@click.option("--workers", type=click.IntRange(1, 1024), default=1, show_default=True, help="Processes that search.")
@click.option(
    "--ray",
    is_flag=False,
    flag_value="local",
    metavar="ADDRESS",
    help="Search on a Ray cluster; by default a local one.",
)
@click.option("--audit", is_flag=True, help="Only what a compiler kept as scheduled may win.")
@click.option("--measure", type=_FILE, help="A CSV of measured runs, or of a benchmark; they decide from now on.")
@click.option(
    "--write-bench",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write a benchmark of the candidates on shortlists, to be run on a GPU.",
)
@click.option(
    "--hours",
    type=click.FloatRange(min=0, min_open=True),
    help="Plan the runs that fit into so many hours on each device, and write just those with --write-bench.",
)
@click.option(
    "--run-seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=10.0,
    show_default=True,
    help="What a run of a plan takes, a candidate on a shape: an assumption.",
)
@click.option("--seconds", type=click.FloatRange(min=1), default=600.0, show_default=True, help="For one point.")
@click.option("--megabytes", type=click.IntRange(64), default=4096, show_default=True, help="For one point.")
@click.option("--retry", is_flag=True, help="Compute points again whose process failed.")
@click.option("--tokens", metavar="M,M,...", help="Rows of A, for a model's config.")
@click.option("--parallel", type=click.IntRange(min=1), default=1, help="Devices that share a model's layers.")
@click.option("--parquet", metavar="URL", help="Write all results as Parquet files, to a folder or an object store.")
@json_option
def tune(
    what: tuple[str, ...],
    *,
    example: bool,
    space: Path | None,
    device: str | None,
    output: Path | None,
    workers: int,
    ray: str | None,
    audit: bool,
    measure: Path | None,
    write_bench: Path | None,
    hours: float | None,
    run_seconds: float,
    seconds: float,
    megabytes: int,
    retry: bool,
    tokens: str | None,
    parallel: int,
    parquet: str | None,
) -> None:
    """Choose a proved kernel for each of many SHAPES.

    Every distinct loop of the space is scheduled and proved once; every shape is put to every proved kernel by a
    formula. What the folder holds is not computed again. Times are predicted, not measured.

    --write-bench DIR writes, for each device, a host program in C++ that needs HIP alone, and the candidates' kernels
    for shapes with a shortlist of several. --measure reads its results. --hours 1 chooses the runs that are expected
    to save most.
    """
    if example:
        from rota.tune.space import EXAMPLE

        give(EXAMPLE.rstrip(), {"space": EXAMPLE})
        return
    if len(what) == 2 and what[0] == _STATUS:
        _status(Path(what[1]))
        return
    if len(what) != 1 or output is None:
        raise click.UsageError("tuning takes one file of shapes and -o; or status and a folder")
    if space is not None and device is not None:
        raise click.UsageError("--device is for the default space: the file that --space names has its own devices")
    from rota.tune.space import TOKENS, default_space, read_shapes, read_space
    from rota.tune.tune_library import tune_library
    from rota.workers.job import JobLimits

    rows_of_a = TOKENS if tokens is None else _numbers(tokens)
    shapes = read_shapes(Path(what[0]), rows_of_a, parallel)
    devices = [] if device is None else device.split(",")
    searched = default_space(shapes, devices) if space is None else read_space(space)
    again = [what[0], *(["--space", str(space)] if space else []), *(["--device", device] if device else [])]
    runs = [] if measure is None else _read_measured(measure, searched, output)
    pool = _pool(workers, ray, JobLimits(seconds, megabytes))
    library = tune_library(shapes, searched, output, pool=pool, audit=audit, measured=runs, retry=retry, tell=_Line())
    plans = [] if hours is None else _plan_hours(library, hours * 3600 / run_seconds)
    said = [line for plan in plans for line in _describe(plan, hours, run_seconds)]
    written = (
        [] if write_bench is None else _write_benches(library, write_bench, again, None if hours is None else plans)
    )
    _finish(library, parquet, [*([] if measure is None else _list_left(library)), *said, *written], plans)


def _list_left(library: TunedLibrary) -> list[str]:
    """What is left to measure, after measured runs came in."""
    from rota.tune.tune_bench import list_open

    lines = []
    for table in library.tables:
        found = list_open(table)
        several_shapes = f"{len(found)} of {len(table.choices)} shapes"
        lines.append(f"{table.device} {table.ranking.element}: {several_shapes} have candidates that nobody measured")
        lines += [
            f"  {each.shape}: {' '.join(f'{kernel}/{split}' for kernel, split in each.missing)}"
            for each in found[:_MOST_LEFT]
        ]
    return lines


def _plan_hours(library: TunedLibrary, runs: float) -> list[MeasuringPlan]:
    from rota.tune.tune_bench import plan_measuring

    devices = dict.fromkeys(table.device for table in library.tables if table.choices)
    with progress("planning runs"):
        return [plan_measuring(library, device, int(runs)) for device in devices]


def _describe(plan: MeasuringPlan, hours: float | None, run_seconds: float) -> list[str]:
    from rota.tune.dispatch_table import short_names

    planned = f"{plan.runs:,} are planned, for {several(len(plan.chosen), 'shape')} of {plan.shapes:,}"
    budget = f"{hours:g} h are {plan.budget:,} runs of {run_seconds:g} s, which is an assumption"
    decided = f"{plan.decided_before:,} shapes decided before, {plan.decided_after:,} after"
    lines = [
        f"{plan.device}: {budget}; {planned}",
        f"  expected loss {plan.before:.1%} before, {plan.after:.1%} after; {decided}",
    ]
    for table, each in plan.chosen[:_MOST_LEFT]:
        names = short_names(table.ranking.configurations)
        lines.append(f"  {each.shape}: {', '.join(names[candidate] for candidate in each.candidates)}")
    if len(plan.chosen) > _MOST_LEFT:
        lines.append(f"  and {len(plan.chosen) - _MOST_LEFT:,} more")
    return lines


def _write_benches(
    library: TunedLibrary, folder: Path, again: Sequence[str], plans: Sequence[MeasuringPlan] | None
) -> list[str]:
    """A benchmark for each device, in a folder of its name; `again` are the arguments that tune the same."""
    from rota.bench.bench_plan import write_bench
    from rota.tune.tune_bench import keep_subjects, list_open, plan_library

    lines = []
    chosen = {plan.device: plan.chosen for plan in plans or () if plan.chosen}
    left = dict.fromkeys(table.device for table in library.tables if list_open(table))
    for device in left if plans is None else chosen:
        own = folder / device.lower()
        with progress(f"compiling candidates for {device}"):
            plan = plan_library(library, device, chosen=chosen.get(device))
        words = ["rota", "tune", *again, "-o", str(library.folder), "--measure", "results.csv"]
        write_files(own, write_bench(plan, back=shlex.join(words)).items())
        keep_subjects(library.folder, plan, device)
        lines.append(f"wrote {own}: {several(len(plan.cases), 'shape')}, {several(len(plan.objects), 'kernel')}")
    return lines or ["no benchmark: there are no candidates that are left to measure"]


def _finish(library: TunedLibrary, parquet: str | None, more: list[str], plans: list[MeasuringPlan]) -> None:
    from rota.tune.tune_library import summary

    if sys.stderr.isatty():
        click.echo(_CLEAR, nl=False, err=True)
    written = _write_files(library)
    if parquet is not None:
        from rota.tune.dispatch_table import list_tables
        from rota.workers.parquet import write_parquet

        written += write_parquet(list_tables(library), parquet)
    rows = _list_rows(library)
    lines = [summary(library.tally), *_tables(library, rows), *(f"wrote {name}" for name in written), *more]
    give("\n".join(lines), _data(library, rows, written) | {"plans": [plan.data() for plan in plans]})
    for finding in library.findings:
        tell(str(finding))
    if library.findings:
        click.get_current_context().exit(1)


def _write_files(library: TunedLibrary) -> list[str]:
    from rota.tune.dispatch_table import table_files
    from rota.tune.tune_report import report_page

    files = table_files(library) | {"report.html": report_page(library)}
    stale = library.folder / "untuned.csv"
    if "untuned.csv" not in files and stale.exists():
        stale.unlink()
    write_files(library.folder, files.items())
    return [str(library.folder / name) for name in files if "/" not in name]


def _list_rows(library: TunedLibrary) -> list[list[ShapeRow]]:
    """Those of each table."""
    from rota.tune.dispatch_table import list_rows

    return [list(list_rows(table)) for table in library.tables]


def _tables(library: TunedLibrary, found: Sequence[list[ShapeRow]]) -> list[str]:
    from rota.tune.dispatch_table import basis_of, summarize

    lines = []
    for table, rows in zip(library.tables, found, strict=True):
        lines.append(summarize(table, rows))
        for row in rows[:_MOST_ROWS]:
            chosen, risk = row.lines()
            lines += [f"  {chosen}", f"    {risk}"]
        if len(rows) > _MOST_ROWS:
            lines.append(f"  and {len(rows) - _MOST_ROWS:,} more: dispatch.csv has a row for each shape")
        if rows:
            lines.append(f"  {basis_of(table)}")
    return lines


def _data(library: TunedLibrary, found: Sequence[list[ShapeRow]], written: list[str]) -> dict[str, Any]:
    from rota.tune.dispatch_table import basis_of
    from rota.tune.tune_bench import list_open

    return {
        "ok": not library.findings,
        "tally": {
            name: getattr(library.tally, name)
            for name in ("asked", "hits", "done", "proved", "refused", "failed", "evaluated", "kept")
        },
        "tables": [
            {
                "device": table.device,
                "type": table.ranking.element,
                "tuned": len(table.choices),
                "untuned": table.untuned,
                "left": len(list_open(table)),
                "basis": basis_of(table),
                "shapes": [row.data() for row in rows],
            }
            for table, rows in zip(library.tables, found, strict=True)
        ],
        "pruned": library.pruned,
        "refused": [[row.point.name, row.code, row.message] for row in library.rows if row.code],
        "findings": library.findings,
        "written": written,
    }


def _status(folder: Path) -> None:
    """Read beside a run in progress, which nothing here disturbs."""
    from rota.tune.tune_library import library_in, progress_line

    library = library_in(folder)
    library.tally.doing = "solved"
    refusals: dict[str, int] = {}
    for row in library.rows:
        if row.code:
            refusals[row.code] = refusals.get(row.code, 0) + 1
    listed = [f"  {code}: {count}" for code, count in sorted(refusals.items())]
    rows = _list_rows(library)
    give("\n".join([progress_line(library.tally), *listed, *_tables(library, rows)]), _data(library, rows, []))


def _pool(workers: int, ray: str | None, limits: JobLimits) -> Pool:
    if ray is not None:
        from rota.workers.ray_pool import RayPool

        return RayPool(None if ray == "local" else ray, workers, limits)
    from rota.workers.local_pool import LocalPool

    return LocalPool(workers, limits)


def _numbers(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if not all(part.strip().isdecimal() and int(part) for part in parts):
        raise click.UsageError(f"--tokens: {text!r:.60} is not a list of whole numbers, as 1,16,4096")
    return tuple(map(int, parts))


def _read_measured(path: Path, space: TuneSpace, folder: Path) -> list[KernelRun]:
    from rota.tune.tune_bench import is_bench, read_bench

    if is_bench(path):
        return read_bench(path, folder)
    from rota.tune.space import sift
    from rota.tune.tune_library import kernel_name, read_measured

    loops = [point.name for point in sift(space).points]
    known = {kernel_name(loop, swizzle) for loop in loops for swizzle in space.swizzle} | set(loops)
    return read_measured(path, known)


class _Line:
    """One line that is written over on a terminal; elsewhere a line every ten seconds."""

    def __init__(self) -> None:
        self._last = perf_counter()

    def __call__(self, tally: Tally) -> None:
        from rota.tune.tune_library import progress_line

        if sys.stderr.isatty():
            click.echo(f"{_CLEAR}{progress_line(tally)}", nl=False, err=True)
        elif perf_counter() - self._last >= _QUIET:
            self._last = perf_counter()
            click.echo(progress_line(tally), err=True)
