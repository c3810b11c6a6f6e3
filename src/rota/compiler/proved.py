"""Proof and repair of a compiled schedule: takes it as written, gives it certified, or an error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rota.compiler.causes import helped
from rota.compiler.compiled import CompiledSchedule
from rota.compiler.counts import uncounted_ops
from rota.compiler.places import BodyPlaces
from rota.errors import Finding, ProgramError, ProofError, Severity
from rota.graph.edge import DepEdge
from rota.program.moves import MOVED
from rota.verify.prove import verify
from rota.verify.report import Report

if TYPE_CHECKING:
    from rota.sync.repair import Repaired

_NOT_MENDED_BY_WAITING = ("V", "B")
_DROPPED = ("P102", "P108")  # the proof is about what is issued, not about what was declared and is not
_NOT_SHOWN_MINIMAL = Finding(
    code="W102",
    severity=Severity.NOTE,
    message="the repair is proved, but its search ended before it was shown to be the smallest",
    fixes=("put in waits and barriers that you know are needed: there is then less to look for",),
)


def proved(written: CompiledSchedule) -> CompiledSchedule:
    """The schedule with its certificate; if the proof fails, the findings, with a repair where one was proved."""
    report = verify(written)
    if report.clean:
        return _certified(written, report)
    errors = _in_body(report.errors, written)
    better = mended(written)
    if verify(better).clean:
        errors = tuple(helped(errors, better))
    raise _refused(errors, written)


def repaired(written: CompiledSchedule) -> CompiledSchedule:
    """The schedule with what its proof needs added; wrong values can't be mended by waiting and stay an error."""
    report = verify(written)
    if report.clean:
        return _certified(written, report)
    hopeless = [finding for finding in report.errors if finding.code.startswith(_NOT_MENDED_BY_WAITING)]
    if hopeless:
        raise _refused(_in_body(hopeless, written), written)
    better = mended(written)
    report = verify(better)
    if not report.clean:
        raise _refused(_in_body(report.errors, better), better)
    return _certified(better, report)


def mended(written: CompiledSchedule) -> CompiledSchedule:
    """The schedule with its repairs, not proved yet."""
    from rota.sync.repair import repair  # loaded when something is missing, not with rota

    return applied(written, repair(written, written.machine, compiler_waits=written.compiler_tracks_registers))


def applied(written: CompiledSchedule, done: Repaired) -> CompiledSchedule:
    """The schedule with waits and barriers put in."""
    return replace(
        written,
        prologue=done.prologue,
        kernel=done.kernel,
        epilogue=done.epilogue,
        kernel_deps=_moved(written, done.kernel_slots),
        warp_stagger_index=done.warp_stagger_index,
        repairs=done.repairs,
        findings=(*written.findings, _NOT_SHOWN_MINIMAL) if done.cut_short else written.findings,
    )


def _moved(written: CompiledSchedule, slots: tuple[int, ...]) -> tuple[DepEdge, ...]:
    """Kernel dependencies follow their entries; a single buffer's are those of its body."""
    if written.program is None:
        return written.kernel_deps
    return tuple(
        replace(dep, producer_idx=slots[dep.producer_idx], consumer_idx=slots[dep.consumer_idx])
        for dep in written.kernel_deps
    )


def _certified(compiled: CompiledSchedule, report: Report) -> CompiledSchedule:
    """What looks wrong by structure alone and was proved right is a warning; what was dropped stays an error."""
    dropped = [each for each in compiled.findings if each.severity is Severity.ERROR and each.code in _DROPPED]
    if dropped:
        raise ProgramError(*dropped)
    structure = (
        replace(each, severity=Severity.WARNING) if each.severity is Severity.ERROR else each
        for each in compiled.findings
    )
    counts = uncounted_ops(compiled, Severity.NOTE) if compiled.repairs else ()  # only a repair's waits are left
    return replace(compiled, certificate=report.certificate, findings=(*structure, *counts, *report.findings))


def _in_body(errors: Iterable[Finding], compiled: CompiledSchedule) -> tuple[Finding, ...]:
    places = BodyPlaces(compiled)
    return tuple(map(places.finding, errors))


def _refused(errors: Sequence[Finding], compiled: CompiledSchedule) -> ProofError:
    """The errors, and behind them whatever may explain them: suspicious structure, and ops that were moved."""
    about_order = any(finding.code.startswith(("R", "V")) for finding in errors)
    told = (
        each for each in compiled.findings if each.severity is not Severity.NOTE or (about_order and each.code in MOVED)
    )
    return ProofError(*errors, *told)
