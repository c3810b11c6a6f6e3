"""The candidates on shortlists, as a benchmark, and what comes back of it."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rota.bench.bench_plan import BenchPlan, KernelLaunch
from rota.errors import MeasureError, TuneError
from rota.isa.binary.toolchain import read_object
from rota.isa.launch.loaded_kernel import load_kernel
from rota.tune.space import ProblemShape
from rota.tune.tune_bench import is_bench, keep_subjects, list_open, plan_library, plan_measuring, read_bench
from rota.tune.tune_library import MEASURED, TunedLibrary, tune_library
from tests.bench.host import run_folder, write_folder
from tests.tune.spaces import space
from tests.wording.golden import mentions, worded

pytestmark = pytest.mark.thorough  # searches, and compiles whole kernels

SHAPES = (ProblemShape(3, 128, 1024), ProblemShape(70, 72, 1024))
SPACE = {"device": "mi300x", "tile": "64x64x64", "split_k": [1, 4], "swizzle": ["8x4", "1x4"]}


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> tuple[TunedLibrary, BenchPlan]:
    library = tune_library(SHAPES, space(**SPACE), tmp_path_factory.mktemp("tuned") / "library")
    plan = replace(plan_library(library, "MI300X"), rounds=8, flush_bytes=1 << 12)
    keep_subjects(library.folder, plan, "MI300X")
    return library, plan


def test_the_cases_are_the_open_shapes(tuned: tuple[TunedLibrary, BenchPlan]) -> None:
    library, plan = tuned
    (table,) = library.tables
    found = list_open(table)
    assert [each.shape for each in found] == [*SHAPES]
    assert [case.name for case in plan.cases] == ["bf16 3x128x1024", "bf16 70x72x1024"]
    for case, each in zip(plan.cases, found, strict=True):
        assert each.missing == each.candidates
        assert [candidate.name for candidate in case.candidates] == [
            f"{name}/{split}" for name, split in each.candidates
        ]
        assert len(case.candidates) == len(table.choices[each.shape]["shortlist"])
        assert {len(one.launches) for one in case.candidates if one.name.endswith("/4")} <= {2}
    assert plan.arch == "gfx942"


def test_a_plan_measures_where_that_saves_most(tuned: tuple[TunedLibrary, BenchPlan]) -> None:
    library, _ = tuned
    nothing, some, every = (plan_measuring(library, "MI300X", runs) for runs in (1, 2, 100))
    assert (nothing.runs, nothing.chosen, nothing.after) == (0, (), nothing.before)  # one alone decides nothing
    assert some.runs == 2
    assert [len(each.candidates) for _, each in some.chosen] == [2]
    assert every.after < some.after < some.before == every.before
    assert (every.shapes, every.decided_before, every.decided_after) == (2, 0, 2)
    assert nothing.budget == 1
    plan = plan_library(library, "MI300X", chosen=some.chosen)
    (case,) = plan.cases
    ((_, each),) = some.chosen
    assert [one.name for one in case.candidates] == [f"{kernel}/{split}" for kernel, split in each.candidates]


def execute(plan: BenchPlan, launch: KernelLaunch, buffers: list[np.ndarray[tuple[int], np.dtype[np.uint8]]]) -> None:
    """On the CPU, with the arguments that the segment holds."""
    code = read_object(plan.objects[launch.obj].code)
    slots = {each.offset: each.buffer for each in launch.pointers}
    args: list[object] = []
    for each in code.kernel(launch.kernel).arguments:
        content = launch.segment[each.offset : each.offset + each.size]
        if each.hidden:
            continue
        if each.kind == "global_buffer":
            args.append(buffers[slots[each.offset]] if each.offset in slots else None)
        else:
            args.append(content)
    kernel = load_kernel(plan.objects[launch.obj].code, launch.kernel)
    kernel.launch(*args, grid=launch.grid, block=launch.block, dynamic_lds=launch.dynamic_lds, orders=1)


def to_bf16(values: np.ndarray[tuple[int, int], np.dtype[np.float32]]) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return (values.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8).ravel()


@pytest.mark.parametrize("split", [1, 4])
def test_what_is_launched_computes_the_product(tmp_path: Path, split: int) -> None:
    """Grid, arguments and the room for the sums of splits are what the kernel needs."""
    shapes = [shape._replace(k=512 * max(split, 2)) for shape in SHAPES]  # K-tiles enough for every split
    library = tune_library(shapes, space(**SPACE | {"split_k": split}), tmp_path / "library")
    plan = plan_library(library, "MI300X", most=2)
    case = plan.cases[1]
    m, n, k = shapes[1][:3]
    random = np.random.default_rng(5)
    a, b = (random.integers(-4, 5, (rows, k)).astype(np.float32) for rows in (m, n))
    for candidate in case.candidates[:1]:
        assert candidate.name.endswith(f"/{split}")
        buffers = [to_bf16(a), to_bf16(b), *(np.zeros(each.size, np.uint8) for each in case.buffers[2:])]
        assert [each.nbytes for each in buffers] == [each.size for each in case.buffers]
        for launch in candidate.launches:
            execute(plan, launch, buffers)
        got = (buffers[2].view(np.uint16).astype(np.uint32) << 16).view(np.float32).reshape(m, n)
        exact = a @ b.T
        assert np.abs(got - exact).max() <= np.abs(exact).max() / 256
        assert np.array_equal(got[np.abs(exact) <= 256], exact[np.abs(exact) <= 256])


def test_codes_are_small_integers(tuned: tuple[TunedLibrary, BenchPlan]) -> None:
    drawn = tuned[1].cases[0].buffers[0].drawn
    assert drawn is not None
    values = sorted(struct.unpack("<f", b"\0\0" + each)[0] for each in drawn.codes)
    assert values == [float(each) for each in range(-4, 5)]


def results(folder: Path, plan: BenchPlan, status: int = 0, **settings: object) -> Path:
    done = run_folder(write_folder(folder, plan), **{"US": "1,0.5"} | settings)
    assert done.returncode == status, done.stderr
    return folder / "results.csv"


def test_results_are_measured_runs_and_leave_nothing_open(
    tmp_path: Path, tuned: tuple[TunedLibrary, BenchPlan]
) -> None:
    library, plan = tuned
    path = results(tmp_path, plan)
    assert is_bench(path)
    assert not is_bench(tmp_path / "plan.txt")
    runs = read_bench(path, library.folder)
    candidates = [(case.name, each.name) for case in plan.cases for each in case.candidates]
    measured = [(f"bf16 {run.m}x{run.n}x{run.k}", f"{run.kernel}/{run.split_k}") for run in runs]
    assert sorted(measured) == sorted(candidates)
    assert {run.device for run in runs} == {"MI300X"}
    again = tune_library(SHAPES, space(**SPACE), tmp_path / "again", measured=runs)
    (table,) = again.tables
    fast = {shape: min((run for run in runs if run.m == shape.m), key=lambda run: run.us) for shape in SHAPES}
    for shape, choice in table.choices.items():
        assert (choice["basis"], choice["kernel"], choice["us"]) == (MEASURED, fast[shape].kernel, fast[shape].us)
    assert list_open(table) == ()


def refused(path: Path, folder: Path) -> str:
    with pytest.raises(MeasureError) as caught:
        read_bench(path, folder)
    (finding, *_) = caught.value.findings
    return finding.code if finding.code == "M206" else worded(finding).code  # digests differ from compiler to compiler


def test_results_of_another_library_are_refused(tmp_path: Path, tuned: tuple[TunedLibrary, BenchPlan]) -> None:
    library, plan = tuned
    path = results(tmp_path, plan)
    assert refused(path, tmp_path / "nowhere") == "M206"
    other = replace(plan, cases=plan.cases[:1])
    assert refused(results(tmp_path, other), library.folder) == "M206"
    path.write_text(results(tmp_path, plan).read_text()[:-30])
    assert refused(path, library.folder) == "M201"


def test_results_that_differ_or_vary_are_refused(tmp_path: Path, tuned: tuple[TunedLibrary, BenchPlan]) -> None:
    library, plan = tuned
    assert refused(results(tmp_path, plan, 4, WRONG=1), library.folder) == "M207"
    assert refused(results(tmp_path, plan, VARY=1), library.folder) == "M207"


def test_a_library_without_open_shapes_has_no_benchmark(tmp_path: Path) -> None:
    library = tune_library(SHAPES[:1], space(**SPACE | {"split_k": 1, "swizzle": "8x4"}), tmp_path)
    with pytest.raises(TuneError) as caught:
        plan_library(library, "MI300X")
    assert mentions(worded(caught.value.findings[0]), "S401", "MI300X")
