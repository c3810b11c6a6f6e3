"""Do the parts of a schedule agree: takes one that was read, gives it with its certificate, or an error.

A document repeats itself: entries follow from the loop and its placement, blocks from the order, a certificate from the
entries.  Each could have been changed without the other, and what is emitted later trusts them.  So everything that
rota derives is derived again.  What only the author can know is held to the declared limits by the proof, and the rest
is names and reasons, on which nothing depends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, replace

from rota.compiler.compiled import CompiledSchedule
from rota.declare.op import OpDesc
from rota.declare.vocabulary import FrameworkTag, Phase
from rota.emit.by_stages_again import STRUCTURE, phases_by_stages, structure
from rota.emit.by_values_again import loop_by_values
from rota.emit.disagreement import Disagreement, differing
from rota.errors import Finding, did_you_mean
from rota.program.entry import ScheduleEntry
from rota.targets.machine import Machine
from rota.verify.prove import verify
from rota.verify.report import Certificate, Report

_FRAMEWORK_OPS: dict[FrameworkTag, Callable[[OpDesc], OpDesc]] = {
    FrameworkTag.BARRIER: lambda _: OpDesc.barrier(),
    FrameworkTag.WAIT_VM: lambda op: OpDesc.wait_vm(op.wait_value),
    FrameworkTag.WAIT_LGKM: lambda op: OpDesc.wait_lgkm(op.wait_value),
    FrameworkTag.SET_PRIO: lambda op: OpDesc.set_prio(op.wait_value),
    FrameworkTag.SCHEDULE_BARRIER: lambda _: OpDesc.schedule_barrier(),
    FrameworkTag.SCHED_GROUP_BARRIER: lambda op: OpDesc.sched_group_barrier(op.subtile, op.wait_value),
}
_OF_THE_PROOF = ("R", "V", "B", "L")
_TAKEN_OFF = "V108"  # says that there is no certificate, and so may stand where there is none

Phases = dict[Phase, tuple[ScheduleEntry, ...]]


def check_agreement(
    schedule: CompiledSchedule, terms: Certificate | None, machines: Sequence[Machine]
) -> CompiledSchedule:
    """The schedule, with the certificate of a new proof if the document has the terms of one; else the first mistake.

    Entries are looked at before their proof, which takes them for granted.
    """
    phases = {Phase.PROLOGUE: schedule.prologue, Phase.KERNEL: schedule.kernel, Phase.EPILOGUE: schedule.epilogue}
    by_kind = phases_by_stages if schedule.loop is None else loop_by_values
    for found in (
        _machine(schedule.machine, machines),
        _places(phases),
        _stagger(schedule),
        _repairs(schedule, phases),
        by_kind(schedule),
    ):
        for each in found:
            raise each.error()
    if terms is None:  # what an earlier proof found is about an earlier schedule
        schedule = replace(schedule, findings=tuple(each for each in schedule.findings if not _of_a_proof(each)))
    report = verify(schedule) if terms is not None else None
    for each in (*_proof(terms, report), *_findings(schedule, report)):
        raise each.error()
    return schedule if report is None else replace(schedule, certificate=report.certificate)


def _machine(said: Machine, machines: Sequence[Machine]) -> Iterator[Disagreement]:
    """A device is looked up, not believed."""
    known = {machine.name: machine for machine in machines}
    if said.name not in known:
        fixes = "; ".join(did_you_mean(said.name, known))
        yield Disagreement("machine.name", f"no machine is named {said.name!r:.60}; {fixes}")
        return
    for each in fields(Machine):
        yield from differing(f"machine.{each.name}", getattr(said, each.name), getattr(known[said.name], each.name))


def _places(phases: Phases) -> Iterator[Disagreement]:
    for phase, entries in phases.items():
        for slot, entry in enumerate(entries):
            where, op = f"{phase.value.lower()}[{slot}]", entry.op
            if entry.phase is not phase or entry.time_slot != slot:
                yield Disagreement(where, f"says that it is {entry.phase.value.lower()} #{entry.time_slot}")
            if entry.is_prefetch and not (phase is Phase.KERNEL and op.is_prefetch_load):
                yield Disagreement(f"{where}.is_prefetch", f"{op} fetches no tile ahead")
            if op.is_framework:
                yield from _ours(f"{where}.op", op)


def _ours(where: str, op: OpDesc) -> Iterator[Disagreement]:
    """An op of rota's own is what its tag and its numbers say."""
    if op.tag not in _FRAMEWORK_OPS:
        yield Disagreement(f"{where}.tag", f"{op.tag} is none of rota's own")
        return
    canonical = _FRAMEWORK_OPS[FrameworkTag(op.tag)](op)
    for each in fields(OpDesc):
        if each.compare:
            yield from differing(f"{where}.{each.name}", getattr(op, each.name), getattr(canonical, each.name))


def _stagger(schedule: CompiledSchedule) -> Iterator[Disagreement]:
    """Where group 1 falls back is one of the prologue's gaps; where no group does, the first place that is none."""
    never = len(schedule.prologue) + 1
    if not schedule.config.warp_stagger.enabled:
        yield from differing("warp_stagger_index", schedule.warp_stagger_index, never)
    elif not 0 <= schedule.warp_stagger_index < never:
        yield Disagreement(
            "warp_stagger_index", f"{schedule.warp_stagger_index} is no place in a prologue of {never - 1} entries"
        )


def _repairs(schedule: CompiledSchedule, phases: Phases) -> Iterator[Disagreement]:
    """What a repair put in stands where it says, and was a weaker wait, or nothing, before."""
    taken = set()
    for number, repair in enumerate(schedule.repairs):
        where, entries = f"repairs[{number}]", phases[repair.phase]
        if not 0 <= repair.slot < len(entries) or entries[repair.slot].op != repair.op:
            yield Disagreement(where, f"no {repair.op} stands at {repair.phase.value.lower()} #{repair.slot}")
        elif (repair.phase, repair.slot) in taken:
            yield Disagreement(where, "another repair has the same place")
        elif repair.before is not None and not _strengthened(repair.before, repair.op):
            yield Disagreement(f"{where}.before", f"{repair.before} can't have become {repair.op}")
        elif not repair.op.is_framework:
            yield Disagreement(f"{where}.op", "a repair adds waits and barriers only")
        taken.add((repair.phase, repair.slot))


def _strengthened(before: OpDesc, after: OpDesc) -> bool:
    waits = (FrameworkTag.WAIT_VM, FrameworkTag.WAIT_LGKM)
    return (
        after.tag in waits
        and before == after.but(wait_value=before.wait_value)
        and before.wait_value > after.wait_value
    )


def _proof(terms: Certificate | None, report: Report | None) -> Iterator[Disagreement]:
    if terms is None or report is None or report.certificate == terms:
        return
    if report.certificate is None:
        first = report.errors[0]
        yield Disagreement("certificate", f"the proof fails, {first.code}: {first.message}")
        return
    for each in fields(Certificate):
        if each.compare:
            said, found = getattr(terms, each.name), getattr(report.certificate, each.name)
            yield from differing(f"certificate.{each.name}", said, found, "the proof says something else")


def _findings(schedule: CompiledSchedule, report: Report | None) -> Iterator[Disagreement]:
    """Those of the proof, and of the program's structure, are found again; the words may be another machine's."""
    due = [*structure(schedule), *(report.findings if report is not None else ())]
    said = _tally(each for each in schedule.findings if each.code in STRUCTURE or _of_a_proof(each))
    yield from differing("findings", said, _tally(due), "are not those that are found again")


def _of_a_proof(finding: Finding) -> bool:
    return finding.code.startswith(_OF_THE_PROOF) and finding.code != _TAKEN_OFF


def _tally(findings: Iterable[Finding]) -> list[str]:
    return sorted(f"{finding.severity.value} {finding.code}" for finding in findings)
