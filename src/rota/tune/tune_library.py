"""Tune a library: schedule and prove each distinct loop once, then choose a kernel for every shape.

There are two levels. A loop's schedule doesn't depend on M, N and K: each distinct loop is scheduled and proved once,
in seconds, by as many workers as there are. Then a closed formula rates every proved kernel on every shape, in
microseconds each, in this process. Only a proved kernel may win; with `audit`, only one that its compiler kept as well.
Rows that the folder has aren't computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from rota.errors import Finding, TuneError
from rota.targets.registry import device_named
from rota.tune.point import JobKind, PointJob, PointRow, PointStatus, audit_key, point_of
from rota.tune.space import ProblemShape, Pruned, Swizzle, TuneSpace, sift
from rota.tune.store import Store
from rota.tune.winners import KernelRun, Ranking, choices, fits, rank, shape_key
from rota.workers.job import Pool
from rota.workers.local_pool import LocalPool

Tell = Callable[["Tally"], None]
"""Hears how far the run is, after every row."""


@dataclass(slots=True, kw_only=True)
class Tally:
    asked: int = 0
    hits: int = 0
    done: int = 0
    proved: int = 0
    refused: int = 0
    failed: int = 0
    evaluated: int = 0
    kept: int = 0
    solve_seconds: float = 0.0
    formula_seconds: float = 0.0
    doing: str = "solving"
    started: float = field(default_factory=perf_counter)

    def count(self, row: PointRow, *, hit: bool) -> None:
        self.hits += hit
        self.done += not hit
        self.proved += row.status is PointStatus.PROVED
        self.refused += row.status is PointStatus.REFUSED
        self.failed += row.status is PointStatus.FAILED


class DeviceTable(NamedTuple):
    """The choices of a device by shape; `untuned` are shapes that have none, with the reason."""

    device: str
    ranking: Ranking
    choices: dict[ProblemShape, dict[str, Any]]
    untuned: tuple[tuple[ProblemShape, str], ...]


class TunedLibrary(NamedTuple):
    folder: Path
    tables: tuple[DeviceTable, ...]
    rows: tuple[PointRow, ...]
    pruned: tuple[Pruned, ...]
    tally: Tally

    @property
    def findings(self) -> tuple[Finding, ...]:
        """S401 for each device on which shapes have no kernel."""
        return tuple(
            Finding(
                "S401",
                f"{len(table.untuned)} of {len(table.untuned) + len(table.choices)} shapes have no proved "
                f"kernel on {table.device}",
                evidence=tuple((str(shape), why) for shape, why in table.untuned[:5]),
                fixes=("widen the space", "untuned.csv lists them all"),
            )
            for table in self.tables
            if table.untuned
        )


def tune_library(
    shapes: Sequence[ProblemShape],
    space: TuneSpace,
    folder: Path,
    *,
    pool: Pool | None = None,
    audit: bool = False,
    measured: Sequence[KernelRun] = (),
    retry: bool = False,
    tell: Tell = lambda _: None,
) -> TunedLibrary:
    """Tune; with `retry` points whose processes failed are computed once more."""
    sifted = sift(space)
    with Store(folder, write=True) as store:
        store.say(
            shapes=[list(shape) for shape in shapes],
            points=[point.data() for point in sifted.points],
            pruned=[list(each) for each in sifted.pruned],
            split_k=list(space.split_k),
            swizzle=[list(each) for each in space.swizzle],
            audit=audit,
        )
        if measured:
            store.measure(measured)
        tally = Tally(asked=len(sifted.points))
        runner = _Runner(store, pool or LocalPool(), tally, tell, retry=retry)
        rows = runner.run([PointJob(point.key(), JobKind.SOLVE, point) for point in sifted.points])
        proved = [row for row in rows if row.status is PointStatus.PROVED]
        if audit:
            proved = runner.audit(proved)
        tally.solve_seconds = perf_counter() - tally.started
        tables = _tables(store, proved, shapes, space, tally)
        store.forget_rankings([table.ranking.digest for table in tables])
        tell(tally)
    return TunedLibrary(folder, tables, tuple(rows), sifted.pruned, tally)


class _Runner:
    """Rows from the store where they are there, from the pool where not."""

    def __init__(self, store: Store, pool: Pool, tally: Tally, tell: Tell, *, retry: bool) -> None:
        self.store, self.pool, self.tally, self.tell, self.retry = store, pool, tally, tell, retry

    def run(self, jobs: Sequence[PointJob]) -> list[PointRow]:
        there = self.store.rows(job.key for job in jobs)
        found = {key: row for key, row in there.items() if not self._again(row)}
        for row in found.values():
            self.tally.count(row, hit=True)
        self.tell(self.tally)
        for rows in self.pool.run([job for job in jobs if job.key not in found]):
            self.store.put(*rows)
            for row in rows:
                found[row.key] = row
                self.tally.count(row, hit=False)
            self.tell(self.tally)
        return [found[job.key] for job in jobs]

    def _again(self, row: PointRow) -> bool:
        """A failure under narrower limits than now, or one that is to be tried again."""
        if row.status is not PointStatus.FAILED:
            return False
        now = self.pool.limits
        return (
            self.retry
            or (row.code == "S303" and row.facts["seconds"] < now.seconds)
            or (row.code == "S302" and row.facts["megabytes"] < now.megabytes)
            or row.code in ("S304", "S305")
        )

    def audit(self, proved: Sequence[PointRow]) -> list[PointRow]:
        from rota.isa.binary.toolchain import find_toolchain

        toolchain = find_toolchain().name
        keys = {audit_key(row.key, toolchain): row for row in proved}
        self.tally.asked += len(keys)
        self.tally.doing = "auditing"
        rows = self.run([PointJob(key, JobKind.AUDIT, row.point, row.answer) for key, row in keys.items()])
        return [keys[row.key] for row in rows if row.status is PointStatus.PROVED]


def _tables(
    store: Store, proved: Sequence[PointRow], shapes: Sequence[ProblemShape], space: TuneSpace, tally: Tally
) -> tuple[DeviceTable, ...]:
    """The formula level: what was chosen before under the same ranking is not evaluated again."""
    runs = [KernelRun(*values) for values in store.list_runs()]
    tally.doing = "choosing"
    tables = []
    for name in dict.fromkeys(device_named(device).name for device in space.device):
        for element in space.type:
            mine = [row for row in proved if row.point.element == element]
            ranking = rank(name, mine, space.split_k, space.swizzle, runs)
            wanted = [shape for shape in shapes if fits(ranking, shape)] if ranking.configurations else []
            there = store.list_choices(ranking.digest)
            missing = [shape for shape in wanted if shape_key(shape) not in there]
            started = perf_counter()
            new = dict(choices(ranking, missing))
            tally.formula_seconds += perf_counter() - started
            tally.evaluated += len(missing) * len(ranking.configurations)
            tally.kept += (len(wanted) - len(missing)) * len(ranking.configurations)
            store.choose(ranking.digest, new.items())
            tables.append(_table(element, ranking, shapes, wanted, there | new))
    return tuple(tables)


def _table(
    element: str,
    ranking: Ranking,
    shapes: Sequence[ProblemShape],
    wanted: Iterable[ProblemShape],
    found: dict[str, dict[str, Any]],
) -> DeviceTable:
    put = {shape: found[shape_key(shape)] for shape in wanted}
    tuned = {shape: choice for shape, choice in put.items() if choice}
    untuned = []
    for shape in shapes:
        if shape not in tuned:
            why = "the run has not come so far"
            if not ranking.configurations:
                why = f"no loop of {element} was proved"
            elif not fits(ranking, shape):
                why = f"the space is of {element}, the shape of {shape.element}"
            elif shape in put:
                why = "K is too short for every split of the space"
            untuned.append((shape, why))
    return DeviceTable(ranking.device, ranking, tuned, tuple(untuned))


def library_in(folder: Path) -> TunedLibrary:
    """What a folder's last run found, without choices that the store lacks."""
    with Store(folder) as store:
        if store.recall("points") is None or store.recall("shapes") is None:
            raise TuneError.of("S401", f"nothing was tuned into {folder.name} yet", fixes=("run `rota tune`",))
        return _read(folder, store)


def _read(folder: Path, store: Store) -> TunedLibrary:
    points = [point_of(data) for data in store.recall("points")]
    shapes = [ProblemShape(*data) for data in store.recall("shapes")]
    splits, swizzles = store.recall("split_k"), [Swizzle(*each) for each in store.recall("swizzle")]
    rows = store.rows()
    own = [rows[key] for key in (point.key() for point in points) if key in rows]
    tally = Tally(asked=len(points))
    for row in own:
        tally.count(row, hit=True)
    proved = [row for row in own if row.status is PointStatus.PROVED]
    if store.recall("audit"):
        exact = {row.point for row in rows.values() if row.kind is JobKind.AUDIT and row.status is PointStatus.PROVED}
        proved = [row for row in proved if row.point in exact]
    runs = [KernelRun(*values) for values in store.list_runs()]
    tables = []
    for name in dict.fromkeys(point.device for point in points):
        for element in dict.fromkeys(point.element for point in points if point.device == name):
            mine = [row for row in proved if row.point.element == element]
            ranking = rank(name, mine, splits, swizzles, runs)
            there = store.list_choices(ranking.digest)
            wanted = [shape for shape in shapes if shape_key(shape) in there and fits(ranking, shape)]
            tables.append(_table(element, ranking, shapes, wanted, there))
    pruned = tuple(Pruned(*each) for each in store.recall("pruned"))
    return TunedLibrary(folder, tuple(tables), tuple(own), pruned, tally)


_WIDTH = 24


def progress_line(tally: Tally) -> str:
    """Rate and time left count what was computed, not what was there."""
    there = tally.hits + tally.done
    filled = _WIDTH * there // max(tally.asked, 1)
    counts = f"{tally.proved} proved, {tally.refused} refused, {tally.failed} failed"
    line = f"{tally.doing} [{'#' * filled}{'.' * (_WIDTH - filled)}] {there} of {tally.asked} loops: {counts}"
    took = perf_counter() - tally.started
    if tally.done and took > 0:
        rate = tally.done / took
        line += f", {rate:.2g}/s, {(tally.asked - there) / rate:.0f} s left"
    return line


def summary(tally: Tally) -> str:
    evaluated = f"{tally.evaluated:,} points by formula"
    if tally.evaluated and tally.formula_seconds > 0:
        evaluated += f" in {tally.formula_seconds:.2f} s ({tally.evaluated / tally.formula_seconds:,.0f}/s)"
    return (
        f"{tally.asked} loops: {tally.done} computed, {tally.hits} in the store; {tally.proved} proved, "
        f"{tally.refused} refused, {tally.failed} failed\n{evaluated}, {tally.kept:,} chosen before"
    )
