"""The kernels of a tuned library: a row for each shape, dispatch tables in formats that other tools read, and source.

A row has what was chosen, with its risk, its band, what bounds it and its rates.

Tables are rota's own CSV; AITER's tuned CSV, in which a predicted time never appears under `us`; vLLM's JSON for
Triton's block-scaled fp8 GEMM, which takes the tile and the waves and nothing of the schedule.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from rota.emit.text import identifier
from rota.emit.whole.whole_host import emit_launcher
from rota.emit.whole.whole_kernel import emit_whole, whole_name
from rota.errors import TuneError
from rota.predict.predict_problem import (
    GemmProblem,
    TiledGemm,
    parameters_of,
    predict_problem,
    times_of,
    type_facts_of,
    work_of,
)
from rota.targets.device import problem_facts_of
from rota.targets.registry import device_named
from rota.tune.point import schedule_again, whole_of
from rota.tune.shortlist import SURE
from rota.tune.space import ProblemShape
from rota.tune.tune_library import MEASURED, STATED, Candidate, Configuration, DeviceTable, TunedLibrary, winners_used
from rota.values.compiled_loop import CompiledLoop


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeRow:
    """A choice with its risk.

    `low` and `high` are microseconds, between which four of five measured times lie; `chance` is how likely the choice
    is to be the fastest, `loss` how much longer than the fastest it is expected to take, as part of that one's time.
    `shortlist` has short names, and holds the fastest with the probability `shortlist_chance`.

    `bound` is the longest of the parts of the prediction.  `gb_per_s` counts A, B and the result once. `best_tflops` is
    the best that anybody measured of the type, else what the matrix units could do.
    """

    device: str
    shape: ProblemShape
    type: str
    kernel: str
    split_k: int
    us: float
    low: float
    high: float
    basis: str
    bound: str
    gb_per_s: float
    memory_gb_per_s: float
    tflops: float
    best_tflops: float
    chance: float
    loss: float
    shortlist: tuple[str, ...]
    shortlist_chance: float

    @property
    def efficiency(self) -> float:
        """Of the memory's rate or of the best TFLOP/s, whichever is nearer."""
        return max(self.gb_per_s / self.memory_gb_per_s, self.tflops / self.best_tflops)

    @property
    def streams(self) -> bool:
        """True if the memory's rate is nearer than that of the matrix units."""
        return self.gb_per_s / self.memory_gb_per_s >= self.tflops / self.best_tflops

    @property
    def decided(self) -> bool:
        return len(self.shortlist) == 1

    @property
    def rate(self) -> str:
        if self.streams:
            return f"{self.gb_per_s:,.0f} of {self.memory_gb_per_s:,.0f} GB/s"
        return f"{self.tflops:,.0f} of {self.best_tflops:,.0f} TFLOP/s"

    @property
    def band(self) -> str:
        return "measured" if self.basis == MEASURED else f"{self.low:,.1f} to {self.high:,.1f}"

    def data(self) -> dict[str, Any]:
        sides = {"M": self.shape.m, "N": self.shape.n, "K": self.shape.k, "out": self.shape.result}
        return {**asdict(self), "shape": sides}

    def lines(self) -> tuple[str, str]:
        """What the command prints."""
        first, *others = self.shortlist
        count = len(self.shortlist)
        chosen = f"{self.shape}: {first}, {self.us:,.1f} us ({self.band}), {self.rate}, bound by {self.bound}"
        risk = f"{say_chance(self.chance)} likely the fastest, expected loss {self.loss:.1%}"
        if others:
            among = f"; {say_chance(self.shortlist_chance)} likely that the fastest is among {count}"
            risk += f"{among}: this one, {', '.join(others)}"
        return chosen, risk


def say_chance(chance: float) -> str:
    return f"over {SURE:.0%}" if chance > SURE else f"{chance:.0%}"


def list_rows(table: DeviceTable) -> Iterator[ShapeRow]:
    """In the order of the shapes."""
    ranking = table.ranking
    known = {(each.kernel, each.split_k): number for number, each in reversed([*enumerate(ranking.configurations)])}
    names = short_names(ranking.configurations)
    for shape, choice in table.choices.items():
        candidate = ranking.candidates[known[choice["kernel"], choice["split_k"]]]
        listed = tuple(names[kernel, split] for kernel, split in choice["shortlist"])
        yield _row(table, shape, choice, candidate, listed)


def _row(
    table: DeviceTable, shape: ProblemShape, choice: dict[str, Any], candidate: Candidate, listed: tuple[str, ...]
) -> ShapeRow:
    gemm, us = candidate.gemm, choice["us"]
    problem = GemmProblem(m=shape.m, n=shape.n, k=shape.k, result=shape.result, split_k=choice["split_k"])
    predicted = predict_problem(gemm, problem, candidate.correction)
    low, high = (us, us) if choice["basis"] == MEASURED else predicted.us_range
    work = work_of(gemm, problem)
    return ShapeRow(
        device=table.device,
        shape=shape,
        type=table.ranking.element,
        kernel=choice["kernel"],
        split_k=choice["split_k"],
        us=us,
        low=low,
        high=high,
        basis=choice["basis"],
        bound=find_bound(candidate, problem),
        gb_per_s=(work.operand_bytes + work.result_bytes) / us / 1e3,
        memory_gb_per_s=device_named(table.device).memory_rate.value,
        tflops=problem.flops / us / 1e6,
        best_tflops=best_rate(gemm),
        chance=choice["chance"],
        loss=choice["loss"],
        shortlist=listed,
        shortlist_chance=choice["shortlist_chance"],
    )


def find_bound(candidate: Candidate, problem: GemmProblem) -> str:
    """The longest part: each by itself, as if the others took no time."""
    gemm = candidate.gemm
    own = parameters_of(gemm.device, type_facts_of(gemm), candidate.correction)
    times = times_of(work_of(gemm, problem), own)
    parts = {
        "memory": times.memory,
        "the loop": times.loop,
        "operand feed": (times.fed**2 - times.loop**2) ** 0.5,
        "waits for operands": times.arrival,
        "launch": times.start,
        "the result's store": times.store,
        "sums of splits": times.split,
    }
    return max(parts, key=lambda name: parts[name])


def best_rate(gemm: TiledGemm) -> float:
    """The best TFLOP/s that anybody measured of the type, else what matrix units could do."""
    own = type_facts_of(gemm).best
    if own is not None:
        return own.value
    m, n, k = gemm.tile
    timing = gemm.device.timing
    return 2 * m * n * k / gemm.matrix_clocks * timing.compute_units.value * timing.clock.value / 1e6


def short_names(configurations: tuple[Configuration, ...]) -> dict[tuple[str, int], str]:
    """Tile, waves and split, and of a kernel's name what not all of them share."""
    words = {each.kernel: each.kernel.split("_") for each in configurations}
    shared = set.intersection(*map(set, words.values())) if words else set()
    short = {
        kernel: "_".join(word for place, word in enumerate(own) if place in (1, 2) or word not in shared)
        for kernel, own in words.items()
    }
    return {
        (each.kernel, each.split_k): short[each.kernel] + (f" split {each.split_k}" if each.split_k > 1 else "")
        for each in configurations
    }


def summarize(table: DeviceTable, rows: list[ShapeRow]) -> str:
    """One line about a device and a type."""
    asked = len(table.choices) + len(table.untuned)
    kernels = len({row.kernel for row in rows})
    decided = sum(row.decided for row in rows)
    lost = sum(row.loss for row in rows) / max(len(rows), 1)
    return (
        f"{table.device} {table.ranking.element}: {len(rows):,} of {asked:,} shapes have a kernel, {kernels} distinct; "
        f"{decided:,} of them are decided ({STATED:.0%} likely the fastest), the others have a shortlist; "
        f"expected loss {lost:.1%} in the mean"
    )


def basis_of(table: DeviceTable) -> str:
    """What the probabilities rest on."""
    facts, element = problem_facts_of(device_named(table.device)), table.ranking.element
    said = f"chances rest on the errors between kernels of {facts.compared}"
    why = next((each.uncalibrated for each in facts.types if each.element == element), "")
    return f"{said}; {element}: {why}" if why else said


_OWN = (
    "device,M,N,K,type,out,kernel,tile,split_k,us,predicted_us,low_us,high_us,basis,bound,gb_per_s,tflops,"
    "chance,loss,shortlist,shortlist_chance"
)
COLUMNS = tuple(_OWN.split(","))
"""Of rota's own table; `us` is measured or empty. `chance` is how likely the kernel is to be the fastest, `loss` how
much longer than the fastest it is expected to take; the fastest is on the `shortlist` with `shortlist_chance`."""
_AITER = (
    "gfx,cu_num,M,N,K,bias,dtype,outdtype,scaleAB,bpreshuffle,libtype,solidx,splitK,us,kernelName,err_ratio,tflops,bw"
)
_TORCH = {"bf16": "torch.bfloat16", "fp16": "torch.float16", "fp8": "torch.float8_e4m3fn", "fp32": "torch.float32"}
_BLOCK = 128  # columns and depth that share a scale in vLLM's block-scaled GEMM


def table_files(library: TunedLibrary) -> dict[str, str]:
    """All of them; the same library gives the same files, byte for byte."""
    found = {"dispatch.csv": _text(COLUMNS, (row for table in library.tables for row in _own(table)))}
    untuned = [(table.device, *shape, why) for table in library.tables for shape, why in table.untuned]
    if untuned:
        found["untuned.csv"] = _text(("device", "M", "N", "K", "type", "out", "why"), untuned)
    header = (*_AITER.split(","), "predicted_us")
    found["aiter_tuned_gemm.csv"] = _text(header, (row for table in library.tables for row in _aiter(table)))
    for table in library.tables:
        if table.ranking.element == "fp8":
            found |= dict(_vllm(table))
    return found


def _text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()


def _times(choice: dict[str, Any]) -> tuple[str, str]:
    """Under `us` what was measured, and nothing else."""
    text = f"{choice['us']:.3f}"
    return (text, "") if choice["basis"] == MEASURED else ("", text)


def by_kernel(table: DeviceTable) -> dict[tuple[str, int], Configuration]:
    return {(each.kernel, each.split_k): each for each in table.ranking.configurations}


def _own(table: DeviceTable) -> Iterator[Sequence[object]]:
    known = by_kernel(table)
    for row, (shape, choice) in zip(list_rows(table), table.choices.items(), strict=True):
        point = known[row.kernel, row.split_k].row.point
        listed = " ".join(f"{kernel}/{split}" for kernel, split in choice["shortlist"])
        yield (
            *(table.device, *shape[:3], point.element, shape.result, row.kernel, "x".join(map(str, point.tile))),
            *(row.split_k, *_times(choice), f"{row.low:.3f}", f"{row.high:.3f}", row.basis, row.bound),
            *(f"{row.gb_per_s:.1f}", f"{row.tflops:.2f}", f"{row.chance:.3f}", f"{row.loss:.4f}", listed),
            f"{row.shortlist_chance:.3f}",
        )


def _aiter(table: DeviceTable) -> Iterator[Sequence[object]]:
    device = device_named(table.device)
    numbers = {kernel: n for n, kernel in enumerate(sorted({each.kernel for each in by_kernel(table).values()}))}
    for shape, choice in table.choices.items():
        measured, predicted = _times(choice)
        tflops = f"{2 * shape.m * shape.n * shape.k / choice['us'] / 1e6:.2f}" if measured else ""
        yield (
            *(device.arch, device.timing.compute_units.value, *shape[:3], "False", _TORCH[table.ranking.element]),
            *(_TORCH[shape.result], "False", "False", "rota", numbers[choice["kernel"]], choice["split_k"], measured),
            *(choice["kernel"], "", tflops, "", predicted),
        )


def _vllm(table: DeviceTable) -> Iterator[tuple[str, str]]:
    """A file for each N and K, keyed by M; splits of K are not what that kernel does, so unsplit winners alone."""
    known, files = by_kernel(table), dict[tuple[int, int], dict[int, dict[str, int]]]()
    for shape, choice in table.choices.items():
        point = known[choice["kernel"], choice["split_k"]].row.point
        if choice["split_k"] == 1 and point.tile[2] <= _BLOCK:
            files.setdefault((shape.n, shape.k), {})[shape.m] = {
                "BLOCK_SIZE_M": point.tile[0],
                "BLOCK_SIZE_N": point.tile[1],
                "BLOCK_SIZE_K": point.tile[2],
                "GROUP_SIZE_M": choice["swizzle"][1],
                "num_warps": point.waves,
                "matrix_instr_nonkdim": point.mma,
                "kpack": 1,
            }
    for (n, k), by_m in files.items():
        about = f"device_name=AMD_Instinct_{table.device},dtype=fp8_w8a8,block_shape=[{_BLOCK},{_BLOCK}]"
        text = json.dumps({str(m): by_m[m] for m in sorted(by_m)}, indent=4)
        yield f"vllm/N={n},K={k},{about}.json", f"{text}\n"


def coverage(table: DeviceTable) -> tuple[int, int]:
    return len(table.choices), len(table.choices) + len(table.untuned)


def shapes_in(table: DeviceTable) -> list[ProblemShape]:
    """The shapes that have a kernel, in the order of the dispatch header: by N, K and M."""
    return sorted(table.choices, key=lambda shape: (shape.n, shape.k, shape.m, shape.result))


def dispatch_header(table: DeviceTable, *, launchers: dict[str, str] | None = None) -> str:
    """The table for C++; `launchers` are the symbols of emitted kernels by name, whose launchers it includes.

    Nothing is guessed for a problem that isn't in the table: the lookup calls `ROTA_UNTUNED(M, N, K)`.
    """
    return "\n".join([*_lines(table, launchers or {}), ""])


def _lines(table: DeviceTable, launchers: dict[str, str]) -> Iterator[str]:
    kernels = sorted({choice["kernel"] for choice in table.choices.values()})
    space = identifier(f"rota_{table.device.lower()}_{table.ranking.element}")
    yield f"// Which kernel for which GEMM of {table.ranking.element} on {table.device}: {len(table.choices)} problems,"
    yield f"// {len(kernels)} kernels, each proved for every trip count.  Times are predicted where not `measured`."
    yield from ("#pragma once", "#include <algorithm>", "#include <cstdio>", "#include <iterator>")
    yield from (f'#include "{launchers[kernel]}.h"' for kernel in kernels if kernel in launchers)
    yield ""
    yield "#ifndef ROTA_UNTUNED  // what happens when a problem has no kernel in the table"
    yield (
        '#define ROTA_UNTUNED(m, n, k) std::fprintf(stderr, "rota: %d x %d x %d is not tuned\\n", (int)(m), (int)(n), '
        "(int)(k))"
    )
    yield "#endif"
    yield ""
    yield f"namespace {space} {{"
    yield f"enum class kernel : unsigned short {{ {', '.join(map(identifier, kernels))} }};"
    yield f"inline const char* const names[] = {{{', '.join(f'{chr(34)}{kernel}{chr(34)}' for kernel in kernels)}}};"
    yield "struct entry { int N, K, M; int result; kernel chosen; int split_k; float us; bool measured; };"
    yield "// Sorted by N, K, M and the bytes of a result."
    yield "inline const entry table[] = {"
    size = {"bf16": 2, "fp16": 2, "fp32": 4}
    for shape in shapes_in(table):
        choice = table.choices[shape]
        measured = "true" if choice["basis"] == MEASURED else "false"
        yield (
            f"  {{{shape.n}, {shape.k}, {shape.m}, {size[shape.result]}, kernel::{identifier(choice['kernel'])}, "
            f"{choice['split_k']}, {choice['us']:.3f}f, {measured}}},"
        )
    yield _FIND
    yield f"}}  // namespace {space}"


_FIND = """\
};

// The entry of a problem, or nullptr if it has none.
inline const entry* find(int M, int N, int K, int result = 2) {
  const auto less = [](const entry& one, const entry& other) {
    if (one.N != other.N) return one.N < other.N;
    if (one.K != other.K) return one.K < other.K;
    return one.M != other.M ? one.M < other.M : one.result < other.result;
  };
  const entry wanted = {N, K, M, result, kernel{}, 1, 0.0f, false};
  const entry* const at = std::lower_bound(std::begin(table), std::end(table), wanted, less);
  if (at != std::end(table) && !less(wanted, *at)) return at;
  ROTA_UNTUNED(M, N, K);
  return nullptr;
}"""


# A schedule is made again from what the search found, checked and proved again; a kernel whose proof doesn't hold is
# not written.


class EmittedKernel(NamedTuple):
    kernel: str
    symbol: str
    configuration: Configuration
    compiled: CompiledLoop
    source: str
    launcher: str


def emit_kernels(table: DeviceTable) -> Iterator[EmittedKernel]:
    known = {(each.row.key, each.swizzle): each for each in table.ranking.configurations}
    for each in winners_used(table.choices.values()):
        yield emit_configuration(known[each])


def emit_configuration(configuration: Configuration) -> EmittedKernel:
    row = configuration.row
    compiled = schedule_again(row.point, row.answer)
    if compiled.certificate is None:
        raise TuneError.of("S401", f"{row.point.name} has no proof any more, and is not written", fixes=())
    asked, geometry = whole_of(*configuration.swizzle), row.point.shape().geometry
    source, launcher = emit_whole(compiled, geometry, asked), emit_launcher(compiled, geometry, asked)
    symbol = whole_name(compiled, asked)
    return EmittedKernel(configuration.kernel, symbol, configuration, compiled, source, launcher)


def library_files(library: TunedLibrary, tell: Callable[[str], None] = lambda _: None) -> Iterator[tuple[str, str]]:
    """Files by name: for each kernel its source and launcher, for each device and type its dispatch header."""
    for table in library.tables:
        if not table.choices:
            continue
        launchers = {}
        for each in emit_kernels(table):
            tell(each.kernel)
            launchers[each.kernel] = each.symbol
            yield f"{each.symbol}.hip", each.source
            yield f"{each.symbol}.h", each.launcher
        name = f"dispatch_{table.device.lower()}_{table.ranking.element}.h"
        yield name, dispatch_header(table, launchers=launchers)


def list_tables(library: TunedLibrary) -> dict[str, Iterator[dict[str, Any]]]:
    """What became of every loop, and the kernel of every shape, as rows."""
    return {"points": _points(library), "choices": _choices(library)}


def _points(library: TunedLibrary) -> Iterator[dict[str, Any]]:
    for row in library.rows:
        point = row.point
        about: dict[str, Any] = {"key": row.key, "name": point.name, "device": point.device, "type": point.element}
        about |= {"tile": "x".join(map(str, point.tile)), "waves": point.waves, "status": row.status.value}
        clocks = {name: row.facts.get(name) for name in ("loop_clocks", "matrix_clocks")}
        said = {"code": row.code, "message": row.message, **clocks, "seconds": row.seconds, "attempts": row.attempts}
        yield about | said


def _choices(library: TunedLibrary) -> Iterator[dict[str, Any]]:
    for table in library.tables:
        for shape, choice in table.choices.items():
            sides = {"m": shape.m, "n": shape.n, "k": shape.k, "type": table.ranking.element, "out": shape.result}
            chosen = {name: choice[name] for name in ("kernel", "split_k", "us", "basis", "chance", "loss")}
            yield {"device": table.device, **sides, **chosen}
