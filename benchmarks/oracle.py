"""The proof against an oracle of its own: takes how many programs to draw, prints how often the two agree.

Run `python -m benchmarks.oracle` from the repository's root: 20,000 drawn programs of both front ends and of neither,
most of them edited, each judged by `verify` for every trip count and by `tests/oracle` for trip counts 0 to 4 (and on
to 24 where only the proof refuses).  Every program on which they differ is listed.  Then 300 drawn bodies whose
fragments rotate are compiled under each scheduling strategy: how many are ordered, repaired and proved.
With `--execute N` the executor runs every N-th program that the oracle finds right.  The exit status is 1 if the proof
accepts what is wrong, or the executor refuses what is right.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from time import perf_counter

from rota import RotaError, SchedulingStrategy, compile_schedule
from rota.execute.clock import Latest, Random
from rota.execute.executor import execute
from tests.campaigns.schedules.races import table
from tests.oracle.draw_stages import draw_rotating
from tests.oracle.judge import FRONT_ENDS, Tally, Verdict, judge_many

_SHARES = {"by stages": 0.38, "by values": 0.38, "by values, solved": 0.04, "by roles": 0.2}
_CLASSES = ("both accept", "both refuse", "proved but wrong", "refused but right")


def rows(tally: Tally) -> Iterator[tuple[object, ...]]:
    """One row per front end, and one for all."""
    yield "front end", "programs", *_CLASSES
    for name in FRONT_ENDS:
        counts = [tally.counts[name, each] for each in _CLASSES]
        yield name, sum(counts), *counts
    totals = [sum(tally.counts[name, each] for name in FRONT_ENDS) for each in _CLASSES]
    yield "all", sum(totals), *totals


def rotating_rows(bodies: int, seed: int) -> Iterator[tuple[object, ...]]:
    """What becomes of drawn rotating bodies under each strategy, by the first finding where one is refused.

    With `global_before_frag` a block issues its loads first, whatever the order says; those rows show what that costs.
    """
    yield "scheduling", "global_before_frag", "bodies", "proved", "refused, by first finding"
    for loads_first in (False, True):
        for strategy in SchedulingStrategy:
            refused = Counter[str]()
            for number in range(seed, seed + bodies):
                drawn = draw_rotating(random.Random(number))
                try:
                    compile_schedule(drawn.but(scheduling=strategy, global_before_frag=loads_first))
                except RotaError as error:
                    refused[error.findings[0].code] += 1
            codes = ", ".join(f"{code} {count}" for code, count in sorted(refused.items())) or "-"
            yield strategy.name, str(loads_first), bodies, bodies - refused.total(), codes


def runs_wrong(verdict: Verdict) -> str | None:
    """What the executor finds wrong, for trip counts 0 to 3."""
    program = verdict.drawn.program
    for trips in range(4):
        done = execute(program, trips, policy=(Latest(), Random(seeds=2)))
        if not done.right:
            return f"{trips} trips: {done.first_wrong}"
    return None


def main(arguments: Sequence[str]) -> int:
    """Draw, judge, print; 1 if the proof accepts what is wrong, or the executor refuses what is right."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.oracle", description=__doc__)
    parser.add_argument("--programs", type=int, default=20_000, help="how many to draw")
    parser.add_argument("--rotating", type=int, default=300, help="how many rotating bodies to compile")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--execute", type=int, default=0, metavar="N", help="run every N-th right program")
    options = parser.parse_args(arguments)
    started = perf_counter()
    tally, kinds, executed = Tally(), Counter[str](), 0
    refused: list[str] = []
    for name, share in _SHARES.items():
        for number, verdict in enumerate(judge_many(name, round(options.programs * share), options.seed)):
            tally.add(verdict)
            kinds[verdict.kind] += 1
            if options.execute and not verdict.kind and number % options.execute == 0:
                wrong = runs_wrong(verdict)
                executed += 1
                refused += [f"{verdict}; executor {wrong}"] if wrong else []
        print(f"{name}: judged, {perf_counter() - started:.0f} s so far", file=sys.stderr, flush=True)
    print(f"{table(rows(tally))}\n")
    print("First mistake by the oracle: " + ", ".join(f"{kind} {n}" for kind, n in kinds.most_common() if kind))
    if options.execute:
        print(f"Right programs executed: {executed}, of which the executor finds {len(refused)} wrong")
    print("\n".join(["", *map(str, tally.disputed), *refused]))
    print(f"\nRotating bodies\n\n{table(rotating_rows(options.rotating, options.seed))}")
    missed = any(verdict.name == "proved but wrong" for verdict in tally.disputed)
    return 1 if missed or refused else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
