"""Whole GEMMs on drawn problems: takes a count and a seed, runs their machine code, prints what isn't right.

Run `python -m benchmarks.whole_gemm [--count 400] [--seed 1] [--only LOOP]` from the repository's root.  Each problem
has sizes to 700, awkward ones as often as others, strides, gaps, batches, splits and an epilogue of its own;
integers must come out exactly, others within the rounding of that many sums.  Every tenth runs under five
interleavings.  The exit status is 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random

from rota.emit.whole.whole_options import Output, WholeGemm, parse_epilogue
from tests.campaigns.whole.whole_kernels import FINE, LOOPS, built
from tests.campaigns.whole.whole_problems import Problem, draw_problem
from tests.campaigns.whole.whole_run import run_problem

EPILOGUES: tuple[tuple[str, ...], ...] = (
    (),
    ("alpha", "beta"),
    ("row_scale", "column_scale", "column_bias", "relu"),
    ("alpha", "column_bias", "gelu"),
    ("row_bias", "silu"),
    ("alpha", "gated_silu"),
    ("column_bias", "gelu_tanh", "beta"),
    ("row_scale", "gated_gelu_tanh", "column_bias"),
)
VARIANTS: tuple[tuple[str, WholeGemm], ...] = tuple(
    (
        loop + FINE if turn == 1 or loop.startswith("ragged") else loop,  # a quadrant is whole DMAs
        WholeGemm(
            output=(Output.BF16, Output.F16, Output.F32)[(number + turn) % 3],
            epilogue=parse_epilogue(EPILOGUES[(2 * number + turn * 3) % len(EPILOGUES)]),
            xcds=(8, 8, 1, 8)[(number + turn) % 4],
            group=(4, 1, 4, 3)[(number + 2 * turn) % 4],
            persistent=(number + 3 * turn) % 7 == 6 and not loop.endswith("_kn") and not loop.startswith("block_"),
        ),
    )
    for number, loop in enumerate(LOOPS)
    for turn in range(3)
)
"""Every loop three times, once as it ships and twice in quadrants: each output and each epilogue with several."""


def drawn(count: int, seed: int) -> Iterator[tuple[int, str, WholeGemm, Problem]]:
    """So many problems, each with its kernel."""
    random = Random(seed)
    for number in range(count):
        loop, asked = VARIANTS[number % len(VARIANTS)]
        yield number, loop, asked, draw_problem(random, number=number)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="loops whose name contains this text")
    options = parser.parse_args(arguments)
    tally: Counter[str] = Counter()
    start = time.monotonic()
    for number, loop, asked, problem in drawn(options.count, options.seed):
        if options.only not in loop:
            continue
        wrong = run_problem(built(loop, asked), problem)
        words = " ".join(asked.words)
        tally.update(["problems", *(["wrong"] if wrong else []), *(["interleaved"] if problem.orders > 1 else [])])
        tally.update(
            ["exact" if problem.whole else "bounded", f"splits {problem.splits}", f"output {asked.output.value}"]
        )
        print(f"{number} {loop} {words}: {problem}: {'; '.join(wrong) or 'right'}", flush=True)
    print(f"{dict(sorted(tally.items()))} in {time.monotonic() - start:.0f} s", file=sys.stderr)
    return 1 if tally["wrong"] else 0
