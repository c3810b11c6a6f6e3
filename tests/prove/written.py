"""Small kernels in assembly, proved: takes the text of a kernel, gives the verdict about it."""

from __future__ import annotations

from typing import Any

from rota.isa.disassembly import read_listing
from rota.prove.kernel_proof import Policies, prove
from rota.prove.verdict import Budget, Verdict
from tests.isa.single import facts, listing

WAVES = 2


def judged(
    text: str,
    *,
    waves: int = WAVES,
    policies: Policies | None = None,
    budget: Budget | None = None,
    witness: bool = False,
    **changes: Any,
) -> Verdict:
    """The verdict about a kernel whose arguments s[0:1] points to, with v0 the work item and s2 the workgroup."""
    plain = {
        "required_workgroup": (64 * waves, 1, 1),
        "user_sgprs": (("kernarg_segment_ptr", 2),),
        "workgroup_ids": (True, False, False),
    }
    told = facts(**{**plain, **changes})
    return prove(told, read_listing(listing(text), "k"), policies=policies, budget=budget, witness=witness)


def codes(verdict: Verdict) -> list[str]:
    """The codes of its findings."""
    return [finding.code for finding in verdict.findings]


def evidence(verdict: Verdict, code: str) -> dict[str, str | int]:
    """What the first finding of that code shows."""
    return dict(next(finding.evidence for finding in verdict.findings if finding.code == code))
