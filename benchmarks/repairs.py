"""Repairs against brute force: takes drawn programs that race, prints how many were mended at the least cost there is.

    python -m benchmarks.repairs [--programs 2000] [--first 0] [--longest 6]

Programs are drawn, repaired and searched exhaustively until as many as asked for have been compared; those that race by
no reckoning, and those whose repair takes more than three barriers, which is too many to enumerate, don't count.  The
exit status is 1 if a repair costs more or less than what the search found, or leaves a race.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from itertools import count
from time import perf_counter

from tests.sync.minimality import judged


def main(arguments: Sequence[str]) -> int:
    """Print the tally; 1 if any repair isn't the least."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.repairs")
    parser.add_argument("--programs", type=int, default=2000, help="compare so many")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first program")
    parser.add_argument("--longest", type=int, default=6, metavar="OPS", help="ops of a program by stages, at most")
    options = parser.parse_args(arguments)
    started = perf_counter()
    compared = drawn = too_large = wrong = 0
    for seed in count(options.first):
        if compared >= options.programs:
            break
        verdict = judged(seed, options.longest)
        drawn += 1
        compared += verdict.racy and verdict.tried
        too_large += verdict.racy and not verdict.tried
        if verdict.complaint:
            wrong += 1
            print(f"seed {seed}: {verdict.complaint}", flush=True)
    print(
        f"{drawn:,} programs drawn, {compared + too_large:,} of them racy; "
        f"{compared:,} repairs compared with brute force, {too_large:,} too large for it; "
        f"{wrong:,} wrong; {perf_counter() - started:,.0f} s"
    )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
