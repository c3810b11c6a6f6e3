from __future__ import annotations

from dataclasses import replace

import pytest

from rota import DeclarativeSchedule, Phase, ProgramError, compile_schedule
from rota.program.entry import WORKGROUP, Effect
from rota.program.kinds import OpKind
from rota.program.lowered import Barrier
from rota.sync.repair import repair
from tests.programs.edits import changed

BARRIERS = (Barrier(WORKGROUP, (0,), (0,)), Barrier("full", (0,), (0,)))


@pytest.mark.parametrize(
    "changes", [{"roles": (0,)}, {"effect": Effect(kind=OpKind.BARRIER, arrives="full")}], ids=["alone", "named"]
)
def test_roles_that_differ_are_not_repaired(changes: dict[str, object]) -> None:
    program = compile_schedule(DeclarativeSchedule()).lowered
    load = next(n for n, entry in enumerate(program.kernel) if entry.op.kind.asynchronous)
    with pytest.raises(ProgramError) as caught:
        repair(changed(replace(program, barriers=BARRIERS), Phase.KERNEL, load, **changes))
    (finding,) = caught.value.findings
    assert finding.code == "W103"
    assert finding.concerns[0].index == load
