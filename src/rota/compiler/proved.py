"""Proof and repair of a compiled schedule: takes it as written, gives it certified, or an error."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rota.compiler.compiled import CompiledSchedule
from rota.errors import Finding, ProofError, Severity
from rota.graph.edge import DepEdge
from rota.verify.prove import verify
from rota.verify.report import Report

if TYPE_CHECKING:
    from rota.sync.repair import Repaired

_NOT_MENDED_BY_WAITING = ("V", "B")
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
    better = mended(written)
    fixes: tuple[str, ...] = ()
    if verify(better).clean:
        fixes = ('sync="repair" was proved: ' + ", ".join(change.change for change in better.repairs),)
    raise ProofError(*(_with_fixes(finding, fixes) for finding in report.errors))


def repaired(written: CompiledSchedule) -> CompiledSchedule:
    """The schedule with what its proof needs added; wrong values can't be mended by waiting and stay an error."""
    report = verify(written)
    if report.clean:
        return _certified(written, report)
    hopeless = [finding for finding in report.errors if finding.code.startswith(_NOT_MENDED_BY_WAITING)]
    if hopeless:
        raise ProofError(*hopeless)
    better = mended(written)
    report = verify(better)
    if not report.clean:
        raise ProofError(*report.errors)
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
    return replace(compiled, certificate=report.certificate, findings=(*compiled.findings, *report.findings))


def _with_fixes(finding: Finding, fixes: tuple[str, ...]) -> Finding:
    return replace(finding, fixes=(*finding.fixes, *fixes)) if finding.code.startswith(("R", "L")) else finding
