"""Claims of least intervals against all copies and starts: takes drawn loops, prints what was claimed of how many.

    python -m benchmarks.optimality [--count N] [--first SEED]

Every loop is compiled for a machine with little memory and short latencies; where its interval is called the least, all
copies that fit and all starts are tried for a smaller one (`tests.values.all_copies`).  The exit status is 1 if any
claim is beaten.  Five hundred loops take some ten minutes.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from rota import RotaError, compile_loop
from rota.values.op_times import time_loop
from tests.values.all_copies import better, drawn


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    asked = parser.parse_args()
    seen: Counter[str] = Counter()
    beaten = 0
    for seed in range(asked.first, asked.first + asked.count):
        said, better_one = judged(seed)
        seen[said] += 1
        if better_one:
            beaten += 1
            print(f"seed {seed}: {said}, but {better_one}", file=sys.stderr, flush=True)
    for said, count in seen.most_common():
        print(f"{count:6} {said}")
    print(f"{beaten:6} beaten")
    sys.exit(1 if beaten else 0)


def judged(seed: int) -> tuple[str, str]:
    """What was said about a drawn loop, and what beats it."""
    made = drawn(seed)
    try:
        found = compile_loop(made.spec, made.machine).modulo
    except RotaError as error:
        return f"refused: {error.findings[0].code}", ""
    if found is None:
        raise AssertionError("a loop by values has an interval")
    certificate = found.certificate
    if not certificate.optimal:
        return certificate.proof.value, ""
    smaller = better(made, time_loop(made.spec, made.machine.timing), found.ii, certificate.limits)
    kinds = sorted({"some copies" if limit.startswith("at most") else limit for limit in certificate.limits})
    return certificate.proof.value + (f" with {', '.join(kinds)}" if kinds else ""), "" if smaller is None else str(
        smaller
    )


if __name__ == "__main__":
    main()
