"""The kernels of a tuned library: takes its folder, compiles and audits every distinct one, executes some drawn ones.

    python -m benchmarks.tune_emitted FOLDER [--run 20] [--seconds 3000]

Every schedule is proved again from what the store holds, emitted as a whole kernel, compiled, and its machine code
compared with the schedule; drawn kernels compute a small problem with edges on the CPU, compared with NumPy's product.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from time import perf_counter

from rota.audit.audit import audit_gemm
from rota.emit.gemm.gemm_tile import gemm_tile
from rota.errors import Finding
from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.toolchain import find_toolchain
from rota.isa.decoded import load_program
from rota.isa.launch.loaded_kernel import LoadedKernel
from rota.tune.dispatch_table import EmittedKernel, emit_kernels
from rota.tune.point import whole_of
from rota.tune.tune_library import library_in
from tests.campaigns.whole.whole_kernels import Built
from tests.campaigns.whole.whole_problems import Problem
from tests.campaigns.whole.whole_run import run_problem

SEED = 19


def audited(emitted: EmittedKernel) -> tuple[CodeObject, tuple[Finding, ...]]:
    """The machine code, and how it differs from the schedule."""
    point = emitted.configuration.row.point
    code = find_toolchain().compile(emitted.source, point.target.toolchain)
    found = audit_gemm(emitted.compiled, point.shape().geometry, code, kernel=emitted.symbol)
    return code, found.findings


def runs_right(emitted: EmittedKernel, code: CodeObject, sides: tuple[int, int, int]) -> list[str]:
    """What is wrong with the product of small integers, in words."""
    point = emitted.configuration.row.point
    kernel, reduction = (
        LoadedKernel(program=load_program(code.kernel(name), tuple(code.instructions(name))))
        for name in (emitted.symbol, f"{emitted.symbol}_reduce")
    )
    built = Built(
        asked=whole_of(*emitted.configuration.swizzle),
        tile=gemm_tile(emitted.compiled, point.shape().geometry),
        code=code,
        name=emitted.symbol,
        kernel=kernel,
        reduce=reduction,
    )
    m, n, k = sides
    return run_problem(built, Problem(m=m, n=n, k=k))


def main() -> None:
    """Print a line for each kernel, and the counts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--run", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=3000.0)
    asked = parser.parse_args()
    started, drawn = perf_counter(), random.Random(SEED)
    kernels = [each for table in library_in(asked.folder).tables for each in emit_kernels(table)]
    chosen = {each.symbol for each in drawn.sample(kernels, min(asked.run, len(kernels)))}
    proved = exact = ran = right = 0
    for each in kernels:
        if perf_counter() - started > asked.seconds:
            print("time is up")
            break
        proved += each.compiled.certificate is not None
        code, findings = audited(each)
        exact += not findings
        said = "exact" if not findings else ", ".join(sorted({finding.code for finding in findings}))
        if each.symbol in chosen:
            m, n, k = each.configuration.row.point.tile
            wrong = runs_right(each, code, (m // 2 + 3, n // 2 + 5, 6 * k + 8))
            ran, right = ran + 1, right + (not wrong)
            said += ", right" if not wrong else f", WRONG: {wrong[0]}"
        print(f"{each.symbol}: {said}", flush=True)
    print(
        f"{len(kernels)} distinct kernels: {proved} proved again, {exact} audited exact, {right} of {ran} executed "
        f"right, {perf_counter() - started:.0f} s"
    )
