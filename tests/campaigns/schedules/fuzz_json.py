"""Edits of exchange documents: takes how many, prints what became of them, and every defect.

python -m benchmarks.fuzz_json [EDITS [FIRST_SEED]]
"""

from __future__ import annotations

from time import process_time

from tests.emit.fuzzed import BASES, campaign, text_of

EDITS = 50_000


def main(edits: int = EDITS, first: int = 0) -> int:
    """Prints a table; the exit status is 1 if there is any defect."""
    each = -(-edits // len(BASES))
    print(
        f"{'document':28}{'edits':>8}{'refused':>9}{'proved':>8}{'unproved':>10}{'same':>6}{'ms/edit':>9}{'slowest':>9}{'defects':>9}"
    )
    defects = []
    for base in BASES:
        text_of(base)
        started = process_time()
        tally = campaign(base, range(first, first + each))
        mean = (process_time() - started) / each * 1000
        print(
            f"{base:28}{tally.edits:8,}{tally.refused:9,}{tally.proved:8,}{tally.unproved:10,}{tally.unchanged:6,}"
            f"{mean:9.1f}{tally.slowest:7.2f} s{len(tally.defects):9,}",
            flush=True,
        )
        defects += tally.defects
    print("\n".join(defects))
    return int(bool(defects))
