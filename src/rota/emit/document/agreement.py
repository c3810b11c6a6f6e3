"""Do the parts of a schedule agree: takes one that was read, gives it with its certificate, or an error.

A document repeats itself: entries follow from the loop and its placement, blocks from the order, a certificate from the
entries.  Each could have been changed without the other, and what is emitted later trusts them.  So everything that
rota derives is derived again.  What only the author can know is held to the declared limits by the proof, and the rest
is names and reasons, on which nothing depends.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from rota.emit.document.derived_again import DerivedAgain, S
from rota.emit.document.disagreement import demand, disagreement
from rota.errors import Finding
from rota.program.entry import ARRIVE, AWAIT, BARRIER, Op, wait_op
from rota.program.kinds import OpKind
from rota.program.phase import Phase
from rota.verify.prove import verify
from rota.verify.report import Certificate, Report

if TYPE_CHECKING:
    from rota.sync.repair import Repair

_BARRIERS = {op.name: op for op in (BARRIER, ARRIVE, AWAIT)}
_OF_THE_PROOF = ("R", "V", "B", "L")
_TAKEN_OFF = "V108"  # says that there is no certificate, and so may stand where there is none


def check_agreement(front_end: DerivedAgain[S], schedule: S, terms: Certificate | None, said: Container[str]) -> S:
    """The schedule, with the certificate of a new proof if the document has the terms of one; else the first mistake.

    `said` are the fields that the document has.  Entries are checked before the proof, which takes them for granted.
    """
    _check_places(schedule)
    schedule = front_end.with_own_entries(schedule)
    schedule = replace(schedule, repairs=_own_repairs(front_end, schedule))
    schedule = front_end.completed(schedule, said)
    front_end.check_parts(schedule)
    if terms is None:  # what an earlier proof found is about an earlier schedule
        schedule = replace(schedule, findings=tuple(each for each in schedule.findings if not _of_a_proof(each)))
        _check_findings(front_end, schedule, ())
    else:
        report = verify(schedule)
        _check_terms(terms, report)
        _check_findings(front_end, schedule, report.findings)
        schedule = replace(schedule, certificate=report.certificate)
    return front_end.as_claimed(schedule)


def _check_places(schedule: S) -> None:
    for phase in Phase:
        for slot, entry in enumerate(schedule.phase(phase)):
            if entry.phase is not phase or entry.time_slot != slot:
                where = f"{phase.value.lower()}[{slot}]"
                raise disagreement(where, f"says that it is {entry.phase.at(entry.time_slot)}")


def _own_repairs(front_end: DerivedAgain[S], schedule: S) -> tuple[Repair, ...]:
    """What a repair put in stands where it says, and was a weaker wait, or nothing, before."""
    taken, own = set(), []
    for number, repair in enumerate(schedule.repairs):
        where, entries = f"repairs[{number}]", schedule.phase(repair.phase)
        if not 0 <= repair.slot < len(entries) or str(entries[repair.slot].op) != str(repair.op):
            raise disagreement(where, f"no {repair.op} stands at {repair.phase.at(repair.slot)}")
        if (repair.phase, repair.slot) in taken:
            raise disagreement(where, "another repair has the same place")
        taken.add((repair.phase, repair.slot))
        own.append(_own_repair(front_end, schedule, repair, where))
    return tuple(own)


def _own_repair(front_end: DerivedAgain[S], schedule: S, repair: Repair, where: str) -> Repair:
    """A repair in rota's own words: all that it says follows from the entry but what stood there before."""
    entry = schedule.phase(repair.phase)[repair.slot]
    waits = front_end.waits(schedule, entry)
    due: Op | None = wait_op(*waits) if waits else _BARRIERS.get(str(entry.op))
    if due is None or entry.op.kind not in (OpKind.WAIT, OpKind.BARRIER):
        raise disagreement(f"{where}.op", "a repair adds waits and barriers only")
    demand(f"{where}.op", repair.op, due, f"is not the {due} that stands there")
    if repair.before is None:
        demand(f"{where}.count_before", repair.count_before, 0)
        return replace(repair, op=due)
    weaker = waits is not None and repair.count_before > waits.tokens
    before = wait_op(waits.counter, repair.count_before) if waits is not None and weaker else None
    if repair.before != before:
        raise disagreement(f"{where}.before", f"{repair.before} can't have become {repair.op}")
    return replace(repair, op=due, before=before)


def _check_terms(terms: Certificate, report: Report) -> None:
    if report.certificate is None:
        first = report.errors[0]
        raise disagreement("certificate", f"the proof fails, {first.code}: {first.message}")
    for each in fields(Certificate):
        if each.compare:
            said, found = getattr(terms, each.name), getattr(report.certificate, each.name)
            demand(f"certificate.{each.name}", said, found, "the proof says something else")


def _check_findings(front_end: DerivedAgain[S], schedule: S, of_the_proof: Iterable[Finding]) -> None:
    """Those of the proof, and of the program's structure, are found again; the words may be another machine's."""
    codes = front_end.structure_codes
    said = _tally((each for each in schedule.findings if each.code in codes or _of_a_proof(each)), codes)
    found = _tally((*front_end.structure(schedule), *of_the_proof), codes)
    demand("findings", said, found, "are not those that are found again")


def _of_a_proof(finding: Finding) -> bool:
    return finding.code.startswith(_OF_THE_PROOF) and finding.code != _TAKEN_OFF


def _tally(findings: Iterable[Finding], structure: frozenset[str]) -> list[str]:
    # Of what the structure alone shows, the proof decides how bad it is.
    return sorted(
        finding.code if finding.code in structure else f"{finding.severity.value} {finding.code}"
        for finding in findings
    )
