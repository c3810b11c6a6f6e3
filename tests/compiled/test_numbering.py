"""One numbering: `#5` is the body's op of that number, `kernel[5]` the entry at that slot of the kernel."""

from __future__ import annotations

import re

import pytest

from rota import DeclarativeSchedule, PipelineSchedule, ProofError, ScheduleConfig, compile_schedule
from tests.programs.ported import Plain, Rotating

_NUMBERED = re.compile(r"(\w+(?: s\d t\d(?: k\d)?|\[\d,\d\])) \(#(\d+)\)")
_PLACED = re.compile(r"(\S+(?: s\d t\d(?: k\w+)?)?) \((prologue|kernel|epilogue)\[(\d+)\]\)")


@pytest.mark.parametrize(
    "schedule",
    [
        Rotating(),
        Rotating(auto_waits=False),
        Plain(minimal_barriers=True),
        DeclarativeSchedule(ScheduleConfig(lgkm_per_load_a=8, lgkm_per_load_b=4, minimal_barriers=True)),
    ],
    ids=["rotating", "manual waits", "minimal", "ping-pong"],
)
def test_a_number_names_the_same_op_in_every_message(schedule: PipelineSchedule) -> None:
    with pytest.raises(ProofError) as caught:
        compile_schedule(schedule, sync="strict")
    body = [str(op) for op in schedule.build_body()]
    seen = 0
    for finding in caught.value.findings:
        for end in finding.concerns:
            if end.index is not None:
                assert not end.phase
                assert end.number == f"#{end.index}"
                assert body[end.index] == end.label
                seen += 1
        for label, number in _NUMBERED.findall(str(finding)):
            assert body[int(number)] == label
            seen += 1
    assert seen > 4


def test_a_repair_names_entries_by_their_slots() -> None:
    compiled = compile_schedule(Rotating())
    assert compiled.repairs
    seen = 0
    for repair in compiled.repairs:
        assert str(repair).startswith(repair.phase.at(repair.slot))
        assert str(compiled.phase(repair.phase)[repair.slot].op) == str(repair.op)
        for label, phase, slot in _PLACED.findall(repair.reason):
            entries = {"prologue": compiled.prologue, "kernel": compiled.kernel, "epilogue": compiled.epilogue}[phase]
            assert str(entries[int(slot)].op) == label
            seen += 1
    assert seen >= len(compiled.repairs)
