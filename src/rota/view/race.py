"""A race between two waves: takes a finding, gives its two accesses, the barriers between and the wait that is missing.

Both kinds of proof tell the same story: one wave's access is still under way when another wave comes to the same bytes.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from rota.errors import Concern, Finding, several

_EPOCH = re.compile(r"epoch (\d+)[^:]*: (.+)")
_BETWEEN = "no barrier between"


class WaveAccess(NamedTuple):
    """What one wave does to the bytes: when, counted in barriers that it has passed, and where it was written."""

    wave: str
    does: str
    passed: int
    source: str


class Race(NamedTuple):
    """Two accesses of the same bytes; `missing` is what would keep them apart, or why nothing does."""

    code: str
    message: str
    first: WaveAccess
    then: WaveAccess
    place: str
    missing: str

    @property
    def barriers(self) -> int:
        """How many barriers lie between the two."""
        return max(self.then.passed - self.first.passed, 0)

    def __str__(self) -> str:
        """The two lanes as text."""
        first, then = f"[{self.first.does}]", f"[{self.then.does}]"
        lane = max(len(self.first.wave), len(self.then.wave)) + 2
        bars = "│" * self.barriers
        under = "▒" * (len(then) + 3)
        gap = " " * (len(first) + 2)
        told = "" if bars else f"   ({_BETWEEN})"
        return "\n".join(
            (
                f"{self.first.wave:{lane}}{first}▒▒{bars.replace('│', '┼')}{under}  under way{told}",
                f"{'':{lane}}{gap}{bars}",
                f"{self.then.wave:{lane}}{gap}{bars}  {then}",
                f"{'':{lane}}same bytes: {self.place}; missing: {self.missing}",
            )
        )


def race_of(finding: Finding) -> Race | None:
    """What a picture of the finding shows; None if it isn't about two waves."""
    evidence = {name: str(value) for name, value in finding.evidence}
    if finding.code == "I109" and "waves" in evidence and len(finding.concerns) > 1:
        return _in_machine_code(finding, evidence)
    if finding.code in ("R102", "R103") and len(finding.concerns) > 1:
        return _in_schedule(finding, evidence)
    return None


def _in_machine_code(finding: Finding, evidence: dict[str, str]) -> Race | None:
    """The finding names the later access first; the numbers of waves and barriers come in the order of time."""
    waves = re.findall(r"\d+", evidence["waves"])
    passed = [int(number) for number in re.findall(r"\d+", evidence.get("barriers", ""))]
    if len(waves) < 2 or not passed:
        return None
    then, first = finding.concerns[:2]
    return Race(
        code=finding.code,
        message=finding.message,
        first=_access(f"wave {waves[0]}", first, passed[0]),
        then=_access(f"wave {waves[1]}", then, passed[-1]),
        place=evidence.get("bytes of LDS", "LDS"),
        missing=evidence.get("missing wait", "a wait and a barrier between them"),
    )


def _in_schedule(finding: Finding, evidence: dict[str, str]) -> Race | None:
    """Both ends say in which stretch between barriers, an epoch, they stand and what they do to which place."""
    ends = [(concern, _EPOCH.search(concern.role)) for concern in finding.concerns[:2]]
    (one, first), (other, then) = ends
    if first is None or then is None:
        return None
    return Race(
        code=finding.code,
        message=finding.message,
        first=_access("one wave", one, int(first[1])),
        then=_access("another", other, max(int(first[1]), int(then[1]))),
        place=then[2].partition(" ")[2],
        missing=evidence.get("found", "a wait and a barrier between them"),
    )


def _access(wave: str, concern: Concern, passed: int) -> WaveAccess:
    source = f"{concern.source}".rpartition("/")[2] if concern.source else ""
    number = f"{concern.number} " if concern.number else ""
    return WaveAccess(wave, f"{number}{concern.label}", passed, source)


def stretch_name(passed: int) -> str:
    """A stretch between barriers, in words."""
    return f"after {several(passed, 'barrier')}" if passed else "before the first barrier"
