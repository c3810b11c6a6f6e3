"""All kernels that others compiled, executed: `python -m benchmarks.corpus [--orders 6] [--folder ...] [PATTERN]`.

Prints for each whether it ran, whether its results are right, what was found, how many instructions it took and how
long, and whether that is what is known of it; an instruction that isn't known is named.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from tests.campaigns.shared_folder import shared_folder
from tests.isa.corpus.cases import FOLDER, Verdict, cases, judged


def _row(verdict: Verdict) -> str:
    ran = "executed" if verdict.off is not None else "not run"
    right = "" if verdict.off is None else "right" if verdict.right else f"WRONG ({verdict.off:.3g} bounds)"
    if verdict.off is not None and verdict.right and not verdict.case.problem().expected:
        right = "-"
    codes = Counter(finding.code for finding in verdict.findings)
    found = " ".join(f"{code}x{count}" for code, count in codes.items()) or "clean"
    speed = f"{verdict.instructions:>9,} instructions {verdict.seconds:6.1f} s"
    mark = "as due" if verdict.as_due else "NOT AS DUE"
    return f"{verdict.case.name:44} {ran:8} {right:7} {found:24} {speed}  {mark}"


def main() -> None:
    """Runs those whose names match a pattern."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pattern", nargs="?", default="")
    parser.add_argument("--orders", type=int, default=6)
    parser.add_argument("--folder", type=Path, default=shared_folder(FOLDER))
    parser.add_argument("--findings", action="store_true", help="print each finding in full")
    options = parser.parse_args()
    unknown: Counter[str] = Counter()
    verdicts = []
    for case in cases(options.folder, options.pattern):
        verdict = judged(case, options.orders)
        verdicts.append(verdict)
        print(_row(verdict), flush=True)
        if verdict.off is None:
            print("    " + "; ".join(sorted({finding.message for finding in verdict.findings}))[:200])
            unknown.update(
                {finding.concerns[0].label.split()[0] for finding in verdict.findings if finding.code == "I102"}
            )
        if options.findings:
            print(*verdict.findings, *verdict.notes, sep="\n")
    ran = [verdict for verdict in verdicts if verdict.off is not None]
    print(f"\n{len(verdicts)} kernels, {len(ran)} executed, {sum(verdict.right for verdict in ran)} of them right,")
    due, instructions = sum(verdict.as_due for verdict in verdicts), sum(verdict.instructions for verdict in ran)
    print(f"{due} as is due, {instructions:,} instructions")
    for opcode, count in unknown.most_common():
        print(f"  {count:3} kernels have {opcode}, in a form that isn't known")
    sys.exit(0 if all(verdict.as_due for verdict in verdicts) else 1)


if __name__ == "__main__":
    main()
