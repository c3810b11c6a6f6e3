"""Mutants of kernels that others compiled: `python -m benchmarks.race_mutants [--seed 0] [--orders 6] [PATTERN]`.

A wait is weakened or gone, a barrier gone or moved, an LDS offset or a DMA's destination shifted, an s_nop weakened:
one edit of one kernel each.  Every mutant is launched with the arguments of `benchmarks.corpus`, and is

- flagged: by which findings (I123, the outputs are not as expected, where something is shifted and nothing else is
  wrong; a wait, barrier or s_nop has to be found without looking at values), or
- harmless for a reason that `race_argument` checks on the record of a launch, without the engine, or
- MISSED: its outputs are wrong, and nothing was found, or
- unexplained: nothing was found, its outputs are right, and there is no argument why, or
- DOUBTFUL: flagged for a race, where the argument says that there is none.

The unmodified kernels are launched as well, under as many orders.  The exit status is 1 if any is missed, unexplained
or doubtful, or if an unmodified kernel has a finding.
"""

from __future__ import annotations

import argparse
import copy
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rota import load_kernel
from rota.errors import RotaError
from rota.isa.decoded import KernelProgram
from rota.isa.hazards.wait_states import check_spacing
from rota.isa.launch.interleaving import Interleaving, some_interleavings
from rota.isa.launch.loaded_kernel import LoadedKernel
from tests.campaigns.hazards.hazards import why_not_needed
from tests.campaigns.machine_code.race_argument import Change, argument
from tests.campaigns.machine_code.race_edits import KINDS, Mutant, facts_of, some_mutants
from tests.campaigns.machine_code.race_trace import matters, traced
from tests.isa.corpus.cases import FOLDER, Case
from tests.isa.corpus.problem import Problem
from tests.shared import shared

KERNELS = (
    "h_dynlds.gfx942", "h_histogram.gfx950", "h_reduction.gfx942", "h_scan.gfx950", "h_stencil.gfx942",
    "h_transpose.gfx950", "h_warpreduce.gfx942", "t_cumsum.gfx950", "t_softmax.gfx942", "t_layernorm.gfx950",
    "t_sort.gfx942", "ts_128_2.gfx950", "g_mm.gfx950", "g_mxfp4.gfx950", "g_transpose.gfx950",
    "pp_on.gfx942", "m_128_128_64_8_2_bf16.gfx942", "m_128_128_64_4_3_fp16.gfx950", "t_matmul_bf16_s2.gfx950",
    "t_matmul_fp8_s2.gfx942", "t_matmul_fp32.gfx950", "t_flash_s1.gfx950",
)  # fmt: skip
"""Of Triton, Gluon and clang, for both devices."""
FLAGGED, HARMLESS, MISSED, UNEXPLAINED, DOUBTFUL = "flagged", "harmless", "MISSED", "unexplained", "DOUBTFUL"
BAD = (MISSED, UNEXPLAINED, DOUBTFUL)
UNUSED = "what it reads is multiplied by zeros, or not used: outputs are right whatever it brings"
MOST_INSTRUCTIONS = 200_000  # of one wave: many times what any of these executes


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What became of one mutant, and by which findings or for which reason."""

    mutant: Mutant
    verdict: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One kernel: what was found in it as it is, and the fates of its mutants."""

    name: str
    alarms: tuple[str, ...]
    fates: tuple[Fate, ...]
    seconds: float


def judged(name: str, *, seed: int = 0, orders: int = 6, most: int | None = None) -> Judged:
    """The mutants of one kernel of the corpus; `most` of each kind."""
    start = time.perf_counter()
    case = Case(path=shared(f"{FOLDER}/{name}.hsaco"), name=name)
    kernel, problem = load_kernel(case.path), case.problem()
    chosen = some_interleavings(-(-problem.block // 64), orders)
    codes, off = launched(kernel.program, problem, chosen)
    traces = traced(kernel, copy.deepcopy(problem))
    facts = facts_of(kernel.program)
    assert argument(traces, facts, Change())[0], "the record of the unmodified kernel has a conflict"
    executed = frozenset(pc for trace in traces for pc in trace.pcs)
    fates = []
    for mutant in some_mutants(kernel.program, executed, seed, most):
        found, wrong = launched(mutant.program, problem, chosen)
        if mutant.change is not None:
            harmless, why = argument(traces, facts, mutant.change)
            if check_spacing([step.instruction for step in mutant.program.steps], mutant.program.architecture):
                harmless, why = False, "the edit takes a wait state away that two instructions need between them"
        elif mutant.kind == "s_nop":
            why = why_not_needed(kernel.program, mutant.place)
            harmless = why != ""
        else:
            found = found or (("I123",) if wrong > 1 else ())
            reads = kernel.program.steps[mutant.place].instruction.opcode.startswith("ds_read")
            harmless = not found and reads and not matters(kernel, problem, mutant.place)
            why = UNUSED if harmless else "no argument"
        fates.append(Fate(mutant=mutant, **_verdict(found, wrong, harmless=harmless, why=why)))
    return Judged(
        name=name,
        alarms=(*codes, *(("I123",) if off > 1 else ())),
        fates=tuple(fates),
        seconds=time.perf_counter() - start,
    )


def _verdict(found: Sequence[str], off: float, *, harmless: bool, why: str) -> dict[str, str]:
    if found:
        return {"verdict": DOUBTFUL if harmless else FLAGGED, "why": " ".join(found) + (f"; {why}" if harmless else "")}
    if off > 1:
        return {"verdict": MISSED, "why": why}
    return {"verdict": HARMLESS if harmless else UNEXPLAINED, "why": why}


def launched(program: KernelProgram, problem: Problem, orders: Sequence[Interleaving]) -> tuple[tuple[str, ...], float]:
    """The codes of what is found, in the first order with a finding, and how far off the worst output is."""
    worst = 0.0
    for order in orders:
        now = copy.deepcopy(problem)
        try:
            result = LoadedKernel(program=program).launch(
                *now.args,
                grid=now.grid,
                block=now.block,
                dynamic_lds=now.dynamic_lds,
                orders=(order,),
                check=False,
                most_instructions=MOST_INSTRUCTIONS,
            )
        except RotaError as error:
            return tuple(sorted({finding.code for finding in error.findings})), worst
        if result.findings:
            return tuple(sorted({finding.code for finding in result.findings})), now.off()
        worst = max(worst, now.off())
    return (), worst


def rows(results: Sequence[Judged]) -> Iterator[str]:
    """A table by kernel, one by kind, the findings and the arguments."""
    yield f"{'kernel':32}{'mutants':>8}{'flagged':>9}{'harmless':>9}{'bad':>5}{'alarms':>8}{'seconds':>9}"
    for each in results:
        tally = Counter(fate.verdict for fate in each.fates)
        bad = sum(tally[verdict] for verdict in BAD)
        yield (
            f"{each.name:32}{len(each.fates):8}{tally[FLAGGED]:9}{tally[HARMLESS]:9}{bad:5}"
            f"{len(each.alarms):8}{each.seconds:9.1f}"
        )
    fates = [fate for each in results for fate in each.fates]
    yield f"\n{'kind':32}{'mutants':>8}{'flagged':>9}{'harmless':>9}{'bad':>5}"
    for kind in KINDS:
        mine = Counter(fate.verdict for fate in fates if fate.mutant.kind == kind)
        bad = sum(mine[verdict] for verdict in BAD)
        yield f"{kind:32}{mine.total():8}{mine[FLAGGED]:9}{mine[HARMLESS]:9}{bad:5}"
    for verdict, title in ((FLAGGED, "flagged by"), (HARMLESS, "harmless, because")):
        yield f"\n{title}"
        yield from (
            f"{count:6}  {why}" for why, count in Counter(f.why for f in fates if f.verdict == verdict).most_common()
        )


def main() -> int:
    """All kernels, or those whose names have the pattern in them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", nargs="?", default="")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--orders", type=int, default=6)
    given = parser.parse_args()
    results = []
    for name in (name for name in KERNELS if given.pattern in name):
        results.append(judged(name, seed=given.seed, orders=given.orders))
        print(f"{name}: {len(results[-1].fates)} mutants, {results[-1].seconds:.1f} s", file=sys.stderr, flush=True)
        for fate in results[-1].fates:
            if fate.verdict in BAD:
                print(f"{fate.verdict}: {name} #{fate.mutant.place} {fate.mutant.what}: {fate.why}", flush=True)
    print(*rows(results), sep="\n")
    fates = [fate for each in results for fate in each.fates]
    bad = sum(fate.verdict in BAD for fate in fates)
    alarms = sum(bool(each.alarms) for each in results)
    print(f"\n{len(fates)} mutants of {len(results)} kernels, {bad} missed, unexplained or doubtful;", end=" ")
    print(f"{alarms} alarms on unmodified kernels under {given.orders} orders")
    return 1 if bad or alarms else 0
