"""Calibration: correct the model by measured runs of a kernel, and say how far off it was.

Three factors are estimated: on the time as a whole, on the start, and on what memory adds. A least-squares fit with
priors moves each from 1 only as far as the runs demand, so that three runs suffice and one outlier does little.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from rota.errors import MeasureError, did_you_mean
from rota.predict.predict_problem import (
    Correction,
    GemmProblem,
    TiledGemm,
    parameters_of,
    times_of,
    type_facts_of,
    work_of,
)
from rota.targets.device import Device
from rota.targets.registry import STANDS_FOR

# Measured runs: the first line says which format a file has. What can't be read ends in M201, another device in M203.

COLUMNS = ("device", "M", "N", "K", "type", "layout", "kernel", "tile", "split_k", "us", "runs")
"""Of rota's own format; layout, kernel and runs are kept for the reader."""
_NEEDED = ("device", "M", "N", "K", "type", "tile", "split_k", "us")
_AITER = ("gfx", "cu_num", "M", "N", "K", "splitK", "us", "kernelName")
_TRACE = ("Kernel_Name", "Start_Timestamp", "End_Timestamp")


class MeasuredGemm(NamedTuple):
    """A problem and how long it took; tile, type and kernel are empty where the file doesn't state them."""

    problem: GemmProblem
    us: float
    tile: tuple[int, ...]
    element: str
    line: int
    kernel: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFile:
    """What a file holds; `left_out` says how many of its rows could not be used, and why."""

    path: str
    form: str
    runs: tuple[MeasuredGemm, ...]
    left_out: str = ""


def read_runs(
    path: Path, device: Device, *, problem: GemmProblem | None = None, kernel_name: str | None = None
) -> RunFile:
    """The runs of a file on a device; a kernel trace needs `problem`, and a part of the kernel's name."""
    reader = _Reader(path, device)
    has = set(reader.header)
    if has >= set(_TRACE):
        return reader.trace(problem, kernel_name)
    if has >= set(_AITER):
        return reader.aiter(kernel_name)
    missing = [name for name in _NEEDED if name not in has]
    if missing:
        fix = f"rota's own format has the columns {', '.join(COLUMNS)}; times are in us"
        raise reader.refuse(1, f"its first line lacks {', '.join(missing)}", fix)
    return reader.own()


class _Reader:
    """The rows of a file, each with as many fields as the first line."""

    def __init__(self, path: Path, device: Device) -> None:
        self.path, self.device = path, device
        try:
            text = path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise self.refuse(0, f"it can't be read: {error}") from error
        if text and not text.endswith("\n"):
            last = text.count("\n") + 1
            raise self.refuse(last, "it ends inside a line, so its last number may be cut", "export it again")
        rows = list(csv.reader(io.StringIO(text)))
        self.header = [name.strip() for name in rows[0]] if rows else []
        self.rows = [(number, row) for number, row in enumerate(rows[1:], 2) if row]
        for number, row in self.rows:
            if len(row) != len(self.header):
                raise self.refuse(number, f"it has {len(row)} fields, the first line {len(self.header)}")
        if not self.rows:
            raise self.refuse(1, "it holds no runs")

    def refuse(self, line: int, why: str, *fixes: str) -> MeasureError:
        where = f"{self.path.name}:{line}" if line else self.path.name
        return MeasureError.of("M201", f"{where}: {why}", evidence=(("file", self.path.name),), fixes=fixes)

    def each(self) -> Iterator[tuple[int, Mapping[str, str]]]:
        for number, row in self.rows:
            yield number, dict(zip(self.header, (part.strip() for part in row), strict=True))

    def own(self) -> RunFile:
        runs = []
        arches = [arch for arch, name in STANDS_FOR.items() if name == self.device.name.lower()]
        for number, row in self.each():
            if row["device"].lower() not in (self.device.name.lower(), *arches):
                raise self._refuse_device(number, row["device"])
            tile = tuple(self._integer(number, "tile", part) for part in row["tile"].lower().split("x"))
            if len(tile) != 3:
                raise self.refuse(number, f"its tile is {row['tile']!r}; expected as 256x256x64")
            problem, us = self._problem(number, row, "split_k"), self._us(number, row)
            runs.append(MeasuredGemm(problem, us, tile, row["type"], number, row.get("kernel", "")))
        return RunFile(path=self.path.name, form="rota's CSV", runs=tuple(runs))

    def aiter(self, kernel_name: str | None) -> RunFile:
        runs, split, other = [], 0, 0
        for number, row in self.each():
            units = self._integer(number, "cu_num", row["cu_num"])
            if (row["gfx"], units) != (self.device.arch, self.device.timing.compute_units.value):
                raise self._refuse_device(number, f"{row['gfx']} with {units} units")
            if kernel_name is not None and kernel_name not in row["kernelName"]:
                other += 1
            elif self._integer(number, "splitK", row["splitK"]) > 1:
                split += 1  # libraries count splits differently in this column
            else:
                problem = self._problem(number, {**row, "splitK": "1"}, "splitK")
                runs.append(MeasuredGemm(problem, self._us(number, row), (), "", number, row["kernelName"]))
        left = f"{split} rows with a split K, {other} of other kernels" if split or other else ""
        return RunFile(path=self.path.name, form="AITER's tuned CSV", runs=tuple(runs), left_out=left)

    def trace(self, problem: GemmProblem | None, kernel_name: str | None) -> RunFile:
        if problem is None or kernel_name is None:
            fix = "--problem MxNxK says it, --kernel-name is a part of the kernel's name"
            raise self.refuse(1, "a kernel trace doesn't say which problem its kernels computed", fix)
        runs, other = [], 0
        for number, row in self.each():
            if kernel_name not in row["Kernel_Name"]:
                other += 1
                continue
            start, end = (self._integer(number, name, row[name]) for name in _TRACE[1:])
            if end <= start:
                raise self.refuse(number, f"the kernel ends at {end}, before it starts at {start}")
            runs.append(MeasuredGemm(problem, (end - start) / 1e3, (), "", number))
        left = f"{other} dispatches of other kernels" if other else ""
        return RunFile(path=self.path.name, form="rocprofv3 kernel trace", runs=tuple(runs), left_out=left)

    def _problem(self, number: int, row: Mapping[str, str], split: str) -> GemmProblem:
        m, n, k = (self._integer(number, name, row[name]) for name in ("M", "N", "K"))
        return GemmProblem(m=m, n=n, k=k, split_k=self._integer(number, split, row[split]))

    def _integer(self, number: int, name: str, text: str) -> int:
        try:
            return int(text)
        except ValueError:
            raise self.refuse(number, f"{name} is {text!r}; expected a whole number") from None

    def _us(self, number: int, row: Mapping[str, str]) -> float:
        try:
            us = float(row["us"])
        except ValueError:
            us = 0.0
        if not 0 < us < float("inf"):
            raise self.refuse(number, f"us is {row['us']!r}; expected a number of microseconds above 0")
        return us

    def _refuse_device(self, number: int, name: str) -> MeasureError:
        return MeasureError.of(
            "M203",
            f"{self.path.name}:{number}: it was measured on {name}, not on {self.device.name}",
            evidence=(("file", name), ("device", f"{self.device.name} ({self.device.arch})")),
            fixes=("name the device that it was measured on: --device", "leave rows of other devices out"),
        )


FEWEST = 3
NOISE = 0.05
"""Of a measured run, as a share of its time; repeated rows of the public table differ by 3.3 %."""
PRIORS = (0.5, 0.2, 0.12)
"""How far whole, start and memory may be off, as logarithms: tenths, except the whole."""
_STEPS, _STEP = 25, 1e-4
_UNIT = 30.0
"""A model that was fitted to thousands of runs isn't off by this much: then it is the unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The factors, and the median error of the runs before and after; `bias` is measured / predicted before."""

    correction: Correction
    bias: float
    error_before: float
    error_after: float

    def __str__(self) -> str:
        fix = self.correction
        return (
            f"{fix.runs} runs: measured times were x{self.bias:.2f} of the predicted ones, {self.error_before:.1%} off "
            f"in the median; {self.error_after:.1%} with profile {fix.name!r}\n"
            f"  factors: loop x{fix.loop:.3f}, start x{fix.start:.3f}, memory x{fix.memory:.3f}"
        )


def calibrate(kernel: TiledGemm, runs: Sequence[MeasuredGemm], name: str) -> Calibration:
    """The correction that the runs of one kernel suggest."""
    _check(kernel, runs)
    ratios = _logs(kernel, runs, (0.0, 0.0, 0.0))
    ratio = exp(median(ratios))
    if not 1 / _UNIT < ratio < _UNIT:
        unit = "nanoseconds" if ratio > 1 else "milliseconds or seconds"
        raise MeasureError.of(
            "M202",
            f"measured times are x{ratio:.3g} of what is possible: they look like {unit}, not microseconds",
            evidence=(("first run", f"{runs[0].problem}: {runs[0].us:g}"), ("measured / predicted", f"x{ratio:.3g}")),
            fixes=("state times in microseconds, in a column named us",),
        )
    x = [0.0, 0.0, 0.0]
    for _ in range(_STEPS):
        step = _gauss_newton(kernel, runs, x)
        x = [a + b for a, b in zip(x, step, strict=True)]
        if max(map(abs, step)) < _STEP:
            break
    whole, start, memory = x
    correction = Correction(name, len(runs), exp(whole + start), exp(whole), exp(whole + memory))
    before, after = (median(abs(exp(-each) - 1) for each in logs) for logs in (ratios, _logs(kernel, runs, x)))
    return Calibration(correction=correction, bias=ratio, error_before=before, error_after=after)


def _logs(kernel: TiledGemm, runs: Sequence[MeasuredGemm], x: Sequence[float]) -> list[float]:
    """log(measured / predicted) of each run."""
    whole, start, memory = x
    fix = Correction("", 0, exp(whole + start), exp(whole), exp(whole + memory))
    at = parameters_of(kernel.device, type_facts_of(kernel), fix)
    return [log(run.us / times_of(work_of(kernel, run.problem), at).total) for run in runs]


def _gauss_newton(kernel: TiledGemm, runs: Sequence[MeasuredGemm], x: Sequence[float]) -> list[float]:
    base = _logs(kernel, runs, x)
    slopes = []
    for number in range(3):
        moved = [value + _STEP * (number == place) for place, value in enumerate(x)]
        slopes.append([(a - b) / _STEP for a, b in zip(_logs(kernel, runs, moved), base, strict=True)])
    weights = [1 / (1 + (each / (3 * NOISE)) ** 2) ** 0.5 for each in base]

    def multiply(a: Sequence[float], b: Sequence[float]) -> float:
        total: float = sum(w * m * n for w, m, n in zip(weights, a, b, strict=True)) / NOISE**2
        return total

    matrix = [[multiply(slope, other) for other in slopes] for slope in slopes]
    right = [-multiply(slope, base) - x[row] / PRIORS[row] ** 2 for row, slope in enumerate(slopes)]
    for row, prior in enumerate(PRIORS):
        matrix[row][row] += 1 / prior**2
    return _solve(matrix, right)


def _solve(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Three equations; the priors keep them regular."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    size = len(rows)
    for pivot in range(size):
        for other in range(size):
            if other != pivot:
                factor = rows[other][pivot] / rows[pivot][pivot]
                rows[other] = [a - factor * b for a, b in zip(rows[other], rows[pivot], strict=True)]
    return [rows[number][size] / rows[number][number] for number in range(size)]


def _check(kernel: TiledGemm, runs: Sequence[MeasuredGemm]) -> None:
    if len(runs) < FEWEST:
        raise MeasureError.of(
            "M204",
            f"{len(runs)} runs of {kernel.name} are too few for a calibration; it takes {FEWEST}",
            evidence=(("runs", len(runs)), ("needed", FEWEST)),
            fixes=("measure more shapes: a small one, a large one, and a long thin one tell most",),
        )
    for run in runs:
        other_tile = run.tile not in ((), kernel.tile)
        if other_tile or run.element not in ("", kernel.element):
            tile = "x".join(map(str, run.tile)) or "no tile stated"
            raise MeasureError.of(
                "M204",
                f"line {run.line} is about another kernel than {kernel.name}",
                evidence=(
                    ("line", f"{tile}, {run.element or 'no type stated'}"),
                    ("kernel", f"{'x'.join(map(str, kernel.tile))}, {kernel.element}"),
                ),
                fixes=("keep the runs of one kernel in one file",),
            )


# Profiles are small JSON files in the folder that `ROTA_PROFILES` names, else in the user's configuration.

FORMAT = 1
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_FACTORS = ("start", "loop", "memory")


def folder() -> Path:
    chosen = os.environ.get("ROTA_PROFILES")
    return Path(chosen) if chosen else Path.home() / ".config" / "rota" / "profiles"


def keep(found: Calibration, kernel: TiledGemm, source: str) -> Path:
    """Write a profile; one of that name is replaced."""
    name = found.correction.name
    if not _NAME.fullmatch(name):
        raise _refuse(f"{name!r:.60} can't be a profile's name: letters, digits, and . _ - between them")
    path = folder() / f"{name}.json"
    data = {
        "format": FORMAT,
        "device": kernel.device.name,
        "type": kernel.element,
        "kernel": kernel.name,
        "tile": list(kernel.tile),
        "runs": found.correction.runs,
        **{factor: getattr(found.correction, factor) for factor in _FACTORS},
        "error_before": found.error_before,
        "error_after": found.error_after,
        "source": source,
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(data, indent=2) + "\n")
    except OSError as error:
        raise _refuse(f"profile {name} can't be written: {error.strerror or error}") from error
    return path


def correction_named(name: str, kernel: TiledGemm) -> Correction:
    """What a profile says about a kernel, if it is about its device and type."""
    path = folder() / f"{name}.json"
    known = sorted(each.stem for each in folder().glob("*.json")) if folder().is_dir() else []
    if not _NAME.fullmatch(name) or name not in known:
        raise _refuse(f"no profile is named {name!r:.60}", *did_you_mean(name, known), "`rota calibrate` makes one")
    data = _read(path, name)
    own = (kernel.device.name, kernel.element)
    if (data.get("device"), data.get("type")) != own:
        about = f"{data.get('type')} on {data.get('device')}, {kernel.name} multiplies {own[1]} on {own[0]}"
        raise _refuse(f"profile {name} is about {about}", "make a profile from runs of that type on that device")
    return Correction(name, data["runs"], *(float(data[factor]) for factor in _FACTORS))


def _read(path: Path, name: str) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise _refuse(f"profile {name} can't be read: {error}") from error
    whole = isinstance(data, dict) and data.get("format") == FORMAT and isinstance(data.get("runs"), int)
    factors: list[Any] = [data.get(factor) for factor in _FACTORS] if whole else [None]
    if not all(type(each) in (int, float) and 0 < each < float("inf") for each in factors):
        raise _refuse(f"profile {name} is not what `rota calibrate` writes", "make it again")
    return dict(data)


def _refuse(message: str, *fixes: str) -> MeasureError:
    return MeasureError.of("M205", message, fixes=fixes)
