from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rota.errors import Finding, OrderError
from rota.order.modulo.modulo_check import check_modulo_schedule
from rota.order.modulo.modulo_problem import ModuloProblem, ModuloProof, ModuloSchedule
from rota.order.modulo.scheduler import ModuloScheduler
from tests.order.modulo_problems import crossed, edge, on, op, problem
from tests.wording.golden import mentions, worded

CHAIN = problem([op("load", on("alu"), latency=5), op("mul", on("alu", 2))], [edge(0, 1), edge(1, 0, 1, 3)])
GOOD = ModuloScheduler().schedule(CHAIN)


def complaint(of: ModuloProblem, schedule: Any) -> Finding:
    with pytest.raises(OrderError) as caught:
        check_modulo_schedule(of, schedule)
    return worded(caught.value.findings[0])


def test_a_right_schedule_passes_in_silence() -> None:
    check_modulo_schedule(CHAIN, GOOD)


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        replace(GOOD, certificate=None),  # type: ignore[arg-type]
        replace(GOOD, ii=0),
        replace(GOOD, starts=(0,)),
        replace(GOOD, starts=(0, -1)),
        replace(GOOD, starts=[0, 5]),  # type: ignore[arg-type]
        replace(GOOD, starts=(0, "late")),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_schedule_is_said_so(wrong: Any) -> None:
    assert complaint(CHAIN, wrong).code == "O101"


def test_a_broken_edge_is_named_with_what_is_missing() -> None:
    finding = complaint(CHAIN, replace(GOOD, starts=(0, 4)))
    assert finding.code == "O102"
    assert mentions(finding.message, "mul", "load")
    assert [concern.index for concern in finding.concerns] == [0, 1]
    assert dict(finding.evidence)["missing slots"] == 1


def test_a_broken_carried_edge_is_named() -> None:
    assert mentions(complaint(CHAIN, replace(GOOD, starts=(0, 40))).message, "load", "mul")


def test_an_overfull_slot_is_named_around_the_end_of_the_loop() -> None:
    """At II 3 a hold of two slots from slot 2 on wraps into slot 0."""
    assert mentions(complaint(CHAIN, replace(GOOD, starts=(0, 8))).message, 2, "alu", "slot 0")


def test_a_use_longer_than_the_interval_meets_itself() -> None:
    finding = complaint(CHAIN, replace(GOOD, ii=1, starts=(0, 5)))
    assert finding.code == "O102"


@pytest.mark.parametrize(
    "claim",
    [
        {"proof": ModuloProof.MEETS_BOUND},
        {"proof": ModuloProof.REFUTED, "lower": 3, "refuted": ()},
        {"refuted": ()},
        {"lower": 5, "refuted": (3, 4)},
        {"lower": 2, "refuted": ()},
    ],
)
def test_a_certificate_may_not_claim_more_than_it_shows(claim: dict[str, Any]) -> None:
    schedule = ModuloScheduler().schedule(crossed())
    wrong = replace(schedule, certificate=replace(schedule.certificate, **claim))
    assert mentions(complaint(crossed(), wrong).message, "certificate", "II 4")


def test_equal_schedules_are_equal_however_long_they_took() -> None:
    slower = replace(GOOD, certificate=replace(GOOD.certificate, seconds=9.0))
    assert isinstance(slower, ModuloSchedule)
    assert slower == GOOD
