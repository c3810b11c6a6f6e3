"""The mutation campaign: takes mutants of programs of both front ends, prints what became of each kind of mutation.

Run `python -m benchmarks.mutants [--sample N]` from the repository's root; without a sample it takes about an hour.
The exit status is 1 if a mutant that goes wrong was called clean, if one was called wrong with nothing to show for it,
or if a full campaign has fewer than 6,000 mutants.  Progress, and every mutant on which proof and executor disagree,
goes to stderr.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from time import perf_counter

from tests.mutation.campaign import Judgement, Outcome, Subject, judge, sampled, subjects
from tests.mutation.mutants import Kind, Mutant

FEWEST = 6_000
WRONG = (Outcome.MISSED, Outcome.FALSE_ALARM)


def main(arguments: Sequence[str]) -> int:
    """Print the table; 0 if proof and executor agree on every mutant, and there are enough of them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants", description=__doc__)
    parser.add_argument("--sample", type=int, metavar="N", help="judge N mutants spread over kinds and programs")
    options = parser.parse_args(arguments)
    started = perf_counter()
    chosen = list(subjects())
    work = [(subject, list(subject.mutants())) for subject in chosen]
    if options.sample is not None:
        work = sampled(work, options.sample)
    tally: Counter[tuple[Kind, Outcome]] = Counter()
    for judgement in _judged(work):
        tally[judgement.mutant.kind, judgement.outcome] += 1
    print(table(tally))
    print(f"\n{tally.total()} mutants of {sum(bool(mutants) for _, mutants in work)} programs", end="")
    print(f" in {perf_counter() - started:.0f} s")
    for subject in chosen:
        if subject.same_as:
            print(f"not counted again: {subject.name}, which has the entries of {subject.same_as}")
    disagree = any(outcome in WRONG for _, outcome in tally)
    return int(disagree or (options.sample is None and tally.total() < FEWEST))


def _judged(work: Iterable[tuple[Subject, Sequence[Mutant]]]) -> Iterator[Judgement]:
    for subject, mutants in work:
        started = perf_counter()
        for mutant in mutants:
            judgement = judge(mutant, subject.name)
            if judgement.outcome in WRONG:
                print(judgement, file=sys.stderr, flush=True)
            yield judgement
        if mutants:
            seconds = perf_counter() - started
            print(f"{subject.name}: {len(mutants)} mutants in {seconds:.1f} s", file=sys.stderr, flush=True)


def table(tally: Counter[tuple[Kind, Outcome]]) -> str:
    """A line per kind and one for all, as Markdown."""
    rows: list[tuple[str, list[int]]] = [(kind.value, [tally[kind, outcome] for outcome in Outcome]) for kind in Kind]
    rows.append(("all", [sum(tally[kind, outcome] for kind in Kind) for outcome in Outcome]))
    heads = ["mutants", *(outcome.value for outcome in Outcome)]
    width = max(len(name) for name, _ in rows)
    lines = [
        f"| {'mutation':{width}} | " + " | ".join(heads) + " |",
        f"|{'-' * (width + 2)}|" + "|".join("-" * (len(head) + 1) + ":" for head in heads) + "|",
    ]
    for name, counts in rows:
        cells = (f"{n:>{len(head)}}" for n, head in zip((sum(counts), *counts), heads, strict=True))
        lines.append(f"| {name:{width}} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
