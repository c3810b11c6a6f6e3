"""The benchmark's host program, compiled for this machine against a stand-in for HIP, and a small plan that it runs."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from rota.bench.bench_plan import (
    BenchBuffer,
    BenchCandidate,
    BenchCase,
    BenchObject,
    BenchPlan,
    KernelLaunch,
    PointerSlot,
    write_bench,
)
from rota.isa.binary.toolchain import find_toolchain

STAND_IN = Path(__file__).parent / "stand_in"
_WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror")
LAUNCH = KernelLaunch(
    obj=0, kernel="add one", grid=(3, 2, 1), block=(64, 1, 1), dynamic_lds=128,
    segment=bytes(16) + b"\x07\x00\x00\x00",
    pointers=(PointerSlot(offset=0, buffer=0, displacement=4), PointerSlot(offset=8, buffer=1)),
)  # fmt: skip


@cache
def build_program(*flags: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="rota-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "bench.cpp").write_bytes(write_bench(small_plan(), back="")["bench.cpp"])
    command = (*find_toolchain().compiler, "-x", "c++", "-std=c++17", *_WARNINGS, *flags)
    paths = (f"-I{STAND_IN}", str(folder / "bench.cpp"), "-o", str(folder / "bench"))
    done = subprocess.run((*command, *paths), capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    return folder / "bench"


def small_plan(rounds: int = 4, names: Sequence[str] = ("before", "after")) -> BenchPlan:
    """Candidates whose objects are no code: the stand-in doesn't look at them."""
    objects = tuple(BenchObject(name=f"{each}.hsaco", code=f"object {each}".encode()) for each in names)
    candidates = tuple(
        BenchCandidate(name=each, launches=(replace(LAUNCH, obj=number),)) for number, each in enumerate(names)
    )
    buffers = (BenchBuffer(size=100, data=bytes(range(100)), skew=4), BenchBuffer(size=96))
    case = BenchCase(name="add", buffers=buffers, candidates=candidates)
    return BenchPlan(arch="gfx942", objects=objects, cases=(case,), rounds=rounds, flush_bytes=4096)


def write_folder(folder: Path, plan: BenchPlan) -> Path:
    for name, content in write_bench(plan, back="rota improve KERNEL --measure results.csv").items():
        (folder / name).write_bytes(content)
    return folder


def run_folder(folder: Path, *words: str, **settings: object) -> subprocess.CompletedProcess[str]:
    """Run the program in a folder; settings are those of the stand-in, without its prefix."""
    environment = {f"STAND_IN_{name}": str(value) for name, value in settings.items()}
    environment |= {"STAND_IN_LOG": str(folder / "calls.txt")}
    return subprocess.run(
        (str(build_program()), *words), cwd=folder, env=os.environ | environment, capture_output=True, text=True,
        check=False, timeout=60,
    )  # fmt: skip


def read_calls(folder: Path) -> list[str]:
    return (folder / "calls.txt").read_text().splitlines()
