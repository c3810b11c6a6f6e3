"""Measured runs from files: takes rota's own CSV, AITER's tuned CSV or a rocprofv3 kernel trace, gives `MeasuredGemm`s.

Which format a file has is seen from its first line.  What can't be read ends in M201, another device in M203.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rota.errors import Finding, MeasureError
from rota.predict.gemm_problem import GemmProblem
from rota.targets.device import Device
from rota.targets.registry import STANDS_FOR

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
    """The runs of a file that were measured on a device.

    A kernel trace doesn't say what was computed: `problem` does, and `kernel_name` is part of the kernel's name.
    """
    reader = _Reader(path, device)
    has = set(reader.header)
    if has >= set(_TRACE):
        return reader.trace(problem, kernel_name)
    if has >= set(_AITER):
        return reader.aiter(kernel_name)
    missing = [name for name in _NEEDED if name not in has]
    if missing:
        raise reader.malformed(
            1,
            f"its first line lacks {', '.join(missing)}",
            f"rota's own format has the columns {', '.join(COLUMNS)}; times are in us",
        )
    return reader.own()


class _Reader:
    """The rows of a file, each with as many fields as the first line."""

    def __init__(self, path: Path, device: Device) -> None:
        self.path, self.device = path, device
        try:
            text = path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise self.malformed(0, f"it can't be read: {error}") from error
        if text and not text.endswith("\n"):
            last = text.count("\n") + 1
            raise self.malformed(last, "it ends inside a line, so its last number may be cut", "export it again")
        rows = list(csv.reader(io.StringIO(text)))
        self.header = [name.strip() for name in rows[0]] if rows else []
        self.rows = [(number, row) for number, row in enumerate(rows[1:], 2) if row]
        for number, row in self.rows:
            if len(row) != len(self.header):
                raise self.malformed(number, f"it has {len(row)} fields, the first line {len(self.header)}")
        if not self.rows:
            raise self.malformed(1, "it holds no runs")

    def malformed(self, line: int, why: str, *fixes: str) -> MeasureError:
        where = f"{self.path.name}:{line}" if line else self.path.name
        return MeasureError(
            Finding(code="M201", message=f"{where}: {why}", evidence=(("file", self.path.name),), fixes=fixes)
        )

    def each(self) -> Iterator[tuple[int, Mapping[str, str]]]:
        for number, row in self.rows:
            yield number, dict(zip(self.header, (part.strip() for part in row), strict=True))

    def own(self) -> RunFile:
        runs = []
        for number, row in self.each():
            self._check_device(number, row["device"])
            tile = tuple(self._integer(number, "tile", part) for part in row["tile"].lower().split("x"))
            if len(tile) != 3:
                raise self.malformed(number, f"its tile is {row['tile']!r}; expected as 256x256x64")
            problem, us = self._problem(number, row, "split_k"), self._us(number, row)
            runs.append(MeasuredGemm(problem, us, tile, row["type"], number, row.get("kernel", "")))
        return RunFile(path=self.path.name, form="rota's CSV", runs=tuple(runs))

    def aiter(self, kernel_name: str | None) -> RunFile:
        runs, split, other = [], 0, 0
        for number, row in self.each():
            units = self._integer(number, "cu_num", row["cu_num"])
            if (row["gfx"], units) != (self.device.arch, self.device.timing.compute_units.value):
                raise self._other_device(number, f"{row['gfx']} with {units} units")
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
            raise self.malformed(
                1,
                "a kernel trace doesn't say which problem its kernels computed",
                "--problem MxNxK says it, --kernel-name is a part of the kernel's name",
            )
        runs, other = [], 0
        for number, row in self.each():
            if kernel_name not in row["Kernel_Name"]:
                other += 1
                continue
            start, end = (self._integer(number, name, row[name]) for name in _TRACE[1:])
            if end <= start:
                raise self.malformed(number, f"the kernel ends at {end}, before it starts at {start}")
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
            raise self.malformed(number, f"{name} is {text!r}; expected a whole number") from None

    def _us(self, number: int, row: Mapping[str, str]) -> float:
        try:
            us = float(row["us"])
        except ValueError:
            us = 0.0
        if not 0 < us < float("inf"):
            raise self.malformed(number, f"us is {row['us']!r}; expected a number of microseconds above 0")
        return us

    def _check_device(self, number: int, name: str) -> None:
        if name.lower() not in (self.device.name.lower(), *_architectures(self.device)):
            raise self._other_device(number, name)

    def _other_device(self, number: int, name: str) -> MeasureError:
        return MeasureError(
            Finding(
                code="M203",
                message=f"{self.path.name}:{number}: it was measured on {name}, not on {self.device.name}",
                evidence=(("file", name), ("device", f"{self.device.name} ({self.device.arch})")),
                fixes=("name the device that it was measured on: --device", "leave rows of other devices out"),
            )
        )


def _architectures(device: Device) -> Sequence[str]:
    return [arch for arch, name in STANDS_FOR.items() if name == device.name.lower()]
