"""Tune a library: schedule and prove each distinct loop once, then choose a kernel for every shape.

There are two levels. A loop's schedule doesn't depend on M, N and K: each distinct loop is scheduled and proved once,
in seconds, by as many workers as there are. Then a closed formula rates every proved kernel on every shape, in
microseconds each, in this process. Only a proved kernel may win; with `audit`, only one that its compiler kept as well.
Rows that the store has aren't computed again. The store is one SQLite file in a folder, which is the truth about the
library: one process writes, under a lock; any number read.

The predicted time decides which kernel wins, unless this kernel was measured on this shape; then the measured one does.
For a loop with three or more measured runs, those runs correct the model for all other shapes. A choice comes with a
shortlist: the fewest kernels among which the fastest is with a stated probability.
"""

from __future__ import annotations

import csv
import hashlib
import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rota.errors import Finding, MeasureError, TuneError
from rota.predict.calibrate import FEWEST, MeasuredGemm, calibrate, read_runs
from rota.predict.predict_problem import (
    ABOVE_BEST,
    Correction,
    GemmProblem,
    ModelParameters,
    TiledGemm,
    parameters_of,
    times_of,
    type_facts_of,
    work_of_problem,
)
from rota.solver.memory import canonical, code_digest
from rota.targets.device import problem_facts_of
from rota.targets.registry import device_named
from rota.tune.point import JobKind, PointJob, PointRow, PointStatus, audit_key, make_row, point_of
from rota.tune.shortlist import FAR, Candidates, ErrorScale, chances, expected_losses, shortlist
from rota.tune.space import ProblemShape, Pruned, Swizzle, TuneSpace, sift
from rota.workers.job import Pool
from rota.workers.local_pool import LocalPool
from rota.workers.sqlite_file import SqliteFile

_TABLES = """
CREATE TABLE points (
    key TEXT PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, point TEXT NOT NULL, status TEXT NOT NULL,
    code TEXT NOT NULL, message TEXT NOT NULL, facts TEXT NOT NULL, answer TEXT NOT NULL, seconds REAL NOT NULL,
    attempts INTEGER NOT NULL, written REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE choices (
    ranking TEXT NOT NULL, shape TEXT NOT NULL, choice TEXT NOT NULL, PRIMARY KEY (ranking, shape)
) WITHOUT ROWID;
CREATE TABLE measured (
    kernel TEXT NOT NULL, device TEXT NOT NULL, m INTEGER NOT NULL, n INTEGER NOT NULL, k INTEGER NOT NULL,
    split_k INTEGER NOT NULL, us REAL NOT NULL, source TEXT NOT NULL, PRIMARY KEY (kernel, device, m, n, k, split_k)
) WITHOUT ROWID;
"""
_POINT = "INSERT OR REPLACE INTO points VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


class Store(SqliteFile):
    FILE, LOCK = "library.sqlite", "library.lock"
    TABLES = _TABLES
    WHAT = "tuned library"
    MADE_BY = "`rota tune` makes one: -o names its folder"

    def put(self, *rows: PointRow) -> None:
        """Write all rows or none, waiting for the disk once; whoever is killed afterwards leaves them there."""
        with self._findings(), self._transaction():
            self._base.executemany(_POINT, map(_values, rows))

    def rows(self, keys: Iterable[str] | None = None) -> dict[str, PointRow]:
        """Rows by key; all of them, or those of some keys as far as they are there."""
        names = "key, kind, point, status, code, message, facts, answer, seconds, attempts"
        with self._findings():
            wanted = None if keys is None else frozenset(keys)
            found = self._base.execute(f"SELECT {names} FROM points ORDER BY name, key").fetchall()  # noqa: S608  # fixed
        said = (dict(zip(names.split(", "), values, strict=True)) for values in found)
        return {
            each["key"]: make_row(each | {name: json.loads(each[name]) for name in ("point", "facts")})
            for each in said
            if wanted is None or each["key"] in wanted
        }

    def choose(self, ranking: str, choices: Iterable[tuple[str, Mapping[str, object]]]) -> None:
        """What was chosen for shapes under a ranking; older rankings go."""
        with self._findings(), self._transaction():
            self._base.executemany(
                "INSERT OR REPLACE INTO choices VALUES (?, ?, ?)",
                ((ranking, shape, json.dumps(choice, sort_keys=True)) for shape, choice in choices),
            )

    def list_choices(self, ranking: str) -> dict[str, dict[str, Any]]:
        with self._findings():
            found = self._base.execute("SELECT shape, choice FROM choices WHERE ranking = ?", (ranking,)).fetchall()
        return {shape: json.loads(choice) for shape, choice in found}

    def forget_rankings(self, but: Sequence[str]) -> None:
        marks = ", ".join("?" * len(but))
        with self._findings(), self._transaction():
            self._base.execute(f"DELETE FROM choices WHERE ranking NOT IN ({marks})", tuple(but))  # noqa: S608  # marks

    def measure(self, runs: Iterable[tuple[str, str, int, int, int, int, float, str]]) -> None:
        """Measured runs: kernel, device, M, N, K, split, microseconds, source; a later one replaces an earlier."""
        with self._findings(), self._transaction():
            self._base.executemany("INSERT OR REPLACE INTO measured VALUES (?, ?, ?, ?, ?, ?, ?, ?)", runs)

    def list_runs(self) -> list[tuple[str, str, int, int, int, int, float, str]]:
        """All measured runs, in an order of their own."""
        with self._findings():
            return self._base.execute(
                "SELECT kernel, device, m, n, k, split_k, us, source FROM measured ORDER BY 1, 2, 3, 4, 5, 6"
            ).fetchall()


def _values(row: PointRow) -> tuple[object, ...]:
    point, facts = json.dumps(row.point.data()), json.dumps(dict(row.facts))
    told = row.status.value, row.code, row.message, facts, row.answer, row.seconds, row.attempts
    return row.key, row.kind.value, row.point.name, point, *told, time.time()


# The formula is `rota.predict.predict_problem`'s, which a test compares: the same model, with arrays for numbers.

Floats = NDArray[np.float64]

CHUNK = 1 << 18
"""Points that are evaluated at once, which fit a cache better than all."""
_RESULT_BYTES = {"bf16": 2.0, "fp16": 2.0, "fp32": 4.0}


class Candidate(NamedTuple):
    """A kernel as the formula sees it: its loop, how K is split, K-tiles outside the loop, and what was measured."""

    gemm: TiledGemm
    split_k: int
    tiles_outside: int
    correction: Correction | None = None


def predict_times(candidates: Sequence[Candidate], shapes: Sequence[ProblemShape]) -> Floats:
    """Microseconds by shape and candidate; infinite where K is too short to be split so."""
    gemms = [each.gemm for each in candidates]
    facts = [type_facts_of(gemm) for gemm in gemms]
    best = _row(np.inf if own.best is None else own.best.value for own in facts)
    tile = tuple(_row(gemm.tile[side] for gemm in gemms) for side in range(3))
    split = _row(each.split_k for each in candidates)
    outside = _row(each.tiles_outside for each in candidates)
    pairs = zip(candidates, facts, strict=True)
    each_has = [parameters_of(each.gemm.device, own, each.correction) for each, own in pairs]
    columns: Any = [_row(values) for values in zip(*each_has, strict=True)]  # arrays represent numbers
    kernels = {
        "tile": tile,
        "split_k": split,
        "units": _row(gemm.device.timing.compute_units.value for gemm in gemms),
        "lds_bytes": _row(gemm.device.lds_bytes.value for gemm in gemms),
        "element_bytes": _row(gemm.element_bytes for gemm in gemms),
        "mma": _row(gemm.matrix_clocks for gemm in gemms),
        "loop": _row(gemm.loop_clocks for gemm in gemms),
    }
    arrays: Any = work_of_problem  # takes arrays as it takes numbers
    found = np.empty((len(shapes), len(candidates)))
    rows = max(1, CHUNK // max(1, len(candidates)))
    for first in range(0, len(shapes), rows):
        some = shapes[first : first + rows]
        m, n, k = (np.array([shape[side] for shape in some], float)[:, None] for side in range(3))
        result_bytes = np.array([_RESULT_BYTES[shape.result] for shape in some])[:, None]
        work = arrays(sides=(m, n, k), result_bytes=result_bytes, **kernels)
        fastest = 2 * m * n * k / (ABOVE_BEST * best) / 1e6
        us = np.maximum(np.asarray(times_of(work, ModelParameters(*columns)).total), fastest)
        # As the emitted launcher has it: loops that are filled and drained once each need K enough.
        long_enough = (split == 1) | ((k // tile[2]) // split >= 2 * np.maximum(outside, 1))
        found[first : first + rows] = np.where(long_enough, us, np.inf)
    return found


def _row(values: Any) -> Floats:  # noqa: ANN401  # any numbers
    return np.array(list(values), float)[None, :]


FORMAT = 2
STATED = 0.8
"""How likely the fastest kernel is to be on a shape's shortlist, at least."""
_DECIDE = ("predict", "tune")
MEASURED, CALIBRATED, PREDICTED = "measured", "calibrated", "predicted"


class KernelRun(NamedTuple):
    kernel: str
    device: str
    m: int
    n: int
    k: int
    split_k: int
    us: float
    source: str


class Configuration(NamedTuple):
    """A proved loop, how K is split, and the order of workgroups."""

    row: PointRow
    split_k: int
    swizzle: Swizzle

    @property
    def kernel(self) -> str:
        """The name of the kernel, whatever the split: the launch decides about that."""
        return kernel_name(self.row.point.name, self.swizzle)


class Ranking(NamedTuple):
    """What choices of a device rest on, and its digest."""

    device: str
    element: str
    configurations: tuple[Configuration, ...]
    candidates: tuple[Candidate, ...]
    runs: tuple[KernelRun, ...]
    digest: str

    def scale(self, m: int) -> ErrorScale:
        """The errors between kernels of a problem with so many rows.

        The slope is 1: the smaller one of measured kernels is due to the choice of those that were recorded.
        """
        regime = problem_facts_of(device_named(self.device)).regime(m)
        return ErrorScale(regime.family, regime.own)


def kernel_name(loop: str, swizzle: Swizzle) -> str:
    return f"{loop}_xcds{swizzle.xcds}_group{swizzle.group}"


def rank(
    device: str, rows: Iterable[PointRow], splits: Sequence[int], swizzles: Sequence[Swizzle], runs: Sequence[KernelRun]
) -> Ranking:
    """The configurations of a device and a type, all of them proved."""
    proved = [row for row in rows if row.point.device == device]
    own = tuple(run for run in runs if run.device == device)
    known = device_named(device)
    corrections = {row.key: _correction(row, swizzles, own) for row in proved}
    configurations, candidates = [], []
    for row in proved:
        for swizzle in swizzles:
            for split in splits:
                configurations.append(Configuration(row, split, swizzle))
                outside = int(row.facts["tiles_outside"])
                candidates.append(Candidate(gemm_of(row), split, outside, corrections[row.key]))
    said = [
        FORMAT,
        canonical(problem_facts_of(known)),
        [[each.row.key, each.split_k, each.swizzle, each.row.facts] for each in configurations],
        own,
        code_digest(_DECIDE),
    ]
    return Ranking(
        device=device,
        element=proved[0].point.element if proved else "",
        configurations=tuple(configurations),
        candidates=tuple(candidates),
        runs=own,
        digest=hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest(),
    )


def gemm_of(row: PointRow) -> TiledGemm:
    return TiledGemm(
        name=row.point.name,
        device=row.point.target,
        tile=row.point.tile,
        element=row.point.element,
        loop_clocks=float(row.facts["loop_clocks"]),
        matrix_clocks=float(row.facts["matrix_clocks"]),
    )


def _correction(row: PointRow, swizzles: Sequence[Swizzle], runs: Sequence[KernelRun]) -> Correction | None:
    names = {kernel_name(row.point.name, swizzle) for swizzle in swizzles} | {row.point.name}
    own = [run for run in runs if run.kernel in names]
    if len(own) < FEWEST:
        return None
    measured = [
        MeasuredGemm(GemmProblem(m=run.m, n=run.n, k=run.k, split_k=run.split_k), run.us, (), "", number)
        for number, run in enumerate(own)
    ]
    return calibrate(gemm_of(row), measured, "measured").correction


class ShapeCandidates(NamedTuple):
    """The configurations that may be the fastest on a shape, by number in the ranking, and what is known of them."""

    columns: tuple[int, ...]
    measured: frozenset[int]
    of: Candidates

    @property
    def first(self) -> int:
        """The place of the choice: what is measured, or predicted, to be the fastest."""
        return int(np.argmin(self.of.us))


def candidates_of(ranking: Ranking, shapes: Sequence[ProblemShape]) -> Iterator[ShapeCandidates]:
    """By shape, without what can't matter: configurations that are the same kernel, and those measured to be slower."""
    times = predict_times(ranking.candidates, shapes)
    columns: dict[tuple[str, int], list[int]] = {}
    for number, each in enumerate(ranking.configurations):
        columns.setdefault((each.kernel, each.split_k), []).append(number)
        columns.setdefault((each.row.point.name, each.split_k), []).append(number)
    runs: dict[tuple[int, int, int], list[KernelRun]] = {}
    for run in ranking.runs:
        runs.setdefault((run.m, run.n, run.k), []).append(run)
    for us, shape in zip(times, shapes, strict=True):
        measured: set[int] = set()
        for run in runs.get((shape.m, shape.n, shape.k), ()):
            for column in columns.get((run.kernel, run.split_k), ()):
                us[column] = run.us
                measured.add(column)
        yield _select(ranking, shape, us, measured)


def _select(ranking: Ranking, shape: ProblemShape, us: Floats, measured: set[int]) -> ShapeCandidates:
    """A family among rota's own kernels is a tile with its waves."""
    scale, best = ranking.scale(shape.m), min((float(us[each]) for each in measured), default=np.inf)
    near = np.flatnonzero(np.isfinite(us) & (us <= us.min() * np.exp(FAR * scale.total))).tolist()
    kept: dict[Any, int] = {}
    for column in sorted(near, key=lambda each: (each not in measured, us[each], each)):
        if column not in measured or us[column] == best:
            kept.setdefault(_identity(ranking.configurations[column], shape), column)
    slower = {_identity(ranking.configurations[each], shape) for each in measured if us[each] > best}
    chosen = sorted(column for kernel, column in kept.items() if kernel not in slower or us[column] == best)
    points = [ranking.configurations[column].row.point for column in chosen]
    families = {family: number for number, family in enumerate(dict.fromkeys((p.tile, p.waves) for p in points))}
    family = np.array([families[p.tile, p.waves] for p in points])
    return ShapeCandidates(tuple(chosen), frozenset(measured), Candidates(us[chosen], family, scale))


def _identity(each: Configuration, shape: ProblemShape) -> Any:  # noqa: ANN401  # a key
    """Equal for configurations that do the same: an equal schedule, and workgroups in the same order on this shape."""
    point, facts = each.row.point, each.row.facts
    down, across = -(-shape.m // point.tile[0]), -(-shape.n // point.tile[1])
    order = (min(each.swizzle.group, down), each.swizzle.xcds) if down * across > 1 else ()
    kernel = (point.tile, point.waves, point.mma, facts.get("schedule", each.row.key))
    return kernel, each.split_k, order


def choices(ranking: Ranking, shapes: Sequence[ProblemShape]) -> list[tuple[str, dict[str, Any]]]:
    """By shape, what was chosen, as the store keeps it; nothing where K is too short for every split."""
    if not ranking.configurations or not shapes:
        return []
    found: list[tuple[str, dict[str, Any]]] = []
    for shape, own in zip(shapes, candidates_of(ranking, shapes), strict=True):
        if not own.columns:
            found.append((shape_key(shape), {}))
            continue
        each = chances(own.of)
        listed = shortlist(own.of, STATED, each)
        numbers = [own.first, *(number for number in listed.numbers if number != own.first)]
        column = own.columns[own.first]
        chosen = ranking.configurations[column]
        corrected = ranking.candidates[column].correction is not None
        names = [ranking.configurations[own.columns[number]] for number in numbers]
        choice = {
            "kernel": chosen.kernel,
            "key": chosen.row.key,
            "split_k": chosen.split_k,
            "swizzle": list(chosen.swizzle),
            "us": float(own.of.us[own.first]),
            "basis": MEASURED if column in own.measured else CALIBRATED if corrected else PREDICTED,
            "chance": float(each[own.first]),
            "loss": float(expected_losses(own.of, [own.first])[0]),
            "shortlist": [[each.kernel, each.split_k] for each in names],
            "shortlist_chance": min(float(each[numbers].sum()), 1.0),
        }
        found.append((shape_key(shape), choice))
    return found


def shape_key(shape: ProblemShape) -> str:
    return f"{shape.m}x{shape.n}x{shape.k}:{shape.result}"


def fits(ranking: Ranking, shape: ProblemShape) -> bool:
    return shape.element in ("", ranking.element)


def winners_used(chosen: Iterable[Mapping[str, Any]]) -> dict[tuple[str, Swizzle], list[Mapping[str, Any]]]:
    """The distinct kernels among choices: a loop's key and its order of workgroups, with what they were chosen for."""
    found: dict[tuple[str, Swizzle], list[Mapping[str, Any]]] = {}
    for each in chosen:
        found.setdefault((each["key"], Swizzle(*each["swizzle"])), []).append(each)
    return found


def read_measured(path: Path, known: Collection[str]) -> list[KernelRun]:
    """The runs of a file, which may be of several devices; `kernel` is a name of the dispatch table.

    A row about another kernel ends in M204: a time that is put to the wrong kernel would decide wrongly from then on.
    """
    found: list[KernelRun] = []
    try:
        with path.open(newline="", encoding="utf-8") as file:
            devices = list(dict.fromkeys(row["device"] for row in csv.DictReader(file) if row.get("device")))
    except (OSError, UnicodeDecodeError) as error:
        raise MeasureError.of("M201", f"{path.name}: it can't be read: {error}") from error
    for device in devices or [""]:  # what is malformed is left to `read_runs`, whose findings say it
        for run in read_runs(path, device_named(device)).runs:
            if run.kernel not in known:
                raise MeasureError.of(
                    "M204",
                    f"{path.name}:{run.line}: {run.kernel or 'no kernel'!r:.80} is not of this library",
                    evidence=(("kernels", len(known)),),
                    fixes=("name kernels as the dispatch table does, in a column kernel",),
                )
            sides = run.problem.m, run.problem.n, run.problem.k, run.problem.split_k
            found.append(KernelRun(run.kernel, device_named(device).name, *sides, run.us, path.name))
    return found


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
