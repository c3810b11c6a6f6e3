from __future__ import annotations

from rota import verify
from rota.errors import Finding
from rota.program.entry import Effect, Place, Space, Version
from rota.program.kinds import Home, OpKind
from rota.program.loop_spec import LoopOp, LoopSpec, Read, Value
from tests.programs.tiny import tiny
from tests.wording.golden import worded

REGISTER = Place(Space.REGISTER, "x")
SUM = Place(Space.ACCUMULATOR, "c")


def make(iteration: int) -> Effect:
    version = Version("x", iteration)
    return Effect(
        kind=OpKind.VALU, writes=(REGISTER,), instance=Version("make", iteration), makes=((REGISTER, version),)
    )


def use(iteration: int, wanted: int) -> Effect:
    return Effect(
        kind=OpKind.VALU,
        reads=(REGISTER,),
        writes=(SUM,),
        instance=Version("use", iteration),
        wants=((REGISTER, Version("x", wanted)),),
    )


def spec(distance: int) -> LoopSpec:
    """A value and a sum of it, or of the one `distance` iterations before."""
    return LoopSpec(
        name="tiny",
        waves=4,
        values=(Value(name="x", home=Home.REGISTERS, size=1), Value(name="c", home=Home.ACCUMULATOR, size=1)),
        ops=(
            LoopOp(name="make", kind=OpKind.VALU, writes=("x",)),
            LoopOp(name="use", kind=OpKind.VALU, reads=(Read(value="x", distance=distance),), writes=("c",)),
        ),
    )


def findings(code: str, *effects: Effect, distance: int = 0) -> list[Finding]:
    return [worded(finding) for finding in verify(tiny(spec(distance), effects)).errors if finding.code == code]


def test_an_op_that_finds_an_older_version_is_reported() -> None:
    (finding,) = findings("V106", use(-1, -1), make(-1))
    assert finding.evidence == (("due", "x of iteration 0"), ("found", "nothing"))


def test_the_right_order_is_fine() -> None:
    assert findings("V106", make(-1), use(-1, -1)) == []


def test_a_value_carried_from_the_iteration_before_is_fine() -> None:
    assert findings("V106", use(-1, -2), make(-1), distance=1) == []


def test_an_initial_value_that_is_overwritten_before_it_is_read_is_reported() -> None:
    (finding, *_) = findings("V106", make(-1), use(-1, -2), distance=1)
    assert finding.evidence == (("due", "x of iteration -1"), ("found", "x of iteration 0"))


def test_a_place_has_one_initial_value() -> None:
    """Iterations 0 and 1 want two initial versions of the same register: one of them can't be there."""
    found = findings("V106", use(-1, -3), make(-1), distance=2)
    assert [dict(each.evidence)["due"] for each in found] == ["x of iteration -1"]
