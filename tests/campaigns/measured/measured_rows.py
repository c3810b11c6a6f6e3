"""Measured GEMMs: takes the table in the shared folder, gives one row per problem, kernel and split, as arrays.

The table holds what AITER's tuners recorded (ROCm/aiter, MIT licence); its README says what each column means.
"""

from __future__ import annotations

import csv
import gzip
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rota.predict.predict_problem import KernelWork, work_of_problem
from tests.campaigns.shared_folder import shared_folder

Floats = NDArray[np.float64]

BYTES = {"bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0, "fp4": 17 / 32, "fp32": 4.0}
"""Of an element; fp4 has an 8-bit scale for every 32."""
FLOP = {
    "gfx950": {"bf16": 4096, "fp8": 8192, "int8": 8192, "fp4": 16384},
    "gfx942": {"bf16": 2048, "fp8": 4096, "int8": 4096},
}
"""Of a compute unit per clock."""
CAP = 1500
FEWEST_OF_KIND, FEWEST_OF_FAMILY = 30, 25
_KEY = ("M", "N", "K", "a", "out", "scale", "bias", "library", "kernel", "split_k", "tile_m", "tile_n", "tile_k")
_NUMBERS = ("M", "N", "K", "bias", "split_k", "tile_m", "tile_n", "tile_k")


class Measured(NamedTuple):
    """A device of the table: its architecture, units, their LDS in bytes, and what AMD documents of clock and memory.

    `f_max` is the boost clock in GHz, `peak` the memory's TB per second.
    """

    name: str
    arch: str
    units: int
    lds_bytes: int
    f_max: float
    peak: float


DEVICES = {
    each.name: each
    for each in (
        Measured("MI355X", "gfx950", 256, 160 * 1024, 2.4, 8.0),
        Measured("MI300X", "gfx942", 304, 64 * 1024, 2.1, 5.3),
        Measured("MI308X", "gfx942", 80, 64 * 1024, 2.1, 5.3),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Columns of the rows that were chosen; `kind` is type, scale and library, `family` a kind's loop form.

    `source` names the files that recorded a row, with a + between them if there are several.
    """

    device: Measured
    m: Floats
    n: Floats
    k: Floats
    tile_m: Floats
    tile_n: Floats
    tile_k: Floats
    split_k: Floats
    us: Floats
    element: NDArray[np.str_]
    problem: NDArray[np.str_]
    kernel: NDArray[np.str_]
    kind: NDArray[np.str_]
    family: NDArray[np.str_]
    source: NDArray[np.str_]
    work: KernelWork

    def __len__(self) -> int:
        return len(self.us)

    def at(self, where: NDArray[Any]) -> Rows:
        """Some of the rows, by mask or by number."""
        parts = {each.name: getattr(self, each.name) for each in fields(self)}
        chosen = {name: value[where] for name, value in parts.items() if isinstance(value, np.ndarray)}
        work = KernelWork(*(np.asarray(each)[where] for each in self.work))
        return Rows(device=self.device, work=work, **chosen)

    @property
    def shapes(self) -> NDArray[np.str_]:
        """N and K, which go together in the layers of one network."""
        return np.array([f"{n:.0f}x{k:.0f}" for n, k in zip(self.n, self.k, strict=True)])

    @property
    def tflops(self) -> Floats:
        """As measured."""
        rate: Floats = 2 * self.m * self.n * self.k / self.us / 1e6
        return rate


def table() -> Path:
    """Where the table is."""
    return shared_folder("measured/measured.csv.gz")


def family_of(element: str, scale: str, library: str, kernel: str) -> str:
    """Kernels of one code generator and loop form."""
    name = f"{element}|{scale}|{library}"
    form = re.search(r"(intra|inter)wave_v(\d)", kernel)
    if library == "ck" and form:
        return f"{name}|{form[1]}{form[2]}" + "b" * ("bpreshuffle" in kernel)
    if library in ("asm", "opus") and element == "bf16":
        return f"{name}|splitk" if re.search("splitk|wkc", kernel) else f"{name}|plain"
    return name


def read_rows(device: str, cap: int | None = CAP) -> Rows:
    """One row per problem, kernel and split, the median of repeats; at most `cap` rows of a kind, drawn with a seed."""
    about = DEVICES[device]
    repeats: defaultdict[tuple[Any, ...], list[float]] = defaultdict(list)
    sources: defaultdict[tuple[Any, ...], set[str]] = defaultdict(set)
    for row in measured_on(about):
        if int(row["tile_m"]) > 0 and row["kernel"]:
            key = tuple(int(row[name]) if name in _NUMBERS else row[name] for name in _KEY)
            repeats[key].append(float(row["us"]))
            sources[key].add(row["source"])
    kinds: defaultdict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for key in sorted(repeats):
        kinds[f"{key[3]}|{key[5]}|{key[7]}"].append(key)
    chosen: list[tuple[str, tuple[Any, ...]]] = []
    for kind, keys in sorted(kinds.items()):
        if len(keys) >= FEWEST_OF_KIND:
            count = len(keys) if cap is None else min(cap, len(keys))
            # The draw of the first fit, which the figures are compared with; its generator never changes.
            order = np.random.RandomState(0).choice(len(keys), count, replace=False)
            chosen += [(kind, keys[number]) for number in order]
    recorded = ["+".join(sorted(sources[key])) for _, key in chosen]
    return _rows(about, chosen, [median(repeats[key]) for _, key in chosen], recorded)


def _rows(
    about: Measured, chosen: Sequence[tuple[str, tuple[Any, ...]]], us: Sequence[float], sources: Sequence[str]
) -> Rows:
    columns = dict(zip(_KEY, zip(*(key for _, key in chosen), strict=True), strict=True))
    number = {name: np.array(columns[name], float) for name in _NUMBERS}
    element = np.array(columns["a"])
    kind = np.array([each for each, _ in chosen])
    named = zip(columns["a"], columns["scale"], columns["library"], columns["kernel"], strict=True)
    family = np.array([family_of(*each) for each in named])
    found, back, counts = np.unique(family, return_inverse=True, return_counts=True)
    del found
    family = np.where(counts[back] >= FEWEST_OF_FAMILY, family, np.char.add(kind, "|rest"))
    wide = np.array([BYTES[each] for each in columns["a"]])
    rate = np.array([FLOP[about.arch][each] for each in columns["a"]], float)
    mma = 2 * number["tile_m"] * number["tile_n"] * number["tile_k"] / rate
    arrays: Any = work_of_problem  # takes arrays as it takes numbers
    work = arrays(
        sides=(number["M"], number["N"], number["K"]),
        tile=(number["tile_m"], number["tile_n"], number["tile_k"]),
        split_k=number["split_k"],
        units=float(about.units),
        lds_bytes=float(about.lds_bytes),
        element_bytes=wide,
        result_bytes=np.array([BYTES.get(each, 2.0) for each in columns["out"]]),
        mma=mma,
        loop=mma,
    )
    problems = zip(*(columns[name] for name in ("M", "N", "K", "a", "out", "scale", "bias")), strict=True)
    return Rows(
        device=about,
        m=number["M"],
        n=number["N"],
        k=number["K"],
        tile_m=number["tile_m"],
        tile_n=number["tile_n"],
        tile_k=number["tile_k"],
        split_k=number["split_k"],
        us=np.array(us),
        element=element,
        problem=np.array([" ".join(map(str, each)) for each in problems]),
        kernel=np.array(columns["kernel"]),
        kind=kind,
        family=family,
        source=np.array(sources),
        work=work,
    )


def best_rates(device: str) -> dict[str, float]:
    """The most TFLOP/s that any row of a type has, whether or not it names its tile."""
    best: defaultdict[str, float] = defaultdict(float)
    for row in measured_on(DEVICES[device]):
        rate = 2 * int(row["M"]) * int(row["N"]) * int(row["K"]) / float(row["us"]) / 1e6
        best[row["a"]] = max(best[row["a"]], rate)
    return dict(best)


@cache
def measured_on(about: Measured) -> tuple[dict[str, str], ...]:
    """The table's rows of a device."""
    with gzip.open(table(), "rt", newline="") as file:
        return tuple(row for row in csv.DictReader(file) if (row["gfx"], row["cus"]) == (about.arch, str(about.units)))
