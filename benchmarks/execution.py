"""The zoo's machine code, executed: takes the shipped kernels, prints for how many interleavings each one is right.

Run `python -m benchmarks.execution [--only TEXT] [--seeds N]` from the repository's root.  Each kernel is emitted,
compiled and run by the interpreter for trip counts 0, 1, 2 and 5: latest and earliest completion, waves backwards,
every wave ahead of and behind the others, drawn turns.  C must equal NumPy's; once for each trip count, in 2 x 3
workgroups with numbers of full precision, within the rounding of fp32.  The exit status is 1 if it doesn't in any run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from time import perf_counter

from rota.audit.gemm_launch import load_emitted
from rota.emit.gemm.hip_gemm import emit_gemm
from rota.isa.binary.toolchain import find_toolchain
from tests.emit.kernels import ZOO

TRIPS = (0, 1, 2, 5)
LEAST = 20  # interleavings of each trip count


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="kernels whose name contains this text")
    parser.add_argument("--seeds", type=int, default=12, help="drawn interleavings of each trip count")
    options = parser.parse_args(arguments)
    toolchain = find_toolchain()
    print(f"| kernel | target | runs | right for trips {', '.join(map(str, TRIPS))} | seconds a run |")
    print("|" + " --- |" * 5)
    wrong = 0
    for name in (name for name in ZOO if options.only in name):
        compiled, geometry = ZOO[name]()
        code = toolchain.compile(emit_gemm(compiled, geometry), compiled.machine.arch)
        gemm = load_emitted(compiled, geometry, code)
        seeds = max(options.seeds, LEAST - 1 - 2 * gemm.waves)
        start = perf_counter()
        results = [gemm.run_trips(trips, seeds) for trips in TRIPS]
        total = sum(result.runs for result in results)
        seconds = (perf_counter() - start) / total
        wrong += sum(result.right for result in results) != total
        shown = ", ".join(str(result.right) for result in results)
        print(f"| {name} | {compiled.machine.arch} | {results[0].runs} | {shown} | {seconds:.2f} |", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
