"""Kernels that others compiled, proved: `python -m benchmarks.check_kernels [--seconds 30] [--folder ...] [PATTERN]`.

Prints for each kernel the verdict, CPU seconds, the most memory so far, how many LDS sites have known addresses, and
what was found; in the end by family how many proofs came to their end, their verdicts and the codes that were found.
With `--witness` alarms are executed.
"""

from __future__ import annotations

import argparse
import resource
import sys
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

from benchmarks.shared_folder import shared_folder
from rota.errors import RotaError
from rota.prove.paths import Budget
from rota.prove.proved_object import prove_object
from rota.prove.verdict import Verdict

_ENDED_EARLY = frozenset({"I401", "I402"})


def _family(file: Path) -> str:
    """What a shipped object is of: by its name, or by the folder below its device's; the others by their folder."""
    parts = file.stem.split("__")
    if len(parts) > 1:
        return parts[1]
    *above, folder = file.parent.parts
    below = [inner for outer, inner in pairwise((*above, folder)) if outer.startswith("gfx")]
    return below[0] if below else folder


def _row(file: Path, verdict: Verdict) -> str:
    took = verdict.statistics
    codes = Counter(finding.code for finding in verdict.findings)
    found = " ".join(f"{code}x{count}" for code, count in sorted(codes.items())) or "clean"
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    sites = f"{took.concrete_sites}/{took.sites}"
    return f"{file.stem:84.84} {verdict.status.value:12} {took.seconds:6.1f} s {memory:5} MB {sites:>11} {found}"


def main() -> None:
    """Proves those whose names match a pattern."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pattern", nargs="?", default="")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--folder", type=Path, default=shared_folder("kernels"))
    parser.add_argument("--witness", action="store_true", help="drop what no launch can come to, execute the rest")
    parser.add_argument("--findings", action="store_true", help="print each finding in full")
    options = parser.parse_args()
    files = sorted(each for each in options.folder.rglob("*") if each.suffix in {".co", ".hsaco"})
    complete: dict[str, list[bool]] = defaultdict(list)
    states: dict[str, Counter[str]] = defaultdict(Counter)
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for file in files:
        if options.pattern not in str(file):
            continue
        try:
            verdicts = prove_object(file, budget=Budget(seconds=options.seconds), witness=options.witness)
        except RotaError as error:
            print(f"{file.stem:84.84} not read: {error.findings[0].message}", flush=True)
            complete[_family(file)].append(False)
            continue
        for verdict in verdicts:
            print(_row(file, verdict), flush=True)
            if options.findings:
                print(*verdict.findings, sep="\n")
            early = any(finding.code in _ENDED_EARLY for finding in verdict.findings)
            complete[_family(file)].append(not early)
            states[_family(file)][verdict.status.value] += 1
            found[_family(file)].update({finding.code for finding in verdict.findings})
    print()
    for family, ended in sorted(complete.items()):
        verdicts_of = ", ".join(f"{count} {status}" for status, count in states[family].most_common())
        codes = " ".join(f"{code} in {count}" for code, count in sorted(found[family].items()))
        print(f"{family:40} {sum(ended):4} of {len(ended):4} complete; {verdicts_of}; {codes}")
    done = sum(map(sum, complete.values()))
    print(f"{done} of {sum(map(len, complete.values()))} complete; {dict(sum(states.values(), Counter()))}")
    sys.exit(0)


if __name__ == "__main__":
    main()
