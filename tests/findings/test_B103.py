from __future__ import annotations

import pytest

from rota import DeclarativeSchedule, Phase, ProgramError, compile_schedule
from rota.program.entry import ARRIVE, AWAIT, BARRIER, MEETS, WORKGROUP, Effect, Entry, Op
from rota.program.kinds import OpKind
from rota.program.lowered import Barrier, Role, merged
from tests.findings.proofs import found
from tests.programs.edits import with_entry

WAIT = Entry(op=AWAIT, effect=Effect(kind=OpKind.BARRIER, awaits=WORKGROUP), time_slot=0, phase=Phase.PROLOGUE)
COME = Entry(op=ARRIVE, effect=Effect(kind=OpKind.BARRIER, arrives=WORKGROUP), time_slot=0, phase=Phase.PROLOGUE)
ROLES = (Role("first"), Role("second"))


def at(name: str, *, arrives: bool = False) -> Entry:
    """One role waits, or arrives, at a barrier."""
    effect = Effect(kind=OpKind.BARRIER, arrives=name if arrives else None, awaits=None if arrives else name)
    return Entry(op=Op(kind=OpKind.BARRIER, name=name), effect=effect, time_slot=0, phase=Phase.KERNEL)


def test_a_role_that_waits_for_itself_is_reported() -> None:
    program = compile_schedule(DeclarativeSchedule()).lowered
    early = with_entry(with_entry(program, Phase.PROLOGUE, 0, COME), Phase.PROLOGUE, 0, WAIT)
    found("B103", early, times=None)
    late = with_entry(with_entry(program, Phase.PROLOGUE, 0, WAIT), Phase.PROLOGUE, 0, COME)
    found("B103", late, times=0)


def test_roles_that_wait_for_each_other_have_no_order() -> None:
    barriers = (Barrier("a", (0,), (1,)), Barrier("b", (1,), (0,)))
    with pytest.raises(ProgramError) as caught:
        merged(ROLES, barriers, {Phase.KERNEL: ([at("b"), at("a", arrives=True)], [at("a"), at("b", arrives=True)])})
    (finding,) = caught.value.findings
    assert (finding.code, finding.evidence) == ("B103", (("first", "b"), ("second", "a")))


def test_an_order_keeps_that_of_each_role_and_arrivals_first() -> None:
    barriers = (Barrier("a", (0,), (1,)), Barrier("b", (1,), (0,)))
    lists = ([at("a", arrives=True), at("b")], [at("a"), at("b", arrives=True)])
    order = merged(ROLES, barriers, {Phase.KERNEL: lists})[Phase.KERNEL]
    assert [(entry.roles, entry.effect.arrives, entry.effect.awaits, entry.time_slot) for entry in order] == [
        ((0,), "a", None, 0),
        ((1,), None, "a", 1),
        ((1,), "b", None, 2),
        ((0,), None, "b", 3),
    ]


def test_where_all_meet_they_meet_at_once() -> None:
    barrier = Entry(op=BARRIER, effect=MEETS, time_slot=0, phase=Phase.KERNEL)
    everyone = (Barrier(WORKGROUP, (0, 1), (0, 1)),)
    order = merged(ROLES, everyone, {Phase.KERNEL: ([barrier], [barrier])})[Phase.KERNEL]
    assert [entry.roles for entry in order] == [(0, 1)]
