"""rota's own kernels, proved from their machine code alone: `python -m benchmarks.prove_own [--only TEXT]`.

Each kernel of the zoo is emitted, compiled, and proved without its schedule or its arguments; the exit status is 1 if
any of them is not.
"""

from __future__ import annotations

import argparse
import sys

from rota.emit.hip_gemm import emit_gemm
from rota.isa.binary.toolchain import Toolchain, find_toolchain
from rota.prove.paths import Budget
from rota.prove.proved_object import prove_object
from rota.prove.verdict import Verdict
from tests.emit.kernels import ZOO, Emitted


def prove_emitted(emitted: Emitted, toolchain: Toolchain, *, seconds: float = 30.0) -> Verdict:
    """The verdict about what a compiler made of a schedule."""
    compiled, geometry = emitted
    code = toolchain.compile(emit_gemm(compiled, geometry), compiled.machine.arch)
    (verdict,) = prove_object(code, budget=Budget(seconds=seconds))
    return verdict


def main() -> None:
    """Prints a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="kernels whose name contains this text")
    options = parser.parse_args()
    toolchain = find_toolchain()
    wrong = 0
    for name in (name for name in ZOO if options.only in name):
        verdict = prove_emitted(ZOO[name](), toolchain)
        took = verdict.statistics
        print(f"{name:56} {verdict.status.value:12} {took.seconds:5.1f} s {took.states:6} states", flush=True)
        for finding in verdict.findings:
            print(finding)
        wrong += not verdict.proved
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
