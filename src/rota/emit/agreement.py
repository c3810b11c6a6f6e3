"""Do the parts of a schedule agree: takes one that was read, gives it with its certificate, or an error.

A document repeats itself: entries follow from the loop and its placement, blocks from the order, a certificate from the
entries.  Each could have been changed without the other, and what is emitted later trusts them.  So everything that
rota derives is derived again.  What only the author can know is held to the declared limits by the proof, and the rest
is names and reasons, on which nothing depends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace

from rota.compiler.compiled import CompiledSchedule
from rota.declare.op import OpDesc
from rota.declare.vocabulary import FrameworkTag, Phase
from rota.emit.by_stages_again import STRUCTURE, check_stages, structure
from rota.emit.by_values_again import check_values
from rota.emit.disagreement import demand, disagreement
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
    phases = {phase: schedule.phase(phase) for phase in Phase}
    _check_machine(schedule.machine, machines)
    _check_places(phases)
    _check_stagger(schedule)
    _check_repairs(schedule, phases)
    if schedule.loop is None:
        check_stages(schedule)
    else:
        check_values(schedule, schedule.loop)
    if terms is None:  # what an earlier proof found is about an earlier schedule
        schedule = replace(schedule, findings=tuple(each for each in schedule.findings if not _of_a_proof(each)))
        _check_findings(schedule, ())
        return schedule
    report = verify(schedule)
    _check_terms(terms, report)
    _check_findings(schedule, report.findings)
    return replace(schedule, certificate=report.certificate)


def _check_machine(said: Machine, machines: Sequence[Machine]) -> None:
    """A device is looked up, not believed; how far its counter is trusted is the author's own choice."""
    known = {machine.name: machine for machine in machines}
    if said.name not in known:
        fixes = "; ".join(did_you_mean(said.name, known))
        raise disagreement("machine.name", f"no machine is named {said.name!r:.60}; {fixes}")
    for each in (each for each in fields(Machine) if each.name != "vmcnt_in_order"):
        demand(f"machine.{each.name}", getattr(said, each.name), getattr(known[said.name], each.name))


def _check_places(phases: Phases) -> None:
    for phase, entries in phases.items():
        for slot, entry in enumerate(entries):
            where, op = f"{phase.value.lower()}[{slot}]", entry.op
            if entry.phase is not phase or entry.time_slot != slot:
                raise disagreement(where, f"says that it is {entry.phase.value.lower()} #{entry.time_slot}")
            if entry.is_prefetch and not (phase is Phase.KERNEL and op.is_prefetch_load):
                raise disagreement(f"{where}.is_prefetch", f"{op} fetches no tile ahead")
            if op.is_framework:
                _check_ours(f"{where}.op", op)


def _check_ours(where: str, op: OpDesc) -> None:
    """An op of rota's own is what its tag and its numbers say."""
    if op.tag not in _FRAMEWORK_OPS:
        raise disagreement(f"{where}.tag", f"{op.tag} is none of rota's own")
    canonical = _FRAMEWORK_OPS[FrameworkTag(op.tag)](op)
    for each in fields(OpDesc):
        if each.compare:
            demand(f"{where}.{each.name}", getattr(op, each.name), getattr(canonical, each.name))


def _check_stagger(schedule: CompiledSchedule) -> None:
    """Where group 1 falls back is one of the prologue's gaps; where no group does, the first place that is none."""
    never = len(schedule.prologue) + 1
    if not schedule.config.warp_stagger.enabled:
        demand("warp_stagger_index", schedule.warp_stagger_index, never)
    elif not 0 <= schedule.warp_stagger_index < never:
        raise disagreement(
            "warp_stagger_index", f"{schedule.warp_stagger_index} is no place in a prologue of {never - 1} entries"
        )


def _check_repairs(schedule: CompiledSchedule, phases: Phases) -> None:
    """What a repair put in stands where it says, and was a weaker wait, or nothing, before."""
    taken = set()
    for number, repair in enumerate(schedule.repairs):
        where, entries = f"repairs[{number}]", phases[repair.phase]
        if not 0 <= repair.slot < len(entries) or entries[repair.slot].op != repair.op:
            raise disagreement(where, f"no {repair.op} stands at {repair.phase.value.lower()} #{repair.slot}")
        if (repair.phase, repair.slot) in taken:
            raise disagreement(where, "another repair has the same place")
        if repair.before is not None and not _strengthened(repair.before, repair.op):
            raise disagreement(f"{where}.before", f"{repair.before} can't have become {repair.op}")
        if not repair.op.is_framework:
            raise disagreement(f"{where}.op", "a repair adds waits and barriers only")
        taken.add((repair.phase, repair.slot))


def _strengthened(before: OpDesc, after: OpDesc) -> bool:
    waits = (FrameworkTag.WAIT_VM, FrameworkTag.WAIT_LGKM)
    return (
        after.tag in waits
        and before == after.but(wait_value=before.wait_value)
        and before.wait_value > after.wait_value
    )


def _check_terms(terms: Certificate, report: Report) -> None:
    if report.certificate is None:
        first = report.errors[0]
        raise disagreement("certificate", f"the proof fails, {first.code}: {first.message}")
    for each in fields(Certificate):
        if each.compare:
            said, found = getattr(terms, each.name), getattr(report.certificate, each.name)
            demand(f"certificate.{each.name}", said, found, "the proof says something else")


def _check_findings(schedule: CompiledSchedule, of_the_proof: Iterable[Finding]) -> None:
    """Those of the proof, and of the program's structure, are found again; the words may be another machine's."""
    said = _tally(each for each in schedule.findings if each.code in STRUCTURE or _of_a_proof(each))
    demand("findings", said, _tally((*structure(schedule), *of_the_proof)), "are not those that are found again")


def _of_a_proof(finding: Finding) -> bool:
    return finding.code.startswith(_OF_THE_PROOF) and finding.code != _TAKEN_OFF


def _tally(findings: Iterable[Finding]) -> list[str]:
    # Of what the structure alone shows, the proof decides how bad it is.
    return sorted(
        finding.code if finding.code in STRUCTURE else f"{finding.severity.value} {finding.code}"
        for finding in findings
    )
