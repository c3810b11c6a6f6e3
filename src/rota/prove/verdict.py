"""What a proof says: takes findings and what they rest on, gives a `Verdict`."""

from __future__ import annotations

import enum
from collections import Counter
from dataclasses import dataclass

from rota.errors import Finding, Severity, several
from rota.markup import card, lines
from rota.prove.alarm import lacks
from rota.prove.remedies import Remedy

_EARLY = frozenset({"I401", "I402"})
_RULES = frozenset({"I104"})
"""Rules between two instructions: an execution here would only look them up in the same table, and shows nothing."""


class Status(enum.Enum):
    """How a proof ended."""

    PROVED = "proved"
    REFUTED = "refuted"
    ALARM = "alarm"
    UNDECIDED = "undecided"
    BROKEN = "rule broken"
    INCONCLUSIVE = "inconclusive"


_TONES = {
    Status.PROVED: "ok", Status.REFUTED: "error", Status.ALARM: "warning", Status.BROKEN: "warning",
    Status.UNDECIDED: "note",
    Status.INCONCLUSIVE: "note",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """What a proof took: steps of squads of waves, states, paths, and LDS sites with known addresses, of all.

    `effort` is what it took of its budget of steps, with the search for a launch.
    """

    steps: int = 0
    states: int = 0
    paths: int = 0
    sites: int = 0
    concrete_sites: int = 0
    seconds: float = 0.0
    effort: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The answer about one kernel: proved only if every path was followed to its end and nothing is wrong.

    Refuted is what an execution showed, a race or a value that differs: the finding, an error, has the launch and the
    order.  An alarm is something wrong in the model, a warning, that no execution has shown.  A rule broken is a wait
    state that is missing and nothing else: the finding says whose rule it is.  Undecided is a kernel whose findings all
    rest on something that the proof doesn't know and that they name, such as a block that was assumed.  Inconclusive
    is a proof that ended early, with what was found until then.  Assumptions and policies are what it rests on; `waves`
    are those of a workgroup, `remedies` what might mend what was found; `dropped` alarms were on paths that no launch
    can take.
    """

    kernel: str
    arch: str
    status: Status
    findings: tuple[Finding, ...]
    assumptions: tuple[str, ...]
    policies: tuple[str, ...]
    statistics: Statistics
    waves: int = 1
    remedies: tuple[Remedy, ...] = ()
    dropped: int = 0

    @property
    def proved(self) -> bool:
        """Is it right, as far as the assumptions go?"""
        return self.status is Status.PROVED

    @property
    def ended_early(self) -> bool:
        """Was a path left before its end?"""
        return any(each.code in _EARLY for each in self.findings)

    @property
    def ran_out(self) -> bool:
        """Did it end early, with nothing wrong until then?"""
        return self.status is Status.INCONCLUSIVE

    def __str__(self) -> str:
        took = self.statistics
        line = (
            f"{self.kernel} ({self.arch}): {self.status.value}; {took.steps:,} steps, {took.states:,} states,"
            f" {took.paths:,} paths,"
            f" {took.concrete_sites} of {took.sites} LDS sites concrete, {took.seconds:.1f} s"
        )
        rests = [f"  assumes: {each}" for each in self.assumptions] + [f"  policy: {each}" for each in self.policies]
        if told := self._broken():
            rests.insert(0, f"  wait states that are missing, by whose rule it is: {told}")
        if self.dropped:
            rests.insert(0, f"  {several(self.dropped, 'alarm')} on infeasible paths {_were(self.dropped)} dropped")
        return "\n".join((line, *rests))

    def _broken(self) -> str:
        """How many findings are rules broken, by their source."""
        counts = Counter(str(dict(each.evidence).get("source", "")) for each in self.findings if each.code in _RULES)
        return ", ".join(f"{source} {count}" for source, count in sorted(counts.items()))

    def _repr_html_(self) -> str:
        head, _, rests = str(self).partition("\n")
        told = "".join(finding._repr_html_() for finding in self.findings)
        return card(head, lines(rests), told, tone=_TONES[self.status])


def status_of(findings: tuple[Finding, ...], *, complete: bool) -> Status:
    """Refuted if anything was shown to be wrong, an alarm if it may be, then a rule broken.

    Undecided if only an unknown fact says whether anything is wrong; else it is whether the proof came to its end.
    """
    judged = [each for each in findings if each.code not in _EARLY | _RULES]
    wrong = {(each.severity, lacks(each) is None) for each in judged}
    if (Severity.ERROR, True) in wrong:
        return Status.REFUTED
    if (Severity.WARNING, True) in wrong:
        return Status.ALARM
    if any(each.code in _RULES for each in findings):
        return Status.BROKEN
    if (Severity.WARNING, False) in wrong:
        return Status.UNDECIDED
    return Status.PROVED if complete else Status.INCONCLUSIVE


def _were(count: int) -> str:
    return "was" if count == 1 else "were"
