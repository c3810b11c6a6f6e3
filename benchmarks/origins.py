"""What made each entry, held against the schedule without it.

    python -m benchmarks.origins [--drawn 200] [--seed 0]

For every entry of the shipped schedules by stages and of drawn ones, what its origin names (ops of the body, knobs, a
hook, a repair) is deleted from the schedule, which is compiled again; the entry must be gone or another.  The exit
status is 1 if one is left as it was, or names nothing.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random

from rota import DeclarativeSchedule, KernelGeometry, Pipeline4Wave, PipelineSchedule, SingleBufferSchedule
from tests.campaigns.schedules.races import table
from tests.pipeline.origins import LEFT, NAMELESS, REFUSED, REMOVED, draw, judge

VERDICTS = (REMOVED, REFUSED, LEFT, NAMELESS)


def schedules(drawn: int, first: int = 0) -> Iterator[tuple[str, PipelineSchedule]]:
    """The shipped ones, then as many as asked for."""
    yield "four_wave", Pipeline4Wave(KernelGeometry())
    yield "ping_pong", DeclarativeSchedule()
    yield "single_buffer", SingleBufferSchedule(2)
    for seed in range(first, first + drawn):
        yield "drawn", draw(Random(seed))


def main(arguments: Sequence[str]) -> int:
    """Judge, print; 1 if an origin is wrong or missing."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.origins", description=__doc__)
    parser.add_argument("--drawn", type=int, default=200, help="how many schedules to draw")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    options = parser.parse_args(arguments)
    seen: dict[str, Counter[str]] = {}
    wrong: list[str] = []
    for name, schedule in schedules(options.drawn, options.seed):
        for each in judge(schedule):
            seen.setdefault(name, Counter())[each.verdict] += 1
            if each.verdict in (LEFT, NAMELESS):
                wrong.append(f"{name}: {each.entry}: {each.entry.origin}: {each.verdict}")
    rows: list[tuple[object, ...]] = [("schedule", "entries", *VERDICTS)]
    rows += [(name, counts.total(), *(counts[each] for each in VERDICTS)) for name, counts in seen.items()]
    print("\n".join([table(iter(rows)), *wrong]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
