"""The proof against an oracle for lowered programs with roles: takes how many to draw, prints how often they agree.

Run `python -m benchmarks.role_oracle` from the repository's root: 10,000 programs of one to three roles, most of them
edited, valid or not.  `LoweredProgram` refuses some; the others are judged by `verify` for every trip count and by
`tests/oracle/role_machine.py` for trip counts 0 to 4, and up to 16 where only the proof refuses, and one in eight.  Of
the first ones a search through all executions of up to two trips confirms what the oracle says, until 1,000 are
confirmed.  Every program on which they differ is listed, unless a rule of form explains it.  The exit status is 1 if
the proof accepts what is wrong or refuses what is right without such a rule, if anything but a finding is raised, or if
oracle and search differ.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from time import perf_counter, process_time

from rota.program.kinds import Phase
from tests.campaigns.schedules.races import table
from tests.oracle.role_judge import (
    ALARM,
    BARE,
    BOTH_RIGHT,
    BOTH_WRONG,
    CLASSES,
    DECIDED,
    DIFFERENT,
    MISSED,
    TOO_MANY,
    UNMADE,
    Drawn,
    Tally,
    Verdict,
    compare,
    confirm,
    draw,
    draw_many,
    execution,
)

_SHOWN, _TOLD = 20, 1_000
_CONFIRMED = (BOTH_RIGHT, BOTH_WRONG, DIFFERENT)


def rows(tally: Tally) -> Iterator[tuple[object, ...]]:
    """One row per class, with the codes of the proof and what the oracle says."""
    yield "class", "programs", "codes of the proof", "the oracle says"
    for name in CLASSES:
        codes, kinds = Counter[str](), Counter[str]()
        for (other, found, kind), number in tally.codes.items():
            if other == name:
                codes.update(dict.fromkeys(found, number))
                kinds[kind or "right"] += number
        yield name, tally.counts[name], _listed(codes), _listed(kinds)
    yield "all", tally.counts.total(), "", ""


def reasons(tally: Tally) -> Iterator[tuple[object, ...]]:
    """Right programs that are refused, by the rule of form that they break."""
    yield "refused but right", "codes", "programs"
    found = Counter((each.name, each.codes, each.why) for each in tally.disputed if each.name in (ALARM, UNMADE))
    for (name, codes, why), number in found.most_common():
        yield why or ("no rule" if name == ALARM else name), ", ".join(codes), number


def searched(confirmed: Counter[str], examined: int) -> Iterator[tuple[object, ...]]:
    """How the search through all executions ended."""
    yield "search and oracle", "programs"
    for name in (*_CONFIRMED, DECIDED, TOO_MANY):
        yield name, confirmed[name]
    yield "all", examined


def disputes(tally: Tally) -> list[Verdict]:
    """Verdicts that differ and that no rule of form explains."""
    return [each for each in tally.disputed if each.name in (MISSED, BARE) or (each.name == ALARM and not each.why)]


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in counts.most_common()) or "-"


def told(seed: int, number: int) -> Iterator[str]:
    """One drawn program: its lists, what is said of it, and an execution that goes wrong, if one of few trips does."""
    drawn = next(each for each in draw(seed) if each.number == number)
    for phase, entries in zip(Phase, (drawn.draft.prologue, drawn.draft.kernel, drawn.draft.epilogue), strict=True):
        yield f"{phase.value.lower()}:"
        for at, entry in enumerate(entries):
            yield f"  [{at}] {entry.op.name} of {entry.effect.instance.iteration}, roles {drawn.draft.executing(entry)}"
    yield str(compare(drawn))
    yield from execution(drawn)


def main(arguments: Sequence[str]) -> int:
    """Draw, judge, print; 1 if proof, oracle and search disagree."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.role_oracle", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="how many to draw")
    parser.add_argument("--exhaustive", type=int, default=1_000, help="how many to confirm by search")
    parser.add_argument("--every", action="store_true", help="search without leaving out equivalent orders")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--tell", type=int, nargs=2, metavar=("SEED", "EDIT"), help="show one drawn program instead")
    options = parser.parse_args(arguments)
    if options.tell:
        print(*told(*options.tell), sep="\n")
        return 0
    tally, confirmed, different = Tally(), Counter[str](), list[Drawn]()
    started, used = perf_counter(), process_time()
    for number, drawn in enumerate(draw_many(options.count, options.seed)):
        if number and not number % _TOLD:
            print(f"{number} judged, {len(disputes(tally))} disputed", file=sys.stderr, flush=True)
        tally.add(compare(drawn))
        if sum(confirmed[name] for name in _CONFIRMED) < options.exhaustive:
            result = confirm(drawn, every=options.every)
            confirmed[result] += 1
            different += [drawn] if result == DIFFERENT else []
    print(f"{table(rows(tally))}\n\n{table(reasons(tally))}\n\n{table(searched(confirmed, confirmed.total()))}\n")
    wrong = disputes(tally)
    print(
        "\n".join([*map(str, wrong[:_SHOWN]), *(f"search differs: {each.seed}, {each.number}" for each in different)])
    )
    print(f"{perf_counter() - started:.0f} s, of which {process_time() - used:.0f} s of this process", file=sys.stderr)
    return 1 if wrong or different else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
