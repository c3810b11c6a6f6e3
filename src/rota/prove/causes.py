"""Causes: the place at which one wait or barrier is missing, with all pairs of instructions that hang on it.

A pair of instructions that nothing orders has a gap: the stretch of the listing in which a wait, or a barrier, would
order it.  Gaps that overlap have a common place, so that one instruction there orders them all: these are one cause.
The fewest places that meet all gaps are found from the end of the first gap on (the interval point cover, which is
exact for gaps that are intervals).  Copies of a cause, as unrolling makes them, are one cause with several places.
"""

from __future__ import annotations

import enum
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from rota.errors import Finding, Severity
from rota.program.machine import Confidence
from rota.targets.architecture import SOURCES

if TYPE_CHECKING:
    from rota.prove.decisions import Path  # brings numpy, which a budget on the command line doesn't need
    from rota.prove.operation import Operation

_LLVM = SOURCES[Confidence.COMPILER_MODEL]
UNDECIDED = "undecided"  # the key of the evidence that names a fact which the proof lacks to decide a finding
DISTANCE = ("distance", "unknown")  # evidence that two accesses may use the same bytes, or not
LEVEL = "level"  # the key of the evidence that says how sure a finding is
EARLY = frozenset({"I401", "I402"})  # the proof ended early
RULES = frozenset({"I104", "I114"})
"""Rules between two instructions; a replay would look them up in the same table, and so shows nothing."""


class EvidenceLevel(enum.Enum):
    """How sure a finding is, the surest first."""

    SHOWN = "shown"  # the interpreter ran into it, and a value differs
    REQUIRED = "required"  # a race, or a rule of AMD's manual, on a path that some launch takes as far as is known
    ONE_SOURCE = "one source"  # a rule that LLVM alone keeps, or a policy
    UNDECIDED = "undecided"  # the proof lacks a fact, and says which

    @property
    def rank(self) -> int:
        return [*EvidenceLevel].index(self)


def level_of(finding: Finding) -> EvidenceLevel | None:
    """The level of a finding; None for a note."""
    if finding.severity is Severity.NOTE:
        return None
    return EvidenceLevel(str(dict(finding.evidence).get(LEVEL, EvidenceLevel.REQUIRED.value)))


def mark_level(finding: Finding) -> Finding:
    """A finding with its level, if nothing has said it yet."""
    evidence = dict(finding.evidence)
    if finding.severity is Severity.NOTE or LEVEL in evidence:
        return finding
    if finding.code in EARLY or UNDECIDED in evidence:
        level = EvidenceLevel.UNDECIDED
    elif evidence.get("rule") == "policy" or finding.code == "I403" or evidence.get("source") == _LLVM:
        level = EvidenceLevel.ONE_SOURCE
    else:
        level = EvidenceLevel.REQUIRED
    return replace(finding, evidence=((LEVEL, level.value), *finding.evidence))


_ORDER = [EvidenceLevel.SHOWN, EvidenceLevel.REQUIRED, EvidenceLevel.UNDECIDED, EvidenceLevel.ONE_SOURCE, None]
Pair = tuple[int, ...]  # the lines of both instructions, or of the only one


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedFinding:
    """A finding, and all pairs of instructions that it is about."""

    finding: Finding
    pairs: tuple[Pair, ...] = ()


def rank_causes(causes: Iterable[RankedFinding]) -> tuple[RankedFinding, ...]:
    """By level, then races before wait states, then the largest cause of each kind before the second of any.

    A cause is the larger the more pairs hang on it.  Three causes of three kinds say more of a kernel than the three
    largest of one kind.  What one source says comes last: it is no reason to look at a kernel, but a race that nobody
    excludes is.
    """
    marked = [replace(each, finding=mark_level(each.finding)) for each in causes]
    before: Counter[tuple[int, str]] = Counter()  # larger causes of the same level and kind
    keys: dict[int, tuple[int, bool, int, int]] = {}
    for each in sorted(marked, key=lambda cause: -len(cause.pairs)):
        level, code = _ORDER.index(level_of(each.finding)), each.finding.code
        keys[id(each)] = (level, code in RULES, before[level, code], -len(each.pairs))
        before[level, code] += 1
    return tuple(sorted(marked, key=lambda cause: keys[id(cause)]))


class SyncGap(NamedTuple):
    """What would order two operations: `what`, a counter or a barrier, after `first` and at `last` or before it.

    A wait lets `most` ops go on.  `wait` is a wait that is there, and whose count is too large.
    """

    what: str
    first: int
    last: int
    most: int = 0
    wait: int = -1


PAIRS = "pairs of instructions"
_MOST_PATHS = 64  # of one pair


def pair_of(finding: Finding) -> Pair:
    """The lines that a finding is about; one line if both ends are the same instruction in two waves."""
    return tuple(dict.fromkeys(concern.index for concern in finding.concerns if concern.index is not None))


@dataclass(slots=True, kw_only=True, eq=False)
class FoundPair:
    """Two operations that nothing orders, and the paths on which that is so; `anywhere` if not all are kept."""

    finding: Finding
    number: int
    other: int
    rule: Hashable
    gap: SyncGap | None
    paths: dict[tuple[int, int], Path] = field(default_factory=dict)
    anywhere: bool = False

    def add(self, path: Path | None) -> None:
        if path is None or len(self.paths) >= _MOST_PATHS:
            self.anywhere = True
        else:
            self.paths.setdefault((path[0], id(path[1])), path)  # keeps the chain whose id is in the key


@dataclass(kw_only=True, eq=False)
class Alarm:
    """All pairs of one cause; once `pairs` is asked for, none is added any more."""

    found: list[FoundPair] = field(default_factory=list)
    places: tuple[str, ...] = ()

    @property
    def first(self) -> Finding:
        return self.found[0].finding

    @cached_property
    def pairs(self) -> dict[Pair, Finding]:
        return {pair_of(each.finding): each.finding for each in self.found}

    @property
    def paths(self) -> list[tuple[Pair, Path]]:
        """The paths to its pairs, some of each pair before more of any."""
        ways = [[(pair_of(each.finding), path) for path in each.paths.values()] for each in self.found]
        deepest = max(map(len, ways), default=0)
        kept: dict[tuple[int, int], tuple[Pair, Path]] = {}
        for at in range(deepest):
            for pair, path in (each for way in ways for each in way[at : at + 1]):
                kept.setdefault((path[0], id(path[1])), (pair, path))
        return [*kept.values()]

    @property
    def anywhere(self) -> bool:
        return any(each.anywhere for each in self.found)

    def as_cause(self, finding: Finding) -> RankedFinding:
        return RankedFinding(finding=finding, pairs=tuple(self.pairs))

    def report(self, pair: Pair | None = None) -> Finding:
        """The finding about a pair, else the first, with the number of pairs and the places of the cause."""
        finding = (None if pair is None else self.pairs.get(pair)) or self.first
        evidence = finding.evidence
        if len(self.places) > 1:
            evidence = (*evidence, ("places", ", ".join(self.places[:_MOST_PLACES]) + _and_more(len(self.places))))
        if len(self.found) > 1:
            evidence = (*evidence, (PAIRS, len(self.found)))
        return replace(finding, evidence=evidence)


_MOST_PLACES = 6


def _and_more(count: int) -> str:
    return f" and {count - _MOST_PLACES} more" if count > _MOST_PLACES else ""


def group_by_cause(found: Iterable[FoundPair], operations: Sequence[Operation]) -> list[Alarm]:
    """One alarm for each cause."""
    targets = ((number, each.instruction.target) for number, each in enumerate(operations))
    loops = [(end, head) for end, head in targets if head is not None and head <= end]
    alike: defaultdict[tuple[str, str, Hashable], list[FoundPair]] = defaultdict(list)
    alarms: dict[object, Alarm] = {}
    for each in found:
        code, gap = each.finding.code, each.gap
        if gap is None:
            alarms.setdefault((code, each.rule), Alarm()).found.append(each)
        else:
            alike[gap.what, code, each.rule].append(each)
    for kind, members in alike.items():
        for place, hit in _cover(members, loops):
            written = operations[place].instruction.text if operations[place].waits else ""
            ends = frozenset((operations[each.other].name, operations[each.number].name) for each in hit)
            least = min(each.gap.most for each in hit if each.gap is not None)
            alarm = alarms.setdefault((kind, written, least, ends), Alarm())
            alarm.found += hit
            at = operations[place].instruction
            alarm.places += (at.place,)
    return [*alarms.values()]


def _cover(members: list[FoundPair], loops: Sequence[tuple[int, int]]) -> list[tuple[int, list[FoundPair]]]:
    """Places that meet the gaps of all pairs, and the pairs that each meets first."""
    chosen: dict[int, list[FoundPair]] = {}
    waits: dict[int, list[FoundPair]] = {}
    straight: list[tuple[SyncGap, FoundPair]] = []
    around: list[tuple[SyncGap, FoundPair]] = []
    for each in members:
        gap = each.gap
        assert gap is not None  # noqa: S101
        if gap.wait >= 0:  # its count is what is wrong
            waits.setdefault(gap.wait, []).append(each)
        else:
            (straight if gap.first < gap.last else around).append((gap, each))
    for gap, each in sorted(straight, key=lambda item: item[0].last):
        place = next((at for at in reversed(chosen) if gap.first < at <= gap.last), gap.last)
        chosen.setdefault(place, []).append(each)
    for gap, each in sorted(around, key=lambda item: item[0].last):
        # From the later instruction to the end of a loop around both, and from its head to the earlier one.
        ends = [(end - head, end, head) for end, head in loops if head <= gap.last and end >= gap.first]
        _, end, head = min(ends, default=(0, gap.first, gap.last))
        place = next((at for at in reversed(chosen) if gap.first < at <= end or head <= at <= gap.last), gap.last)
        chosen.setdefault(place, []).append(each)
    return [*waits.items(), *chosen.items()]
