"""Proof and execution of the same kernels: `python -m benchmarks.proof_agreement [PATTERN] [--orders 6]`.

Every kernel of the compiled corpus is proved for the block of its launch, and launched.  What is proved must show
nothing, under any order, that the proof judges; what an execution shows must not be proved.  The exit status is 1 if
one kernel disagrees.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rota.errors import Finding
from rota.prove.kernel_proof import prove
from rota.prove.verdict import Budget, Status
from tests.campaigns.machine_code.value_oracle import of_corpus
from tests.campaigns.shared_folder import shared_folder
from tests.isa.corpus.cases import FOLDER, Case, cases, judged

JUDGED = frozenset({"I103", "I104", "I105", "I106", "I109"})
_BUFFERS = "belongs to no buffer"  # what I105 says of global memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """What both say of a kernel: the proof's status, and the codes that it judges among those of the executions."""

    name: str
    status: Status
    executed: frozenset[str]

    @property
    def agree(self) -> bool:
        """Is nothing proved that was seen to be wrong?"""
        return not (self.status is Status.PROVED and self.executed)

    @property
    def outcome(self) -> str:
        """In words."""
        if self.status is Status.PROVED:
            return "DISAGREE" if self.executed else "both right"
        return "both wrong" if self.executed else f"{self.status.value}, not seen in these launches"


def compare(case: Case, *, orders: int, seconds: float) -> Agreement:
    """Proves and launches one kernel."""
    program, launch = of_corpus(case)
    verdict = prove(
        program.facts,
        tuple(step.instruction for step in program.steps),
        block=launch.block,
        dynamic_lds=launch.dynamic_lds or None,
        budget=Budget(seconds=seconds),
    )
    found = frozenset(finding.code for finding in judged(case, orders).findings if _is_judged(finding))
    return Agreement(name=case.name, status=verdict.status, executed=found)


def _is_judged(finding: Finding) -> bool:
    """Does the proof judge it?  Of accesses outside of their memory, those of LDS."""
    return finding.code in JUDGED and _BUFFERS not in finding.message


def launchable(folder: Path, pattern: str) -> Iterator[Case]:
    """Those that fit their devices."""
    return (case for case in cases(folder, pattern) if not case.refused)


def main() -> int:
    """All of them, with a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", nargs="?", default="")
    parser.add_argument("--orders", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--folder", type=Path, default=shared_folder(FOLDER))
    given = parser.parse_args()
    total: Counter[str] = Counter()
    agreed = True
    for case in launchable(given.folder, given.pattern):
        each = compare(case, orders=given.orders, seconds=given.seconds)
        agreed &= each.agree
        total[each.outcome] += 1
        print(f"{each.name:48} {each.outcome:44} {' '.join(sorted(each.executed))}", flush=True)
    print(
        f"{sum(total.values())} kernels: " + ", ".join(f"{count} {outcome}" for outcome, count in sorted(total.items()))
    )
    return 0 if agreed else 1
