from __future__ import annotations

from dataclasses import replace

from rota import DeclarativeSchedule, Phase, compile_schedule
from rota.program.lowered import LoweredProgram, Role
from tests.findings.proofs import found


def split(program: LoweredProgram, computer_reads: bool) -> LoweredProgram:
    """A role that loads and one that computes; fragments are read by either."""

    def computes(name: str) -> bool:
        entry = next(entry for entry in program.entries if entry.op.name == name)
        return entry.op.kind.computes or (computer_reads and any(p.space.is_private for p in entry.effect.writes))

    names = {entry.op.name for entry in program.entries if not entry.op.is_framework}
    second = frozenset(filter(computes, names))
    phases = {
        phase: [
            entry if entry.op.is_framework else replace(entry, roles=(int(entry.op.name in second),))
            for entry in program.phase(phase)
        ]
        for phase in Phase
    }
    roles = (Role("mover", does=frozenset(names) - second), Role("computer", does=second))
    return replace(program.with_phases(phases), roles=roles)


def test_registers_that_another_role_fills_are_reported() -> None:
    program = compile_schedule(DeclarativeSchedule()).lowered
    (finding, *_) = found("B104", split(program, computer_reads=False), times=None)
    assert "mma" in finding.concerns[0].label
    assert finding.evidence == (("read by", "computer"),)


def test_registers_of_ones_own_are_fine() -> None:
    program = compile_schedule(DeclarativeSchedule()).lowered
    found("B104", split(program, computer_reads=True), times=0)
