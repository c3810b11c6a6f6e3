from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from rota import CompiledSchedule, DeclarativeSchedule, Phase, compile_loop, compile_schedule, verify
from rota.program.entry import MEETS, NOTHING_DECLARED, Effect, Entry, Op, Version, wait_op
from rota.program.kinds import OpKind
from tests.findings.test_L106 import gemm
from tests.programs.edits import with_entry

EDITS: dict[str, tuple[str, Callable[[Effect], Effect]]] = {
    "an operand left out": ("mma_c", lambda e: replace(e, reads=(), wants=())),
    "an operand that is wanted but not read": ("mma_c", lambda e: replace(e, reads=())),
    "an older version": (
        "mma_c",
        lambda e: replace(e, wants=tuple((p, Version(v.name, v.iteration - 1)) for p, v in e.wants)),
    ),
    "another place": ("mma_c", lambda e: replace(e, reads=(e.reads[0]._replace(name="q"),) * 2)),
    "fewer tokens": ("load_A", lambda e: replace(e, tokens=0)),
    "another counter": ("load_A", lambda e: replace(e, counter="lgkmcnt")),
    "another kind": ("read_a", lambda e: replace(e, kind=OpKind.MMA)),
    "nothing written": ("read_a", lambda e: replace(e, writes=(), makes=())),
    "another sum": ("mma_c", lambda e: replace(e, writes=(e.writes[0]._replace(copy=9),))),
    "no op": ("mma_c", lambda e: replace(e, instance=NOTHING_DECLARED)),
    "an unknown op": ("mma_c", lambda e: replace(e, instance=Version("mma_d", 0))),
    "does nothing": ("mma_c", lambda e: replace(e, kind=OpKind.NOTHING)),
}


@pytest.fixture(scope="module")
def compiled() -> CompiledSchedule:
    return compile_loop(gemm())


@pytest.mark.parametrize("name", EDITS)
def test_an_entry_that_does_something_else_than_its_op_is_reported(compiled: CompiledSchedule, name: str) -> None:
    label, edit = EDITS[name]
    kernel = tuple(
        replace(entry, effect=edit(entry.effect)) if entry.op.name == label else entry for entry in compiled.kernel
    )
    assert verify(compiled).clean
    edited = verify(replace(compiled, kernel=kernel, certificate=None))
    assert "V110" in {finding.code for finding in edited.errors}


@pytest.mark.parametrize(
    ("op", "effect"),
    [
        (Op(kind=OpKind.PRIORITY, name="set_prio(1)"), MEETS),
        (wait_op("vmcnt", 7), Effect(kind=OpKind.WAIT, counter="vmcnt", wait_value=0)),
        (Op(kind=OpKind.FENCE, name="schedule_barrier"), Effect(kind=OpKind.WAIT, counter="lgkmcnt", wait_value=0)),
    ],
)
def test_what_an_entry_claims_is_not_believed(compiled: CompiledSchedule, op: Op, effect: Effect) -> None:
    """Listings and messages name the op, source is written from the effect: they must be one thing."""
    for proved in (compiled, compile_schedule(DeclarativeSchedule())):
        place = len(proved.lowered.kernel)
        stranger = Entry(op=op, effect=effect, time_slot=place, phase=Phase.KERNEL)
        edited = with_entry(proved, Phase.KERNEL, place, stranger)
        assert "V110" in {each.code for each in verify(edited).errors}
