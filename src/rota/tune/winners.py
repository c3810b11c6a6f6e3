"""Which kernel wins for which shape.

The predicted time decides, unless this kernel was measured on this shape; then the measured one does. For a loop with
three or more measured runs, those runs correct the model for all other shapes. Kernels within the model's error of the
winner are counted with the choice, and the next ones are named.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
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


FORMAT = 1
_NAMED = 3
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
    apart: float
    digest: str


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
        apart=problem_facts_of(known).apart,
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


def choices(ranking: Ranking, shapes: Sequence[ProblemShape]) -> list[tuple[str, dict[str, Any]]]:
    """By shape, what was chosen, as the store keeps it."""
    if not ranking.configurations or not shapes:
        return []
    times = predict_times(ranking.candidates, shapes)
    places: dict[tuple[int, int, int], list[int]] = {}
    for number, shape in enumerate(shapes):
        places.setdefault((shape.m, shape.n, shape.k), []).append(number)
    columns: dict[tuple[str, int], list[int]] = {}
    for number, each in enumerate(ranking.configurations):
        columns.setdefault((each.kernel, each.split_k), []).append(number)
        columns.setdefault((each.row.point.name, each.split_k), []).append(number)
    measured: set[tuple[int, int]] = set()
    for run in ranking.runs:
        for at in places.get((run.m, run.n, run.k), ()):
            for column in columns.get((run.kernel, run.split_k), ()):
                times[at, column] = run.us
                measured.add((at, column))
    best = times.argmin(axis=1)
    near = times <= times.min(axis=1, keepdims=True) * (1 + ranking.apart)
    order = times.argsort(axis=1, kind="stable")[:, : _NAMED + 1]
    found = []
    for row, shape in enumerate(shapes):
        column = int(best[row])
        chosen = ranking.configurations[column]
        corrected = ranking.candidates[column].correction is not None
        following = [ranking.configurations[int(each)] for each in order[row][1:] if near[row, int(each)]]
        choice = {
            "kernel": chosen.kernel,
            "key": chosen.row.key,
            "split_k": chosen.split_k,
            "swizzle": list(chosen.swizzle),
            "us": float(times[row, column]),
            "basis": MEASURED if (row, column) in measured else CALIBRATED if corrected else PREDICTED,
            "near": int(near[row].sum()),
            "next": [[each.kernel, each.split_k] for each in following],
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
