"""Proof and repair of a compiled schedule: takes it as written, gives it certified, or an error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from rota.compiled.body_places import BodyPlaces
from rota.compiled.causes import helped
from rota.compiled.compiled_schedule import CompiledSchedule
from rota.errors import Finding, ProgramError, ProofError, Severity
from rota.verify.prove import verify
from rota.verify.report import Report

if TYPE_CHECKING:
    from rota.sync.repair import Repaired

_Compiled = TypeVar("_Compiled", bound=CompiledSchedule)

_NOT_MENDED_BY_WAITING = ("V", "B")
_DROPPED = ("P102", "P108", "P118")  # the proof is about what is issued, not about what was declared and is not
MOVED = frozenset({"P113", "P114", "P115"})
"""The codes of notes about ops that were moved, each a concern; one of them may explain a race."""

_NOT_SHOWN_MINIMAL = Finding(
    code="W102",
    severity=Severity.NOTE,
    message="the repair is proved, but its search ended before it was shown to be the smallest",
    fixes=("add the waits and barriers that you know are needed: the search is then smaller",),
)


def proved(written: _Compiled) -> _Compiled:
    """The schedule with its certificate; if the proof fails, the findings, with a repair where one was proved."""
    report = verify(written)
    if report.clean:
        return _certified(written, report)
    errors = _in_body(report.errors, written)
    try:
        better = mended(written)
    except ProgramError:  # what can't be repaired is wrong for the reasons that the proof gives
        raise _refused(errors, written) from None
    if verify(better).clean:
        errors = tuple(helped(errors, better))
    raise _refused(errors, written)


def repaired(written: _Compiled) -> _Compiled:
    """The schedule with what its proof needs added; wrong values can't be fixed by waiting and stay an error."""
    report = verify(written)
    if report.clean:
        return _certified(written, report)
    hopeless = [finding for finding in report.errors if finding.code.startswith(_NOT_MENDED_BY_WAITING)]
    if hopeless:
        raise _refused(_in_body(hopeless, written), written)
    try:
        better = mended(written)
    except ProgramError as error:
        raise _refused((*_in_body(report.errors, written), *error.findings), written) from None
    report = verify(better)
    if not report.clean:
        raise _refused(_in_body(report.errors, better), better)
    return _certified(better, report)


def certified(written: _Compiled) -> _Compiled | None:
    """The schedule with its certificate; None if it isn't proved as it stands."""
    report = verify(written)
    return _certified(written, report) if report.clean else None


def mended(written: _Compiled) -> _Compiled:
    """The schedule with its repairs, not proved yet."""
    from rota.sync.repair import repair  # loaded when something is missing, not with rota

    return applied(written, repair(written.lowered))


def applied(written: _Compiled, done: Repaired) -> _Compiled:
    """The schedule with waits and barriers added."""
    better = written.synchronised(done)
    return replace(better, findings=(*written.findings, _NOT_SHOWN_MINIMAL)) if done.cut_short else better


def _certified(compiled: _Compiled, report: Report) -> _Compiled:
    """What looks wrong by structure alone and was proved right is a warning; what was dropped stays an error."""
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


def _refused(errors: Sequence[Finding], compiled: CompiledSchedule) -> ProofError:
    """What is wrong with the structure, which is the cause; the errors that follow from it; then what may explain them.

    A note about moved ops may explain a race or a wrong value.
    """
    about_order = any(finding.code.startswith(("R", "V")) for finding in errors)
    causes = [each for each in compiled.findings if each.severity is Severity.ERROR]
    hints = [
        each for each in compiled.findings if each.severity is Severity.WARNING or (about_order and each.code in MOVED)
    ]
    return ProofError(*causes, *errors, *hints)
