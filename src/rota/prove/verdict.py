"""Verdicts of proofs, and what they are made of: alarms, edits that might fix them, and the budget."""

from __future__ import annotations

import enum
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rota.errors import Finding, Severity, several
from rota.isa.disassembly import Instruction
from rota.isa.opcodes import written_counts
from rota.markup import card, lines
from rota.prove.causes import DISTANCE, EARLY, RULES, UNDECIDED, Alarm, EvidenceLevel, Pair, RankedFinding, level_of

BARRIER, SPLIT_BARRIER = "barrier", "split barrier"
BARRIERS = {BARRIER: ("s_barrier",), SPLIT_BARRIER: ("s_barrier_signal -1", "s_barrier_wait -1")}
BARRIER_OPCODES = {texts[0].partition(" ")[0]: what for what, texts in BARRIERS.items()}
_FIELDS = ("vmcnt", "lgkmcnt")  # of s_waitcnt; any other counter has a wait of its own, s_wait_loadcnt for one
_NOTHING = Instruction(opcode="s_nop", operands=("0",), modifiers=(), text="s_nop 0", line=0)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Edit:
    """A wait or barrier to insert before an instruction; else the wait itself gets the count `most`, or goes (None)."""

    number: int
    what: str
    most: int | None = None
    inserted: bool = False

    @property
    def texts(self) -> tuple[str, ...]:
        """The instructions that it inserts."""
        return BARRIERS.get(self.what) or (_spell_wait({self.what: self.most or 0}),)

    def describe(self, instructions: Sequence[Instruction]) -> str:
        at = instructions[self.number]
        source = "" if at.source is None else f" ({at.source.file.rpartition('/')[2]}:{at.source.line})"
        if self.inserted:
            return f"at {at.place}{source} insert `{'; '.join(self.texts)}` before `{at.text}`"
        if self.most is None:
            return f"at {at.place}{source} `{at.text}`" + ("" if self.what in BARRIERS else f": its {self.what}")
        return f"at {at.place}{source} strengthen `{at.text}` to {self.what}({self.most})"


def apply_edits(instructions: Sequence[Instruction], edits: Iterable[Edit]) -> tuple[Instruction, ...]:
    """Apply edits; a branch to an instruction goes to what is inserted before it."""
    added: defaultdict[int, list[Edit]] = defaultdict(list)
    changed = list(instructions)
    for each in sorted(set(edits), key=lambda edit: (edit.number, edit.what in BARRIERS, edit.what)):
        if each.inserted:
            added[each.number].append(each)
        else:
            counts = (
                {} if each.what in BARRIERS else written_counts(changed[each.number].spec, changed[each.number].text)
            )
            counts.pop(each.what, None)
            if each.most is not None:
                counts[each.what] = each.most
            changed[each.number] = _respell(changed[each.number], _spell_wait(counts))
            if each.what == SPLIT_BARRIER:  # with the wait after it
                later = range(each.number, len(changed))
                number = next((at for at in later if changed[at].opcode == "s_barrier_wait"), each.number)
                changed[number] = _respell(changed[number], _NOTHING.text)
    if not added:
        return tuple(changed)
    places: list[int] = []
    found: list[Instruction] = []
    for number, instruction in enumerate(changed):
        places.append(len(found))
        for text in (text for each in added.get(number, ()) for text in each.texts):
            # It has the line and source of the instruction after it, but no address.
            here = replace(_NOTHING, line=instruction.line, symbol=instruction.symbol, source=instruction.source)
            found.append(_respell(here, text))
        found.append(instruction)
    return tuple(each if each.target is None else replace(each, target=places[each.target]) for each in found)


def _spell_wait(counts: dict[str, int]) -> str:
    if fields := " ".join(f"{name}({counts[name]})" for name in _FIELDS if name in counts):
        return f"s_waitcnt {fields}"
    return next((f"s_wait_{name} {count}" for name, count in counts.items()), _NOTHING.text)


def _respell(instruction: Instruction, text: str) -> Instruction:
    opcode, *operands = text.split(" ", 1)
    return replace(instruction, opcode=opcode, operands=tuple(operands), modifiers=(), text=text, target=None)


Fix = tuple[Edit, ...]  # edits to make together


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """Two operations that a finding is about, by number, and alternative fixes."""

    code: str
    number: int
    other: int
    fixes: tuple[Fix, ...]


def wait_before(number: int, counter: str, most: int) -> Fix:
    return (Edit(number=number, what=counter, most=most, inserted=True),)


def strengthen(number: int, counter: str, most: int) -> tuple[Fix, ...]:
    """Lower the count of an existing wait; no fix if the count would be negative."""
    return () if number < 0 or most < 0 else ((Edit(number=number, what=counter, most=most),),)


def separate(first: int, then: int, counters: tuple[str, str], what: str = BARRIER) -> tuple[Fix, ...]:
    """Insert a barrier between two accesses, whichever comes first, with or without a wait for the first."""
    found: list[Fix] = []
    for place, counter in ((then, counters[0]), (first + 1, counters[0]), (first, counters[1])):
        barrier = Edit(number=place, what=what, inserted=True)
        found += [(barrier,), (*wait_before(place, counter, 0), barrier)]
    return tuple(sorted(found, key=len))


_NOT_ASKED = "no replay was asked for"


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmed:
    causes: tuple[RankedFinding, ...]
    dropped: int = 0


def report_unconfirmed(alarms: Sequence[Alarm], why: str = _NOT_ASKED) -> Confirmed:
    return Confirmed(causes=tuple(each.as_cause(doubt(each.report(), why)) for each in alarms))


def report_broken_rules(alarms: Sequence[Alarm]) -> tuple[RankedFinding, ...]:
    """Report broken rules as warnings; a replay would only apply the same rules again."""
    return tuple(each.as_cause(replace(each.report(), severity=Severity.WARNING)) for each in alarms)


def doubt(finding: Finding, why: str) -> Finding:
    """Turn a finding into a warning, with the reason why no replay shows it."""
    if finding.severity is Severity.NOTE:
        return finding
    evidence = (*finding.evidence, ("not replayed", why))
    if DISTANCE in evidence:
        evidence = (*evidence, (UNDECIDED, "whether both use the same bytes"))
    return replace(finding, severity=Severity.WARNING, evidence=evidence)


def missing_fact(finding: Finding) -> str | None:
    found = dict(finding.evidence).get(UNDECIDED)
    return None if found is None else str(found)


STEPS_PER_SECOND = 10_000  # about, on a processor of 2020
LEAST_SEARCH = 10_000  # steps for the search for a launch, however few the budget has
_REGISTERS, _PAIRS, _UNITS = 8, 64, 100  # what costs a step: registers and accesses of a state, pairs, z3's units


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The most steps and states of a proof, and its most CPU seconds if there is such a limit.

    Steps decide, and they are the same on every machine: steps of waves, registers of compared states, pairs of
    accesses, z3's own units, replayed instructions.  Only a user sets a limit in seconds; the verdict names it.
    """

    steps: int = 15 * STEPS_PER_SECOND
    seconds: float | None = None
    states: int = 40_000


class Meter:
    def __init__(self, budget: Budget) -> None:
        self.budget, self.spent, self._most = budget, 0, budget.steps
        self._ends = None if budget.seconds is None else time.process_time() + budget.seconds

    def spend(self, steps: int = 0, *, registers: int = 0, pairs: int = 0, units: int = 0) -> None:
        self.spent += steps + registers // _REGISTERS + pairs // _PAIRS + units // _UNITS

    @property
    def exceeded(self) -> str:
        """The limit that is exceeded, `steps` or `seconds`, else an empty string."""
        if self.spent > self._most:
            return "steps"
        return "seconds" if self._ends is not None and time.process_time() > self._ends else ""

    @property
    def left(self) -> int:
        return max(self._most - self.spent, 0)

    @property
    def units_left(self) -> int:
        return self.left * _UNITS

    def allow_search(self) -> None:
        """Allow a quarter more steps, and at least a few, for the search for witnesses."""
        self._most = max(self._most, self.spent + self.budget.steps // 4 + LEAST_SEARCH)


class Status(enum.Enum):
    PROVED = "proved"
    REFUTED = "refuted"
    ALARM = "alarm"
    BROKEN = "rule broken"
    UNDECIDED = "undecided"
    INCONCLUSIVE = "inconclusive"
    ONE_SOURCE = "one source"


_TONES = {
    Status.PROVED: "ok", Status.REFUTED: "error", Status.ALARM: "warning", Status.BROKEN: "warning",
    Status.UNDECIDED: "note",
    Status.INCONCLUSIVE: "note",
    Status.ONE_SOURCE: "note",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """The size of a proof: steps of wave sets, states, paths, LDS instructions and those with known addresses."""

    steps: int = 0
    states: int = 0
    paths: int = 0
    sites: int = 0
    concrete_sites: int = 0
    seconds: float = 0.0
    effort: int = 0  # steps of the budget that it took, with the search for a launch


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The verdict about one kernel.

    - proved: every path was followed to its end, and nothing is wrong;
    - refuted: a replay showed a race or a wrong value; the finding is an error, with the launch and the order of waves;
    - alarm: something is wrong in the model, on a path that a launch can take, and no replay shows it;
    - rule broken: only wait states that AMD's manual asks for are missing; the finding names the source of the rule;
    - undecided: what is found depends on facts that the proof lacks and the findings name, such as an assumed block;
    - inconclusive: the proof ended early, and found nothing wrong until then;
    - one source: every path was followed to its end, and only rules that LLVM alone keeps or policies are broken.

    The surest findings come first, and of these the ones on which most pairs of instructions hang.
    `pairs` are, for each finding, the lines of all pairs of instructions that hang on its cause.
    The verdict depends on its `assumptions` and `policies`.  `waves` are those of a workgroup, `remedies` fixes that
    might help, `dropped` counts alarms on paths that no launch can take.
    """

    kernel: str
    arch: str
    status: Status
    findings: tuple[Finding, ...]
    assumptions: tuple[str, ...]
    policies: tuple[str, ...]
    statistics: Statistics
    pairs: tuple[tuple[Pair, ...], ...] = ()
    waves: int = 1
    remedies: tuple[Remedy, ...] = ()
    dropped: int = 0

    @property
    def proved(self) -> bool:
        """True if the kernel is right under the assumptions."""
        return self.status is Status.PROVED

    @property
    def level(self) -> EvidenceLevel | None:
        """The level of the surest finding; None if there is none but notes."""
        return min(filter(None, map(level_of, self.findings)), key=lambda each: each.rank, default=None)

    @property
    def ended_early(self) -> bool:
        """True if some path was not followed to its end."""
        return any(each.code in EARLY for each in self.findings)

    def __str__(self) -> str:
        took = self.statistics
        line = (
            f"{self.kernel} ({self.arch}): {self.status.value}; {several(took.steps, 'step')},"
            f" {several(took.states, 'state')}, {several(took.paths, 'path')},"
            f" {took.concrete_sites} of {took.sites} LDS sites concrete, {took.seconds:.1f} s"
        )
        rests = [f"  assumes: {each}" for each in self.assumptions] + [f"  policy: {each}" for each in self.policies]
        counts = Counter(str(dict(each.evidence).get("source", "")) for each in self.findings if each.code in RULES)
        if counts:
            sources = ", ".join(f"{source} {count}" for source, count in sorted(counts.items()))
            rests.insert(0, f"  missing wait states, by the source of their rule: {sources}")
        if self.dropped:
            were = "was" if self.dropped == 1 else "were"
            rests.insert(0, f"  {several(self.dropped, 'alarm')} on infeasible paths {were} dropped")
        return "\n".join((line, *rests))

    def _repr_html_(self) -> str:
        head, _, rests = str(self).partition("\n")
        findings = "".join(finding._repr_html_() for finding in self.findings)
        return card(head, lines(rests), findings, tone=_TONES[self.status])


def status_of(findings: tuple[Finding, ...], *, complete: bool) -> Status:
    """The status of a proof with these findings; `complete` says that every path was followed to its end."""
    levels = {level_of(each) for each in findings if each.code not in EARLY}
    if EvidenceLevel.SHOWN in levels:
        return Status.REFUTED
    if EvidenceLevel.REQUIRED in levels:
        required = {each.code for each in findings if level_of(each) is EvidenceLevel.REQUIRED}
        return Status.BROKEN if required <= RULES else Status.ALARM
    if EvidenceLevel.UNDECIDED in levels:
        return Status.UNDECIDED
    if not complete:
        return Status.INCONCLUSIVE
    return Status.ONE_SOURCE if EvidenceLevel.ONE_SOURCE in levels else Status.PROVED


Texts = Mapping[int, str]  # by line, the text of an instruction


def compare_causes(before: Verdict, old: Texts, after: Verdict, new: Texts) -> Iterator[tuple[str, Finding]]:
    """Which causes went, stayed and came: one stays if a pair of its instructions is wrong in both, by their texts."""
    was, now = _list_ends(before, old), _list_ends(after, new)
    for finding, ends in was:
        stays = any(not ends.isdisjoint(others) for _, others in now)
        yield "stayed" if stays else "went", finding
    for finding, ends in now:
        if all(ends.isdisjoint(others) for _, others in was):
            yield "came", finding


def _list_ends(verdict: Verdict, texts: Texts) -> list[tuple[Finding, set[tuple[str, ...]]]]:
    found = zip(verdict.findings, verdict.pairs, strict=True)
    return [
        (finding, {(finding.code, *(texts.get(line, "") for line in pair)) for pair in pairs or [()]})
        for finding, pairs in found
        if level_of(finding) is not None
    ]
