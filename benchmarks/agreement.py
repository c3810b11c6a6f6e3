"""The native core against NumPy, opcode by opcode: `python -m benchmarks.agreement [--count 12] [--seed 0]`.

Every instruction that the checks of the interpreter draw (`tests/isa`: operands with edges among them, partial EXEC,
memory, matrices) runs on both engines, and registers, LDS and memory are compared bit for bit; any NaN equals any NaN,
and what hardware only approximates may be one unit off.  Prints a table, and how many differ; the exit status is 1 if
any does.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random

from tests.campaigns.schedules.races import table
from tests.isa import matrix_checks, memory_oracles
from tests.isa.native.both import Tally, watching
from tests.isa.plain.families import ARCHITECTURES, FAMILIES


def drawn(tally: Tally, seed: int, count: int) -> None:
    """So many cases of each opcode on each architecture."""
    with watching(tally):
        for family in FAMILIES:
            for arch in ARCHITECTURES:
                for _ in family.judge(Random(f"{seed} {family.name} {arch}"), arch, family.opcodes, count):
                    pass
            print(f"{family.name}: done", file=sys.stderr, flush=True)
        for check in memory_oracles.CHECKS.values():
            for number in range(count):
                check(seed + number)
        for matrix in matrix_checks.CHECKS.values():
            matrix(seed, places=0, most=max(1, count // 3))


def rows(tally: Tally) -> Iterator[tuple[object, ...]]:
    """One line an opcode."""
    different = Counter(opcode for opcode, _ in tally.different)
    yield "opcode", "by the core", "by NumPy, on the core's registers", "refused, NumPy runs the kernel", "different"
    for opcode in sorted({*tally.ran, *tally.by_numpy, *tally.refused}):
        yield opcode, tally.ran[opcode], tally.by_numpy[opcode], tally.refused[opcode], different[opcode]


def main(arguments: Sequence[str]) -> int:
    """Draws, runs both, prints; 1 if any differ."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.agreement", description=__doc__)
    parser.add_argument("--count", type=int, default=12, help="cases of each opcode on each architecture")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other cases")
    options = parser.parse_args(arguments)
    tally = Tally()
    drawn(tally, options.seed, options.count)
    print(f"{table(rows(tally))}\n")
    cases = sum(tally.ran.values())
    print(f"Opcodes that the core executes: {len(tally.ran)}, {cases} cases; different: {len(tally.different)}")
    others = set(tally.by_numpy) - set(tally.ran)
    print(f"Opcodes that NumPy executes on the core's registers: {len(others)}")
    refused = set(tally.refused) - set(tally.ran) - set(tally.by_numpy)
    print(f"Opcodes for which NumPy runs the whole kernel: {len(refused)}")
    print("\n".join(text for _, text in tally.different[:50]))
    return 1 if tally.different else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
