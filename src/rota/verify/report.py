"""The result of a proof: a `Report` of findings and, if none is an error, a `Certificate`.

A certificate is bound to the program it is about. Only certificates that a proof of this process issued are believed; a
copied or stored one is proved again.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from itertools import zip_longest
from weakref import WeakValueDictionary

from rota.errors import Finding, Severity, several
from rota.markup import card, fold
from rota.program.lowered import LoweredProgram

REGISTER_WAITS = "register waits inserted by the compiler"
"""A compute or store waits for the loads into its registers, even where the schedule plans no wait."""

ORDER_KEPT = "the compiler keeps the order of the entries and at most adds or strengthens waits"
TILES_APART = "tile addresses do not overlap"
SAME_PATH = "every wave takes the same path"
AS_COUNTED = "every op issues as many counted instructions as the schedule states"
ENTERED_ONCE = "the loop is run once, or with full waits and a barrier between two runs"


def in_order_assumption(counter: str) -> str:
    return f"{counter} counts down in the order of issue"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, weakref_slot=True)
class Certificate:
    """What was proved, for which trip counts, on which facts, under which named assumptions.

    `subject` is the program that was proved.  Without one, as in a document, the terms are only a claim.
    """

    obligations: tuple[str, ...]
    explicit_trip_counts: int
    repeats_every: int
    facts: tuple[str, ...]
    assumptions: tuple[str, ...]
    not_stated: tuple[str, ...] = ()
    subject: LoweredProgram | None = field(default=None, compare=False, repr=False)

    def __repr__(self) -> str:
        counts = f"{len(self.obligations)} obligations on {len(self.facts)} facts, {len(self.assumptions)} assumptions"
        return f"<Certificate for every trip count: {counts}>"

    def __str__(self) -> str:
        head = f"proved for every trip count: 0 to {self.explicit_trip_counts - 1} explicitly, the rest by induction"
        lines = [
            f"{head} (the state at the loop edge repeats every {self.repeats_every})",
            *(f"  proved: {text}" for text in self.obligations),
            *(f"  fact: {text}" for text in self.facts),
            *(f"  assumes: {text}" for text in self.assumptions),
            *(f"  not stated by the schedule: {text}" for text in self.not_stated),
        ]
        return "\n".join(lines)


_ISSUED: WeakValueDictionary[int, Certificate] = WeakValueDictionary()
"""The certificates that a proof of this process gave, by identity: two with the same terms may have other subjects."""


def issue(certificate: Certificate) -> Certificate:
    """Register the certificate as the proof's own."""
    _ISSUED[id(certificate)] = certificate
    return certificate


def was_issued(certificate: Certificate) -> bool:
    """True if a proof of this process issued this very object; a copied, changed or stored certificate was not."""
    return _ISSUED.get(id(certificate)) is certificate


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Report:
    """All findings, worst first, and the certificate if none of them is an error."""

    findings: tuple[Finding, ...]
    certificate: Certificate | None

    @property
    def clean(self) -> bool:
        """True if no finding is an error."""
        return self.certificate is not None

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that make the schedule wrong."""
        return tuple(finding for finding in self.findings if finding.severity is Severity.ERROR)

    def __repr__(self) -> str:
        return f"<Report {'proved' if self.clean else 'not proved'}, {several(len(self.findings), 'finding')}>"

    def __str__(self) -> str:
        parts = [str(finding) for finding in self.findings]
        return "\n\n".join([*parts, str(self.certificate)] if self.certificate else parts)

    def _repr_html_(self) -> str:
        told = "".join(finding._repr_html_() for finding in self.findings)
        if self.certificate is None:
            return card(several(len(self.errors), "error"), told, tone="error")
        head, _, terms = str(self.certificate).partition("\n")
        return card(head, told, fold("what was proved, on which facts, under which assumptions", terms), tone="ok")


# Whether a certificate is about a program.
#
# A certificate keeps the program that was proved, so that what the proof read and what it is about can't differ.


def check_subject(proved: LoweredProgram | None, given: LoweredProgram) -> Finding | None:
    """A V108 finding if the certificate was proved of another program, else None."""
    if proved == given:
        return None
    return Finding(
        "V108",
        "the certificate is about another schedule and was removed; this one is not proved",
        severity=Severity.WARNING,
        evidence=_differences(proved, given) if proved else (("certificate", "doesn't say what it is about"),),
        fixes=("verify() says whether this schedule is right",),
    )


def _differences(proved: LoweredProgram, given: LoweredProgram) -> tuple[tuple[str, str], ...]:
    found = []
    for each in fields(LoweredProgram):
        if not each.compare:
            continue
        before, now = getattr(proved, each.name), getattr(given, each.name)
        if before != now:
            one, other = (before, now) if isinstance(now, int | None) else _describe_difference(before, now)
            found.append((each.name, f"{one} in the proof, {other} here"))
    return tuple(found)


def _describe_difference(before: object, now: object) -> tuple[str, str]:
    """Describe two different values briefly; of two tuples, their first different elements."""
    if not isinstance(before, tuple) or not isinstance(now, tuple):
        return f"one {type(before).__name__}", "another"
    slot = next(number for number, (one, other) in enumerate(zip_longest(before, now)) if one != other)
    one, other = (
        f"{whole[slot]} among {len(whole)}" if slot < len(whole) else f"{len(whole)}" for whole in (before, now)
    )
    return one, other
