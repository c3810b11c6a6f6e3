"""What a proof says: takes findings and what they rest on, gives a `Verdict`."""

from __future__ import annotations

import enum
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from rota.errors import Finding, Severity, several
from rota.isa.disassembly import Instruction
from rota.markup import card, lines
from rota.prove.decisions import Path

BARRIER = "barrier"
_COUNTERS = ("vmcnt", "lgkmcnt")
_NOTHING = Instruction(opcode="s_nop", operands=("0",), modifiers=(), text="s_nop 0", line=0)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Edit:
    """At an instruction, by number: a wait for a counter or a barrier.

    With `inserted` it is added in front of it; otherwise it is the instruction itself that gets the count `most`, or
    that goes if there is none.
    """

    number: int
    what: str
    most: int | None = None
    inserted: bool = False

    def describe(self, instructions: Sequence[Instruction]) -> str:
        """The edit in words: where, and what."""
        at = instructions[self.number]
        place = f"line {at.line}" if at.address is None else f"{at.address:#x}"
        source = "" if at.source is None else f" ({at.source.file.rpartition('/')[2]}:{at.source.line})"
        new = "s_barrier" if self.what == BARRIER else f"s_waitcnt {self.what}({self.most})"
        if self.inserted:
            return f"at {place}{source} insert `{new}` before `{at.text}`"
        if self.most is None:
            return f"at {place}{source} `{at.text}`" + ("" if self.what == BARRIER else f": its {self.what}")
        return f"at {place}{source} strengthen `{at.text}` to {self.what}({self.most})"


def apply_edits(instructions: Sequence[Instruction], edits: Iterable[Edit]) -> tuple[Instruction, ...]:
    """The instructions with the edits made; a branch to where something was added comes to that."""
    added: defaultdict[int, list[Edit]] = defaultdict(list)
    changed = list(instructions)
    for each in sorted(set(edits), key=lambda edit: (edit.number, edit.what == BARRIER, edit.what)):
        if each.inserted:
            added[each.number].append(each)
        else:
            changed[each.number] = _changed(changed[each.number], each)
    if not added:
        return tuple(changed)
    places: list[int] = []
    found: list[Instruction] = []
    for number, instruction in enumerate(changed):
        places.append(len(found))
        found += [_new(each, instruction) for each in added.get(number, ())]
        found.append(instruction)
    return tuple(each if each.target is None else replace(each, target=places[each.target]) for each in found)


def parse_wait_counts(instruction: Instruction) -> dict[str, int]:
    """The counts of an s_waitcnt, by counter, as its text says them; numbers without names are taken apart."""
    written = instruction.text.partition(" ")[2]
    counts: dict[str, int] = {}
    for counter in _COUNTERS:
        _, found, rest = written.partition(f"{counter}(")
        if found:
            counts[counter] = int(rest.partition(")")[0])
    if not counts and written.strip()[:1].isdigit():
        word = int(written, 0)
        counts = {"vmcnt": word & 0xF | word >> 10 & 0x30, "lgkmcnt": word >> 8 & 0xF}
    return counts


def _changed(instruction: Instruction, edit: Edit) -> Instruction:
    counts = {} if edit.what == BARRIER else parse_wait_counts(instruction)
    counts.pop(edit.what, None)
    if edit.most is not None:
        counts[edit.what] = edit.most
    if not counts:
        return replace(instruction, opcode="s_nop", operands=("0",), modifiers=(), text="s_nop 0")
    return _wait(instruction, counts)


def _wait(instruction: Instruction, counts: dict[str, int]) -> Instruction:
    operand = " ".join(f"{counter}({counts[counter]})" for counter in _COUNTERS if counter in counts)
    return replace(
        instruction, opcode="s_waitcnt", operands=(operand,), modifiers=(), text=f"s_waitcnt {operand}", target=None
    )


def _new(edit: Edit, before: Instruction) -> Instruction:
    """It stands where the next one does, but has no address."""
    here = replace(_NOTHING, line=before.line, symbol=before.symbol, source=before.source)
    if edit.what == BARRIER:
        return replace(here, opcode="s_barrier", operands=(), text="s_barrier")
    return _wait(here, {edit.what: edit.most or 0})


Fix = tuple[Edit, ...]
"""Edits that are made together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """Two operations that a finding is about, by number, and what might keep them apart."""

    code: str
    number: int
    other: int
    fixes: tuple[Fix, ...]


def wait_before(number: int, counter: str, most: int) -> Fix:
    """A wait in front of an operation."""
    return (Edit(number=number, what=counter, most=most, inserted=True),)


def strengthen(number: int, counter: str, most: int) -> tuple[Fix, ...]:
    """A wait that is there with another count; none if the count would be below 0."""
    return () if number < 0 or most < 0 else ((Edit(number=number, what=counter, most=most),),)


def separate(first: int, then: int, counters: tuple[str, str]) -> tuple[Fix, ...]:
    """A barrier between two accesses of one stretch, with a wait for the one that comes before it or without.

    A loop comes to both in turn, so that either may be the one before.
    """
    found: list[Fix] = []
    for place, counter in ((then, counters[0]), (first + 1, counters[0]), (first, counters[1])):
        barrier = Edit(number=place, what=BARRIER, inserted=True)
        found += [(barrier,), (*wait_before(place, counter, 0), barrier)]
    return tuple(sorted(found, key=len))


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

    def report(self, pair: Pair | None = None) -> Finding:
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


def report_unconfirmed(alarms: Sequence[Alarm], why: str = _NOT_ASKED) -> Confirmed:
    """All alarms as warnings."""
    return Confirmed(findings=tuple(doubt(each.report(), why) for each in alarms))


def report_broken_rules(alarms: Sequence[Alarm]) -> tuple[Finding, ...]:
    """Rules broken, as warnings: no execution is asked about them, since it would apply the same rules."""
    return tuple(replace(each.report(), severity=Severity.WARNING) for each in alarms)


def doubt(finding: Finding, why: str) -> Finding:
    """A finding as a warning, with why no execution has shown it."""
    if finding.severity is Severity.NOTE:
        return finding
    evidence = (*finding.evidence, ("not replayed", why))
    return replace(finding, severity=Severity.WARNING, evidence=evidence)


def missing_fact(finding: Finding) -> str | None:
    """The fact without which a finding can't be decided, if there is one."""
    found = dict(finding.evidence).get(UNDECIDED)
    return None if found is None else str(found)


STEPS_PER_SECOND = 40_000  # on one processor of 2020, about
LEAST_SEARCH = 10_000  # steps in which a launch is looked for, however few the proof may take
_REGISTERS, _PAIRS, _UNITS = 4, 64, 100  # registers of a state, pairs of accesses, units of z3: as long as a step


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How much a proof may take: steps and states, and CPU seconds if the user wants a limit of these, too."""

    steps: int = 60 * STEPS_PER_SECOND
    seconds: float | None = None
    states: int = 40_000


class Meter:
    """Counts what a proof and the search for its witnesses take."""

    def __init__(self, budget: Budget) -> None:
        self.budget, self.spent, self._most = budget, 0, budget.steps
        self._ends = None if budget.seconds is None else time.process_time() + budget.seconds

    def spend(self, steps: int = 0, *, registers: int = 0, pairs: int = 0, units: int = 0) -> None:
        """Counts work that was done."""
        self.spent += steps + registers // _REGISTERS + pairs // _PAIRS + units // _UNITS

    @property
    def exceeded(self) -> str:
        """Which limit is reached: of steps, of seconds, or none."""
        if self.spent > self._most:
            return "steps"
        return "seconds" if self._ends is not None and time.process_time() > self._ends else ""

    @property
    def units_left(self) -> int:
        """How many of z3's units the steps that are left are worth."""
        return max(self._most - self.spent, 0) * _UNITS

    def allow_search(self) -> None:
        """Where a proof has used up its steps, alarms are still asked about, for a quarter as many and a few."""
        self._most = max(self._most, self.spent + self.budget.steps // 4 + LEAST_SEARCH)


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
    """What a proof took: steps of wave_sets of waves, states, paths, and LDS sites with known addresses, of all.

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
    wrong = {(each.severity, missing_fact(each) is None) for each in judged}
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
