"""Matrix instructions against their plain definition: takes a seed, prints each opcode and how many cases agree.

Run `python -m benchmarks.matrix [--seed N] [--places N]` from the repository's root.  A case is one instruction with
drawn registers, modifiers and formats; all legal modifiers are gone through.  Without --places every element of every
result is compared.  The exit status is 1 if any differs.
"""

from __future__ import annotations

import argparse
import sys

from tests.isa.matrix_checks import CHECKS


def main() -> int:
    """All forms of both architectures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--places", type=int, default=None)
    given = parser.parse_args()
    wrong, cases = 0, 0
    for (arch, opcode), check in CHECKS.items():
        try:
            count = check(given.seed, given.places)
        except AssertionError as error:
            wrong += 1
            print(f"{arch} {opcode}: WRONG {error}")
            continue
        cases += count
        print(f"{arch} {opcode}: {count} cases")
    print(f"{len(CHECKS)} instructions, {len({opcode for _, opcode in CHECKS})} opcodes, {cases} cases, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
