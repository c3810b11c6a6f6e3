"""Something wrong, wherever it was met: takes findings of one region and cause with their paths, gives an `Alarm`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from rota.errors import Finding, Severity
from rota.prove.conditions import Path

Pair = tuple[int, ...]
"""The lines of both instructions, or of the only one."""
_MOST_PATHS = 4_000
_MOST_TOLD = 64
UNDECIDED = "undecided"
"""The evidence that says which fact the proof lacks: without it nobody can say whether anything is wrong."""
_NOT_ASKED = "no replay was asked for"


@dataclass(slots=True, kw_only=True, eq=False)
class Alarm:
    """Findings of one region and cause: the first of each pair of instructions, and every path on which it was met.

    If not all paths are kept, or if the finding isn't about paths, it is `anywhere`: no path speaks for all others.
    """

    pairs: dict[Pair, Finding | None] = field(default_factory=dict)
    paths: dict[tuple[int, int], tuple[Pair, Path]] = field(default_factory=dict)
    anywhere: bool = False

    @property
    def first(self) -> Finding:
        """The one that was met first."""
        return next(each for each in self.pairs.values() if each is not None)

    def add(self, finding: Finding, path: Path | None) -> None:
        """One more of the same."""
        pair = pair_of(finding)
        if pair not in self.pairs:
            self.pairs[pair] = finding if len(self.pairs) < _MOST_TOLD else None
        if path is None or len(self.paths) >= _MOST_PATHS:
            self.anywhere = True
        else:
            self.paths.setdefault((path[0], id(path[1])), (pair, path))  # the chain is kept, so its id stays its own

    def told(self, pair: Pair | None = None) -> Finding:
        """The finding about a pair, with how many there are."""
        finding = (None if pair is None else self.pairs.get(pair)) or self.first
        if len(self.pairs) == 1:
            return finding
        return replace(finding, evidence=(*finding.evidence, ("pairs of instructions", len(self.pairs))))


def pair_of(finding: Finding) -> Pair:
    """What a finding is about: one line only where an instruction of two waves is both ends."""
    return tuple(dict.fromkeys(concern.index for concern in finding.concerns if concern.index is not None))


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmed:
    """Findings, each an error if it was replayed, and how many alarms were dropped."""

    findings: tuple[Finding, ...]
    dropped: int = 0


def unconfirmed(alarms: Sequence[Alarm], why: str = _NOT_ASKED) -> Confirmed:
    """All alarms as warnings."""
    return Confirmed(findings=tuple(doubted(each.told(), why) for each in alarms))


def broken(alarms: Sequence[Alarm]) -> tuple[Finding, ...]:
    """Rules broken, as warnings: no execution is asked about them, since it would apply the same rules."""
    return tuple(replace(each.told(), severity=Severity.WARNING) for each in alarms)


def doubted(finding: Finding, why: str) -> Finding:
    """A finding as a warning, with why no execution has shown it."""
    if finding.severity is Severity.NOTE:
        return finding
    evidence = (*finding.evidence, ("not replayed", why))
    return replace(finding, severity=Severity.WARNING, evidence=evidence)


def lacks(finding: Finding) -> str | None:
    """The fact without which a finding can't be decided, if there is one."""
    found = dict(finding.evidence).get(UNDECIDED)
    return None if found is None else str(found)
