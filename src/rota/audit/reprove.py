"""The proof of machine code: takes a schedule and the waits and barriers that its code really has, gives a `Report`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rota.audit.compare import SYNC
from rota.audit.expected import Expected, ExpectedEvent
from rota.audit.machine_loop import MachineEvent, MachineLoop
from rota.errors import Finding, IsaError
from rota.program.entry import BARRIER, MEETS, Entry, wait_effect, wait_op
from rota.program.kinds import OpKind
from rota.program.lowered import Lowerable, LoweredProgram
from rota.program.phase import Phase
from rota.verify.prove import verify
from rota.verify.report import Report


def reprove(planned: Lowerable, expected: Expected, found: MachineLoop) -> Report:
    """The proof of what was found in machine code."""
    return verify(found_program(planned.lowered, expected, found))


def found_program(planned: LoweredProgram, expected: Expected, found: MachineLoop) -> LoweredProgram:
    """The data ops as planned, since their order was kept, with the machine code's own synchronisation.

    A wait between the instructions of one op counts as one behind the op that lets the rest of it be under way.
    """
    alone = {phase: _alone(expected[phase], found.phase(phase)) for phase in Phase}
    return planned.with_phases(
        {phase: list(_entries(expected[phase], found.phase(phase), phase, iter(alone[phase]))) for phase in Phase}
    )


def _alone(expected: Sequence[ExpectedEvent], found: Sequence[MachineEvent]) -> list[Entry]:
    """Barriers that some roles execute alone: machine code doesn't say which, so that it must have them all."""
    planned = [event.entry for event in expected if event.kind is OpKind.BARRIER and event.alone]
    skipped = sum(event.kind is OpKind.BARRIER and event.conditional for event in found)
    if len(planned) != skipped:
        raise IsaError(
            Finding(
                code="I205",
                message="the barriers that keep the wave groups apart are not all there"
                if len(planned) > skipped
                else "a branch may skip barriers that the schedule has for all waves",
                concerns=tuple(entry.concern() for entry in planned),
                evidence=(("of one group alone, planned", len(planned)), ("found", skipped)),
            )
        )
    return planned


def _entries(
    expected: Sequence[ExpectedEvent], found: Sequence[MachineEvent], phase: Phase, alone: Iterator[Entry]
) -> Iterator[Entry]:
    """Data entries when their last instruction has come, sync entries where they are found."""
    data = [event for event in expected if event.kind not in SYNC]
    position, held = 0, list[Entry]()
    for event in found:
        if event.kind not in SYNC:
            entry = data[position].entry
            position += 1
            if position == len(data) or data[position].entry is not entry:
                yield entry
                yield from held
                held = []
        elif 0 < position < len(data) and data[position].entry is data[position - 1].entry:
            held += _inside(event, data[position:], phase)
        elif event.kind is OpKind.BARRIER:
            yield next(alone) if event.conditional else _barrier(phase)
        else:
            yield from (_wait(counter, count, phase) for counter, count in event.waits)


def _inside(event: MachineEvent, rest: Sequence[ExpectedEvent], phase: Phase) -> Iterator[Entry]:
    """Waits between instructions of one op, of which `rest` begins with those still to come."""
    op = rest[0].entry
    if event.kind is OpKind.BARRIER:
        raise IsaError(
            Finding(
                code="I205",
                message=f"a barrier stands between the instructions of {op.op}",
                concerns=(op.concern(),),
            )
        )
    to_come = next((number for number, each in enumerate(rest) if each.entry is not op), len(rest))
    for counter, count in event.waits:
        yield _wait(counter, count + (to_come if op.effect.counter == counter else 0), phase)


def _wait(counter: str, count: int, phase: Phase) -> Entry:
    return Entry(op=wait_op(counter, count), effect=wait_effect(counter, count), time_slot=0, phase=phase)


def _barrier(phase: Phase) -> Entry:
    return Entry(op=BARRIER, effect=MEETS, time_slot=0, phase=phase)
