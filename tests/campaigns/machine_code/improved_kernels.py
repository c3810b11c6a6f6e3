"""`rota improve` on kernels of others: what is handed back, by how much it is predicted to be faster, and what isn't.

Each kernel that is handed back and whose launch is known is executed with drawn problems, before and after: the bits
must be the same, and so must the findings. Matrix products go through their loop one to four times. Kernels that aren't
improved are counted by the reason.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from rota.errors import RotaError
from rota.improve.improved_kernel import ImprovedKernel, improve_kernel
from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.toolchain import read_object
from rota.isa.decoded import KernelProgram, load_program
from rota.isa.launch.run import run_kernel
from rota.targets.registry import device_named
from tests.campaigns.shared_folder import shared_folder
from tests.isa.corpus.hip_cases import hip_problem
from tests.isa.corpus.problem import Problem
from tests.isa.corpus.triton_cases import triton_problem

FOLDERS = ("kernels/compiled", "kernels/compiled/triton-3.8.0", "kernels/aiter")
_LEAST_SHARE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One kernel; `differ` counts problems whose results aren't the same, `executed` is None if no launch is known."""

    name: str
    seconds: float
    made: ImprovedKernel | None = None
    reason: str = ""
    executed: int | None = None
    differ: int = 0


def list_files(folder: str, only: str = "") -> Iterator[Path]:
    found = shared_folder(folder)
    return (each for each in sorted((*found.glob("*.hsaco"), *found.glob("*.co"))) if only in each.name)


def improve_file(file: Path, problems: int) -> Iterator[Row]:
    code = read_object(file)
    for facts in code.kernels:
        start = time.process_time()
        try:
            made = improve_kernel(code, facts.name, device_named(code.arch))
        except RotaError as error:
            reason = str(dict(error.findings[0].evidence).get("reason", error.findings[0].code))
            yield Row(name=file.name, seconds=time.process_time() - start, reason=reason)
            continue
        seconds = time.process_time() - start
        executed = None if draw_problem(file, 0) is None else problems
        differ = sum(not is_same(file, code, made, seed) for seed in range(executed or 0))
        yield Row(name=file.name, seconds=seconds, made=made, executed=executed, differ=differ)


def draw_problem(file: Path, seed: int) -> Problem | None:
    """A launch of a kernel whose source is known; None for others, and for those that no device can launch."""
    stem, _, arch = file.name.removesuffix(".hsaco").rpartition(".")
    random = np.random.default_rng(zlib.crc32(f"{seed} {stem}".encode()))
    told = file.with_suffix(".json")
    if stem.startswith("h_"):
        return hip_problem(stem, random)
    if file.suffix != ".hsaco" or not told.exists():
        return None
    says = json.loads(told.read_text())
    try:
        return triton_problem(
            stem, arch, random, warps=says["num_warps"], shared=says["shared"], halves=int(random.integers(1, 9))
        )
    except KeyError:
        return None


@lru_cache(maxsize=2)
def _load(code: CodeObject, name: str) -> KernelProgram:
    return load_program(code.kernel(name), code.instructions(name), image=code.image())


def is_same(file: Path, code: CodeObject, made: ImprovedKernel, seed: int) -> bool:
    found = []
    for each in (code, made.code):
        problem = draw_problem(file, seed)
        assert problem is not None
        args = [np.ascontiguousarray(arg) if isinstance(arg, np.ndarray) else arg for arg in problem.args]
        x, y, z = (*problem.grid, 1, 1)[:3]
        program, block = _load(each, made.name), (problem.block, 1, 1)
        ended = run_kernel(program, args=args, grid=(x, y, z), block=block, dynamic_lds=problem.dynamic_lds)
        found.append(([each.tobytes() for each in ended.buffers], sorted(each.code for each in ended.findings)))
    return found[0] == found[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="a part of the names of files")
    parser.add_argument("--folder", choices=FOLDERS, action="append", help="by default all")
    parser.add_argument("--problems", type=int, default=3, help="for each kernel that is handed back")
    given = parser.parse_args()
    rows: list[Row] = []
    print("kernel                                   clocks  before  fewer  moved  weaker  executed  s")
    for folder in given.folder or FOLDERS:
        for file in list_files(folder, given.only):
            for row in improve_file(file, given.problems):
                rows.append(row)
                _print(row)
    return _sum_up(rows)


def _print(row: Row) -> None:
    if row.made is None:
        return
    made, executed = row.made, "-" if row.executed is None else f"{row.executed - row.differ} of {row.executed}"
    print(
        f"{row.name[:40]:40} {made.clocks:6.0f}  {made.before:6.0f}  {made.gain:5.1%}  {made.moved:5}"
        f"  {len(made.weaker):6}  {executed:>8}  {row.seconds:.0f}",
        flush=True,
    )


def _sum_up(rows: list[Row]) -> int:
    made = [each.made for each in rows if each.made is not None]
    gains = [each.gain for each in made]
    differ, ran = sum(each.differ for each in rows), sum(each.executed or 0 for each in rows)
    many = sum(each >= _LEAST_SHARE for each in gains)
    print(
        f"{len(made)} of {len(rows)} kernels handed back; {sum(bool(each.weaker) for each in made)} with weaker waits"
    )
    print(f"predicted: {many} need at least 5 % fewer clocks, {sum(each < 0 for each in gains)} more")
    print(f"{ran} executions, {differ} differ; longest {max(each.seconds for each in rows):.0f} s")
    for reason, count in Counter(each.reason for each in rows if each.made is None).most_common():
        print(f"{count:5}  {reason}")
    return int(differ > 0 or any(each < 0 for each in gains))


if __name__ == "__main__":
    sys.exit(main())
