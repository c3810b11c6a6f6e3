"""rota's own kernels, proved from their machine code alone: `python -m benchmarks.prove_own [--only TEXT]`.

Each loop of the zoo, each whole GEMM of the campaign `benchmarks.whole_gemm` with the kernel that adds its splits, and
each whole attention (of the heuristic's schedule, which is quickly found) is emitted, compiled, and proved without its
schedule or its arguments; the exit status is 1 if any of them is not.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import partial

from rota.emit.gemm.hip_gemm import emit_gemm
from rota.emit.whole.whole_options import WholeGemm
from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.toolchain import find_toolchain
from rota.prove.kernel_proof import prove_object
from rota.prove.verdict import Budget
from tests.campaigns.whole.whole_attention import SHAPES, built_attention
from tests.campaigns.whole.whole_gemm import VARIANTS
from tests.campaigns.whole.whole_kernels import built
from tests.emit.kernels import ZOO, Emitted

_SECONDS = 60.0


def own_kernels() -> Iterator[tuple[str, Callable[[], CodeObject]]]:
    """Names, and what compiles them."""
    for name, emitted in ZOO.items():
        yield name, partial(_loop, emitted)
    for loop, asked in VARIANTS:
        yield f"whole {loop} {' '.join(asked.words)}", partial(_gemm, loop, asked)
    for shape in SHAPES:
        yield f"attention {shape}", partial(_attention, shape)


def _loop(emitted: Callable[[], Emitted]) -> CodeObject:
    compiled, geometry = emitted()
    return find_toolchain().compile(emit_gemm(compiled, geometry), compiled.machine.arch)


def _gemm(loop: str, asked: WholeGemm) -> CodeObject:
    return built(loop, asked).code


def _attention(shape: str) -> CodeObject:
    return built_attention(shape, quick=True).code


def main() -> None:
    """Prints a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="kernels whose name contains this text")
    options = parser.parse_args()
    proved = wrong = 0
    for name, compiled in own_kernels():
        if options.only not in name:
            continue
        for verdict in prove_object(compiled(), budget=Budget(seconds=_SECONDS)):
            took = verdict.statistics
            what = f"{name}, splits" if verdict.kernel.endswith("_reduce") else name
            print(f"{what:76.76} {verdict.status.value:12} {took.seconds:5.1f} s {took.states:6} states", flush=True)
            for finding in verdict.findings:
                print(finding)
            proved, wrong = proved + verdict.proved, wrong + (not verdict.proved)
    print(f"{proved} of {proved + wrong} kernels proved")
    sys.exit(1 if wrong else 0)
