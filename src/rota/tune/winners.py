"""Which kernel wins for which shape.

The predicted time decides, unless this kernel was measured on this shape; then the measured one does. For a loop with
three or more measured runs, those runs correct the model for all other shapes. A choice comes with a shortlist: the
fewest kernels among which the fastest is with a stated probability.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rota.errors import MeasureError
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
from rota.tune.point import PointRow
from rota.tune.shortlist import FAR, Candidates, ErrorScale, chances, expected_losses, shortlist
from rota.tune.space import ProblemShape, Swizzle

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
