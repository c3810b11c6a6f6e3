"""Proof and repair of a compiled schedule.

`proved` attaches a certificate or raises the findings; `repaired` first adds the waits and barriers that the proof
needs. Findings about entries are restated in the author's terms: ops of the body, by number and line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, TypeVar

from rota.compiled.compiled_schedule import CompiledSchedule
from rota.errors import Concern, Finding, ProgramError, ProofError, Severity
from rota.program.entry import Entry, Op
from rota.program.kinds import Phase
from rota.program.lowered import LoweredProgram, name_phases
from rota.verify.prove import verify
from rota.verify.report import Report

if TYPE_CHECKING:
    from rota.sync.repair import Repair, Repaired

# Findings in the author's terms.
#
# An author writes a body; how its ops are numbered among the waits and barriers of three phases is internal to
# rota.

_ENTRY = re.compile(rf"at ({'|'.join(phase.value.lower() for phase in Phase)})\[(\d+)\]")


class BodyPlaces:
    """Maps entries of a schedule, or of a program made from it, to ops of the author's body."""

    def __init__(self, compiled: CompiledSchedule, program: LoweredProgram | None = None) -> None:
        lowered = program or compiled.lowered
        self._index = compiled.body_index()
        self._phases = {
            phase.value.lower(): [entry for entry in lowered.phase(phase) if entry.listed] for phase in Phase
        }

    def finding(self, finding: Finding) -> Finding:
        return replace(
            finding,
            concerns=tuple(map(self.concern, finding.concerns)),
            evidence=tuple(
                (name, _ENTRY.sub(self._in_words, text) if isinstance(text, str) else text)
                for name, text in finding.evidence
            ),
        )

    def change(self, repair: Repair) -> str:
        """What a repair does, and next to which op of the body."""
        what = f"{repair.op} for {repair.before}" if repair.before else str(repair.op)
        return f"{what} {self._near(repair.phase.value.lower(), repair.slot)}"

    def concern(self, concern: Concern) -> Concern:
        """One end, numbered as in the body; an entry that is no op of the body is named by its neighbour."""
        entries = self._phases.get(concern.phase, ())
        if concern.index is None or concern.index >= len(entries) or str(entries[concern.index].op) != concern.label:
            return concern  # the stagger's own barriers, or none of the entries
        index = self.index(entries[concern.index].op)
        if index is not None:
            return replace(concern, index=index, phase="")
        return replace(
            concern, index=None, phase="", role=f"{concern.role} ({self._near(concern.phase, concern.index)})"
        )

    def _in_words(self, found: re.Match[str]) -> str:
        return self._near(found[1], int(found[2]))

    def _near(self, phase: str, slot: int) -> str:
        """The next op of the body, or the last one if none follows."""
        entries = self._phases[phase]
        for entry in entries[slot:]:
            if (index := self.index(entry.op)) is not None:
                return f"in the {phase} in front of {entry.op} (#{index})"
        for entry in reversed(entries[:slot]):
            if (index := self.index(entry.op)) is not None:
                return f"in the {phase} after {entry.op} (#{index})"
        return f"in the {phase}"

    def index(self, op: Op) -> int | None:
        return self._index(op.declared)


# One help per cause.
#
# Errors that come back together when one repair is left out have one cause: what that repair added.

_MOST_REPAIRS = 16  # each costs a proof; beyond, one help serves all errors


def group_errors(errors: Sequence[Finding], better: CompiledSchedule) -> Iterator[Finding]:
    """The errors, grouped by what they lack; the first of each group says what fixes them all."""
    places = BodyPlaces(better)
    every = frozenset(range(len(better.repairs)))
    lacks: dict[tuple[object, ...], set[int]] = {}
    for number in every if len(every) <= _MOST_REPAIRS else ():
        worse = without_repair(better, better.repairs[number])
        seen = BodyPlaces(better, worse)
        for finding in verify(worse).errors:
            lacks.setdefault(_identity(seen.finding(finding)), set()).add(number)
    groups: dict[frozenset[int], list[Finding]] = {}
    for finding in errors:
        lacking = frozenset(lacks.get(_identity(finding), every))
        # What lacks a part of what another lacks has the same cause.
        wider = max((set_ for set_ in map(frozenset, lacks.values()) if lacking <= set_), key=len, default=lacking)
        groups.setdefault(wider, []).append(finding)
    for lacking, (first, *others) in groups.items():
        changes = "; ".join(places.change(better.repairs[number]) for number in sorted(lacking))
        scope = "this" if not others else f"this and the next {len(others)}" if others[1:] else "this and the next"
        yield replace(first, fixes=(*first.fixes, f'sync="repair" fixes {scope}, and was proved: {changes}'))
        yield from others


def _identity(finding: Finding) -> tuple[object, ...]:
    """What a finding is about, whatever epoch it was seen in."""
    return (finding.code, *((end.label, end.index, end.role.split(",")[0]) for end in finding.concerns))


def without_repair(better: CompiledSchedule, repair: Repair) -> LoweredProgram:
    program = better.lowered
    entries = list(program.phase(repair.phase))
    place = next(n for n, entry in enumerate(entries) if entry.listed and entry.time_slot == repair.slot)
    entries[place : place + 1] = () if repair.before is None else (repair.taken_back(entries[place]),)
    return program.with_phases({repair.phase: entries})


_Compiled = TypeVar("_Compiled", bound=CompiledSchedule)

_NOT_MENDED_BY_WAITING = ("V", "B")
_DROPPED = ("P102", "P108", "P118")  # the proof is about what is issued, not about what was declared and is not
MOVED = frozenset({"P113", "P114", "P115"})
"""The codes of notes about ops that were moved, each a concern; one of them may explain a race."""

_NOT_SHOWN_MINIMAL = Finding(
    "W102",
    "the repair is proved, but its search ended before it was shown to be the smallest",
    severity=Severity.NOTE,
    fixes=("add the waits and barriers that you know are needed: the search is then smaller",),
)


def proved(written: _Compiled) -> _Compiled:
    """The schedule with its certificate, or an error with the findings and a repair that was proved."""
    report = verify(written)
    if report.clean:
        return _attach_certificate(written, report)
    errors = _in_body(report.errors, written)
    try:
        better = add_repairs(written)
    except ProgramError:  # what can't be repaired is wrong for the reasons that the proof gives
        raise _order_findings(errors, written) from None
    if verify(better).clean:
        errors = tuple(group_errors(errors, better))
    raise _order_findings(errors, written)


def repaired(written: _Compiled) -> _Compiled:
    """The schedule with what its proof needs added; wrong values stay an error, since no wait can fix them."""
    report = verify(written)
    if report.clean:
        return _attach_certificate(written, report)
    hopeless = [finding for finding in report.errors if finding.code.startswith(_NOT_MENDED_BY_WAITING)]
    if hopeless:
        raise _order_findings(_in_body(hopeless, written), written)
    try:
        better = add_repairs(written)
    except ProgramError as error:
        raise _order_findings((*_in_body(report.errors, written), *error.findings), written) from None
    report = verify(better)
    if not report.clean:
        raise _order_findings(_in_body(report.errors, better), better)
    return _attach_certificate(better, report)


def certify(written: _Compiled) -> _Compiled | None:
    """The schedule with its certificate; None if it isn't proved as it is."""
    report = verify(written)
    return _attach_certificate(written, report) if report.clean else None


def add_repairs(written: _Compiled) -> _Compiled:
    """The schedule with its repairs, not proved yet."""
    from rota.sync.repair import repair  # loaded when something is missing, not with rota

    return apply_repairs(written, repair(written.lowered))


def apply_repairs(written: _Compiled, done: Repaired) -> _Compiled:
    better = written.synchronised(done)
    return replace(better, findings=(*written.findings, _NOT_SHOWN_MINIMAL)) if done.cut_short else better


def _attach_certificate(compiled: _Compiled, report: Report) -> _Compiled:
    """Turn structural errors into warnings where the proof shows that they are harmless; dropped ops stay errors."""
    dropped = [each for each in compiled.findings if each.severity is Severity.ERROR and each.code in _DROPPED]
    if dropped:
        raise ProgramError(*dropped)
    structure = (
        replace(each, severity=Severity.WARNING) if each.severity is Severity.ERROR else each
        for each in compiled.findings
    )
    counts = compiled.uncounted(noted=True) if compiled.repairs else ()  # only a repair's waits are left
    return replace(compiled, certificate=report.certificate, findings=(*structure, *counts, *report.findings))


def _in_body(errors: Iterable[Finding], compiled: CompiledSchedule) -> tuple[Finding, ...]:
    places = BodyPlaces(compiled)
    return tuple(map(places.finding, errors))


def _order_findings(errors: Sequence[Finding], compiled: CompiledSchedule) -> ProofError:
    """Order the findings: structural causes, then what follows from them, then notes that may explain them."""
    about_order = any(finding.code.startswith(("R", "V")) for finding in errors)
    causes = [each for each in compiled.findings if each.severity is Severity.ERROR]
    hints = [
        each for each in compiled.findings if each.severity is Severity.WARNING or (about_order and each.code in MOVED)
    ]
    return ProofError(*causes, *errors, *hints)


# A program supplied lowered.
#
# A front end that lowers its loops itself needs no class of its own for the result.


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CompiledProgram(CompiledSchedule):
    """A lowered program as its maker `given` it; its phases hold all entries, unlisted ones too."""

    prologue: tuple[Entry, ...]
    kernel: tuple[Entry, ...]
    epilogue: tuple[Entry, ...]
    given: LoweredProgram

    @classmethod
    def of(cls, program: LoweredProgram) -> Self:
        return cls(
            name=program.name,
            prologue=program.prologue,
            kernel=program.kernel,
            epilogue=program.epilogue,
            machine=program.machine,
            lds_bytes=program.lds_bytes,
            compiler_tracks_registers=program.compiler_tracks_registers,
            reentrant=program.reentrant,
            given=program,
        )

    @property
    def op_count(self) -> int:
        return sum(not entry.op.is_framework for entry in self.kernel)

    @property
    def registers(self) -> int | None:
        return self.given.registers

    @property
    def register_limit(self) -> int:
        """What the program states, or else all registers of a lane."""
        return self.given.register_limit or self.machine.vgprs_per_lane.value

    @property
    def quality(self) -> str:
        """Where the program comes from: nothing is known about its order."""
        return self.given.origin or "lowered by its author"

    def _lower(self) -> LoweredProgram:
        return replace(
            self.given,
            name=self.name,
            machine=self.machine,
            prologue=self.prologue,
            kernel=self.kernel,
            epilogue=self.epilogue,
            lds_bytes=self.lds_bytes,
            compiler_tracks_registers=self.compiler_tracks_registers,
            reentrant=self.reentrant,
        )

    def synchronised(self, done: Repaired) -> Self:
        return replace(self, **name_phases(done.phases), repairs=done.repairs)
