from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rota import CompiledSchedule, DeclarativeSchedule, OpDesc, compile_loop, compile_schedule, verify
from rota.declare.effects import Action, Counter, Effect, Version
from tests.findings.test_L106 import gemm

EDITS: dict[str, tuple[str, Callable[[Effect], Effect]]] = {
    "an operand left out": ("mma_c", lambda e: replace(e, reads=(), wants=())),
    "an operand that is wanted but not read": ("mma_c", lambda e: replace(e, reads=())),
    "an older version": (
        "mma_c",
        lambda e: replace(e, wants=tuple((p, Version(v.name, v.iteration - 1)) for p, v in e.wants)),
    ),
    "another place": ("mma_c", lambda e: replace(e, reads=(e.reads[0]._replace(channel=7),) * 2)),
    "fewer tokens": ("load_A", lambda e: replace(e, tokens=0)),
    "another counter": ("load_A", lambda e: replace(e, counter=Counter.LGKM)),
    "another kind": ("read_a", lambda e: replace(e, action=Action.COMPUTE)),
    "nothing written": ("read_a", lambda e: replace(e, writes=(), makes=())),
    "another sum": ("mma_c", lambda e: replace(e, writes=(e.writes[0]._replace(stage=9),))),
    "no op": ("mma_c", lambda e: replace(e, instance=None)),
    "an unknown op": ("mma_c", lambda e: replace(e, instance=Version("mma_d", 0))),
    "does nothing": ("mma_c", lambda e: replace(e, action=Action.NOTHING)),
}


@pytest.fixture(scope="module")
def compiled() -> CompiledSchedule:
    return compile_loop(gemm())


@pytest.mark.parametrize("name", EDITS)
def test_an_entry_that_does_something_else_than_its_op_is_reported(compiled: CompiledSchedule, name: str) -> None:
    label, edit = EDITS[name]
    kernel = tuple(
        replace(entry, effect=edit(entry.effect)) if entry.effect and entry.op.label == label else entry
        for entry in compiled.kernel
    )
    assert verify(compiled).clean
    edited = verify(replace(compiled, kernel=kernel, certificate=None))
    assert "V110" in {finding.code for finding in edited.errors}


@pytest.mark.parametrize(
    ("op", "effect"),
    [
        (OpDesc.set_prio(1), Effect(action=Action.BARRIER)),
        (OpDesc.wait_vm(7), Effect(action=Action.WAIT, counter=Counter.VM, wait_value=0)),
        (OpDesc.schedule_barrier(), Effect(action=Action.WAIT, counter=Counter.LGKM, wait_value=0)),
    ],
)
def test_what_an_entry_claims_is_not_believed(compiled: CompiledSchedule, op: OpDesc, effect: Effect) -> None:
    """Source is written from the op."""
    for proved in (compiled, compile_schedule(DeclarativeSchedule())):
        stranger = replace(proved.kernel[-1], op=op, effect=effect)
        edited = replace(proved, kernel=(*proved.kernel, stranger), certificate=None)
        assert "V110" in {each.code for each in verify(edited).errors}


def test_an_entry_is_written_as_the_op_that_it_stands_for(compiled: CompiledSchedule) -> None:
    kernel = tuple(replace(entry, op=replace(entry.op, subtile=0)) for entry in compiled.kernel)
    assert "V110" in {each.code for each in verify(replace(compiled, kernel=kernel, certificate=None)).errors}


def test_entries_of_a_loop_that_nobody_declared_are_reported(compiled: CompiledSchedule) -> None:
    assert "V110" in {each.code for each in verify(replace(compiled, loop=None, certificate=None)).errors}
