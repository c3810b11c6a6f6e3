"""Measured microseconds for a library: takes a CSV of runs, gives them as `KernelRun`s of the library's own kernels.

The column `kernel` names a kernel as the dispatch table does.  A row about another kernel ends in M204: a time that is
put to the wrong kernel would decide wrongly from then on.
"""

from __future__ import annotations

import csv
from collections.abc import Collection
from pathlib import Path

from rota.errors import Finding, MeasureError
from rota.predict.measured_runs import read_runs
from rota.targets.registry import device_named
from rota.tune.winners import KernelRun


def read_measured(path: Path, known: Collection[str]) -> list[KernelRun]:
    """The runs of a file, which may be of several devices."""
    found: list[KernelRun] = []
    for device in _devices(path):
        for run in read_runs(path, device_named(device)).runs:
            if run.kernel not in known:
                raise MeasureError(
                    Finding(
                        code="M204",
                        message=f"{path.name}:{run.line}: {run.kernel or 'no kernel'!r:.80} is not of this library",
                        evidence=(("kernels", len(known)),),
                        fixes=("name kernels as the dispatch table does, in a column kernel",),
                    )
                )
            sides = run.problem.m, run.problem.n, run.problem.k, run.problem.split_k
            found.append(KernelRun(run.kernel, device_named(device).name, *sides, run.us, path.name))
    return found


def _devices(path: Path) -> list[str]:
    """What the file's rows were measured on; what can't be read is left to the reader, whose findings say it."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return list(dict.fromkeys(row["device"] for row in csv.DictReader(file) if row.get("device"))) or [""]
    except (OSError, UnicodeDecodeError) as error:
        raise MeasureError(Finding(code="M201", message=f"{path.name}: it can't be read: {error}")) from error
