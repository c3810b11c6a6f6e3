from __future__ import annotations

from dataclasses import replace

from rota import OpDesc, OpRole, Phase, ScheduleEntry, verify
from rota.declare.effects import Action, Effect, Place, Space, Version
from rota.errors import Finding
from tests.findings.proofs import loop

REGISTER = Place(Space.REGISTER, 0, 0, 0)


def entry(slot: int, effect: Effect) -> ScheduleEntry:
    op = OpDesc(tag=5, subtile=slot, role=OpRole.VALU_COMPUTE)
    return ScheduleEntry(op=op, time_slot=slot, phase=Phase.KERNEL, effect=effect)


def make(iteration: int) -> Effect:
    version = Version("x", iteration)
    return Effect(
        action=Action.COMPUTE, writes=(REGISTER,), instance=Version("make", iteration), makes=((REGISTER, version),)
    )


def use(iteration: int, wanted: int) -> Effect:
    return Effect(
        action=Action.COMPUTE,
        reads=(REGISTER,),
        instance=Version("use", iteration),
        wants=((REGISTER, Version("x", wanted)),),
    )


def findings(code: str, *effects: Effect) -> list[Finding]:
    kernel = tuple(entry(slot, effect) for slot, effect in enumerate(effects))
    made = replace(loop(), kernel=kernel, trip_tiles=(1, 0))
    return [finding for finding in verify(made).errors if finding.code == code]


def test_an_op_that_finds_an_older_version_is_reported() -> None:
    (finding,) = findings("V106", use(-1, -1), make(-1))
    assert finding.evidence == (("due", "x of iteration 0"), ("found", "nothing"))


def test_the_right_order_is_fine() -> None:
    assert findings("V106", make(-1), use(-1, -1)) == []


def test_a_value_carried_from_the_iteration_before_is_fine() -> None:
    assert findings("V106", use(-1, -2), make(-1)) == []
