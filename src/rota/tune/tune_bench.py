"""A benchmark of the candidates on shortlists, and its results as measured runs of the library.

A case is a shape; its candidates are the kernel that was chosen and the others of its shortlist.  A and B are drawn
integers from -4 to 4, so that sums are exact in fp32 and all candidates have to leave the same bits, whatever their
order of summation.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from rota.audit.gemm_launch import codes_of_integers
from rota.bench.bench_plan import (
    BenchBuffer,
    BenchCandidate,
    BenchCase,
    BenchKernel,
    BenchObject,
    BenchPlan,
    BenchSubjects,
    DrawnElements,
    KernelLaunch,
    plan_launch,
)
from rota.bench.bench_results import COLUMNS, Bits, MeasuredCase, Mode, read_results
from rota.emit.gemm.gemm_tile import GemmTile, gemm_tile
from rota.emit.whole.whole_kernel import PARTIAL_UNIT
from rota.emit.whole.whole_options import PARAMETERS, REDUCTION_THREADS, WholeGemm
from rota.errors import MeasureError, TuneError
from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.toolchain import find_toolchain
from rota.isa.launch.kernarg import Pointer, Value
from rota.tune.dispatch_table import EmittedKernel, by_kernel, emit_configuration
from rota.tune.point import whole_of
from rota.tune.shortlist import chances, plan_runs
from rota.tune.space import ProblemShape
from rota.tune.tune_library import STATED, DeviceTable, KernelRun, ShapeCandidates, Store, TunedLibrary, candidates_of

MOST_CASES = 32
"""Shapes in one benchmark; the others are left to the next one."""
_SAID = "benchmarks"
_SEEDS = {"A": 1, "B": 2}


class OpenShape(NamedTuple):
    """A shape with several candidates, and those of them that nobody measured."""

    shape: ProblemShape
    candidates: tuple[tuple[str, int], ...]  # kernel and split
    missing: tuple[tuple[str, int], ...]


def list_open(table: DeviceTable) -> tuple[OpenShape, ...]:
    """The shapes with several candidates, not all of them measured."""
    measured = {(run.kernel, run.split_k, run.m, run.n, run.k) for run in table.ranking.runs}
    found = []
    for shape, choice in table.choices.items():
        candidates = tuple((kernel, split) for kernel, split in choice["shortlist"])
        sides = (shape.m, shape.n, shape.k)
        missing = tuple(each for each in candidates if (*each, *sides) not in measured)
        if len(candidates) > 1 and missing:
            found.append(OpenShape(shape, candidates, missing))
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuringPlan:
    """The runs of a device that are expected to save most; losses are means over its shapes.

    A shape is decided if the fastest is among what is measured, or is the choice where nothing is, with 80 %.
    """

    device: str
    budget: int
    runs: int
    shapes: int
    before: float
    after: float
    decided_before: int
    decided_after: int
    chosen: tuple[tuple[DeviceTable, OpenShape], ...]

    def data(self) -> dict[str, Any]:
        """For JSON."""
        named = ("device", "budget", "runs", "shapes", "before", "after", "decided_before", "decided_after")
        chosen = [{"shape": str(each.shape), "candidates": each.candidates} for _, each in self.chosen]
        return {name: getattr(self, name) for name in named} | {"chosen": chosen}


def plan_measuring(library: TunedLibrary, device: str, runs: int) -> MeasuringPlan:
    """Deal a number of runs to the shapes of a device, of all types together."""
    found: dict[str, tuple[DeviceTable, ProblemShape, ShapeCandidates]] = {}
    for table in library.tables:
        if table.device == device and table.choices:
            shapes = list(table.choices)
            for shape, own in zip(shapes, candidates_of(table.ranking, shapes), strict=True):
                found.setdefault(_name_case(table, shape), (table, shape, own))
    plan = plan_runs([own.of for _, _, own in found.values()], runs)
    chosen, before, after = [], 0, 0
    for (table, shape, own), planned in zip(found.values(), plan.shapes, strict=True):
        each = chances(own.of)
        before += bool(each[own.first] >= STATED)
        after += bool(max(each[own.first], each[list(planned.numbers)].sum()) >= STATED)
        if planned.numbers:
            columns = [own.columns[number] for number in planned.numbers]
            named = [table.ranking.configurations[column] for column in columns]
            candidates = tuple((one.kernel, one.split_k) for one in named)
            missing = tuple(one for one, column in zip(candidates, columns, strict=True) if column not in own.measured)
            chosen.append((table, OpenShape(shape, candidates, missing)))
    return MeasuringPlan(
        device=device,
        budget=runs,
        runs=plan.runs,
        shapes=len(found),
        before=plan.before,
        after=plan.after,
        decided_before=before,
        decided_after=after,
        chosen=tuple(chosen),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Built:
    """A candidate's kernel, compiled; `obj` is the number of its object."""

    code: CodeObject
    symbol: str
    tile: GemmTile
    asked: WholeGemm
    obj: int


def plan_library(
    library: TunedLibrary,
    device: str,
    *,
    chosen: Sequence[tuple[DeviceTable, OpenShape]] | None = None,
    most: int = MOST_CASES,
    tell: Callable[[str], None] = lambda _: None,
) -> BenchPlan:
    """The benchmark of a device's open shapes, or of the chosen ones; raises S401 if there are none."""
    tables = [table for table in library.tables if table.device == device]
    named = {_name_case(table, each.shape): (table, each) for table in tables for each in list_open(table)}
    found = [*named.values()][:most] if chosen is None else chosen
    if not found:
        why = f"no shape on {device} has candidates that are left to measure"
        raise TuneError.of("S401", why, fixes=("the dispatch table says what was measured",))
    made: dict[str, _Built] = {}
    cases = []
    for table, each in found:
        for kernel, split in each.candidates:
            if kernel not in made:
                tell(kernel)
                made[kernel] = _build(emit_configuration(by_kernel(table)[kernel, split]), len(made))
        cases.append(_plan_case(table, each, made))
    objects = tuple(BenchObject(name=f"{kernel}.hsaco", code=each.code.hsaco) for kernel, each in made.items())
    return BenchPlan(arch=next(iter(made.values())).code.arch, objects=objects, cases=tuple(cases))


def _build(emitted: EmittedKernel, number: int) -> _Built:
    point, swizzle = emitted.configuration.row.point, emitted.configuration.swizzle
    code = find_toolchain().compile(emitted.source, point.target.toolchain)
    tile = gemm_tile(emitted.compiled, point.shape().geometry)
    if tile.has_scales:
        raise TuneError.of("S401", f"{emitted.kernel} takes scales, and no benchmark is written for it", fixes=())
    return _Built(code=code, symbol=emitted.symbol, tile=tile, asked=whole_of(*swizzle), obj=number)


def _plan_case(table: DeviceTable, found: OpenShape, made: dict[str, _Built]) -> BenchCase:
    """Buffers are A, B and D, and the sums of splits, as many as the widest split needs."""
    shape, first = found.shape, made[found.candidates[0][0]]
    elements = {"A": shape.m * shape.k, "B": shape.n * shape.k}
    codes = codes_of_integers(first.tile.element.value)
    buffers = [
        BenchBuffer(
            size=count * first.tile.element.bytes // first.tile.element.packed,
            drawn=DrawnElements(width=first.tile.element.bytes, codes=codes, seed=_SEEDS[name]),
        )
        for name, count in elements.items()
    ]
    buffers.append(BenchBuffer(size=shape.m * shape.n * first.asked.output.bytes))
    splits = max(split for _, split in found.candidates)
    if splits > 1:
        across = -(-shape.n // PARTIAL_UNIT) * PARTIAL_UNIT
        buffers.append(BenchBuffer(size=4 * splits * shape.m * across, scratch=True))
    candidates = tuple(
        BenchCandidate(name=f"{kernel}/{split}", launches=tuple(_list_launches(made[kernel], shape, split)))
        for kernel, split in found.candidates
    )
    return BenchCase(name=_name_case(table, found.shape), buffers=tuple(buffers), candidates=candidates)


def _name_case(table: DeviceTable, shape: ProblemShape) -> str:
    """The same for shapes that differ in their result alone, which the kernels don't."""
    return f"{table.ranking.element} {shape.m}x{shape.n}x{shape.k}"


def _list_launches(built: _Built, shape: ProblemShape, splits: int) -> Iterator[KernelLaunch]:
    """As the emitted launcher makes them: the kernel, and what adds the splits."""
    geometry, tile = built.tile.geometry, built.tile
    tiles = -(-shape.m // geometry.BM) * -(-shape.n // geometry.BN)
    values = _list_values(built, shape, splits, tiles)
    block = (tile.waves * tile.lanes, 1, 1)
    yield plan_launch(built.code.kernel(built.symbol), built.obj, values, grid=(tiles, splits, 1), block=block)
    if splits > 1:
        width = built.asked.output.width
        groups = -(-shape.m * -(-shape.n // width) // REDUCTION_THREADS)
        facts, block = built.code.kernel(f"{built.symbol}_reduce"), (REDUCTION_THREADS, 1, 1)
        yield plan_launch(facts, built.obj, values, grid=(groups, 1, 1), block=block)


def _list_values(built: _Built, shape: ProblemShape, splits: int, tiles: int) -> Sequence[Value]:
    """The parameters of a whole kernel, for matrices without gaps."""
    sides = {"M": shape.m, "N": shape.n, "K": shape.k}
    rows_of_b, row_of_b = (sides[each] for each in built.tile.b_layout.sizes)
    known: dict[str, Value] = {"A": Pointer(buffer=0), "B": Pointer(buffer=1), "D": Pointer(buffer=2), **sides}
    known |= {"partial": Pointer(buffer=3)} if splits > 1 else {}
    known |= {"splits": splits, "workgroups": tiles, "alpha": 1.0, "beta": 0.0}
    for letter, rows, row in (
        ("a", shape.m, shape.k), ("b", rows_of_b, row_of_b), ("c", shape.m, shape.n), ("d", shape.m, shape.n)
    ):  # fmt: skip
        known |= {f"{letter}_stride": row, f"{letter}_batch": rows * row}
    return [known.get(each.name, None if "*" in each.type else 0) for each in PARAMETERS]


def keep_subjects(folder: Path, plan: BenchPlan, device: str) -> None:
    """Write into the library which benchmark was written, so that its results are known when they come back."""
    with Store(folder, write=True) as store:
        said: dict[str, Any] = store.recall(_SAID) or {}
        subjects = plan.subjects
        kernels = [list(each) for each in subjects.kernels]
        store.say(**{_SAID: said | {subjects.digest: {"device": device, "arch": subjects.arch, "kernels": kernels}}})


def is_bench(path: Path) -> bool:
    """True if a file begins as the results of a benchmark do."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return tuple(next(csv.reader(file), ())) == COLUMNS
    except (OSError, UnicodeDecodeError):
        return False


def read_bench(path: Path, folder: Path) -> list[KernelRun]:
    """The runs of a benchmark that was written for this library: the median of cold launches.

    Raises M206 for another benchmark, and M207 if candidates left different results, or one of them varying ones.
    """
    said: dict[str, Any] = {}
    if (folder / Store.FILE).exists():
        with Store(folder) as store:
            said = store.recall(_SAID) or {}
    with path.open(encoding="utf-8", newline="") as file:
        digest = next((row["plan"] for row in csv.DictReader(file)), "")
    known = said.get(digest, {"device": "", "arch": "", "kernels": []})
    if digest not in said:
        raise MeasureError.of(
            "M206", f"{path.name}: no such benchmark was written for {folder.name}",
            evidence=(("benchmark", digest), ("written for it", ", ".join(said) or "none")),
            fixes=("name the folder of the library with -o", "write the benchmark again and run that one"),
        )  # fmt: skip
    subjects = BenchSubjects(arch=known["arch"], kernels=tuple(BenchKernel(*each) for each in known["kernels"]))
    results = read_results(path, subjects)
    if results.findings:
        raise MeasureError(*results.findings)
    return [run for case in results.cases for run in _list_runs(case, known["device"], path.name)]


def _list_runs(case: MeasuredCase, device: str, source: str) -> Iterator[KernelRun]:
    varying = [name for name, bits in case.bits.items() if bits is Bits.VARY]
    if varying:
        message = f"{varying[0]} leaves other results of {case.name} from launch to launch, though its sums are exact"
        raise MeasureError.of("M207", message, fixes=("don't use it: `rota check` may say why",))
    m, n, k = (int(side) for side in case.name.split()[1].split("x"))
    for (candidate, mode), times in case.times.items():
        kernel, _, split = candidate.rpartition("/")
        if mode is Mode.COLD:
            yield KernelRun(kernel, device, m, n, k, int(split), median(times), source)
