"""The proof of machine code: takes a schedule and the waits and barriers that its code really has, gives a `Report`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rota.audit.compare import DATA
from rota.audit.expected import Expected, ExpectedEvent
from rota.audit.machine_loop import Kind, MachineEvent, MachineLoop
from rota.compiler.compiled import CompiledSchedule
from rota.declare.effects import Counter
from rota.declare.op import OpDesc
from rota.declare.vocabulary import Phase
from rota.errors import Finding, IsaError
from rota.program.entry import ScheduleEntry, entries_of
from rota.program.loop import Step
from rota.verify.prove import verify
from rota.verify.report import Report

_WAITS = {Counter.VM: OpDesc.wait_vm, Counter.LGKM: OpDesc.wait_lgkm}


def reprove(planned: CompiledSchedule, expected: Expected, found: MachineLoop) -> Report:
    """The data ops as planned, since their order was kept, with the machine code's own synchronisation.

    A wait between the instructions of one op counts as one behind the op that lets the rest of it be under way.
    """
    phases = {phase: list(_entries(expected[phase], found.phase(phase), phase)) for phase in Phase}
    staggered = planned.config.warp_stagger.enabled
    stagger = _take_stagger(phases) if staggered else len(phases[Phase.PROLOGUE]) + 1
    numbered = {
        phase: tuple(replace(entry, time_slot=slot) for slot, entry in enumerate(entries))
        for phase, entries in phases.items()
    }
    return verify(
        replace(
            planned,
            prologue=numbered[Phase.PROLOGUE],
            kernel=numbered[Phase.KERNEL],
            epilogue=numbered[Phase.EPILOGUE],
            warp_stagger_index=stagger,
            certificate=None,
        )
    )


def _entries(expected: Sequence[ExpectedEvent], found: Sequence[MachineEvent], phase: Phase) -> Iterator[ScheduleEntry]:
    """Data entries when their last instruction has come, sync entries where they are found."""
    data = [event for event in expected if event.kind in DATA]
    position, held = 0, list[ScheduleEntry]()
    for event in found:
        if event.kind in DATA:
            step = data[position].step
            position += 1
            if position == len(data) or data[position].step is not step:
                yield step.entry
                yield from held
                held = []
            continue
        inside = position > 0 and position < len(data) and data[position].step is data[position - 1].step
        rest = _rest(data, position) if inside else 0
        ops = _sync_ops(event, data[position].step if inside else None, rest)
        entries = [replace(entry, group=_group(event, phase)) for entry in entries_of(ops, phase)]
        if inside:
            held += entries
        else:
            yield from entries


def _rest(data: Sequence[ExpectedEvent], position: int) -> int:
    """How many instructions of the op at `position` are still to come."""
    step = data[position].step
    return next((n for n, event in enumerate(data[position:]) if event.step is not step), len(data) - position)


def _sync_ops(event: MachineEvent, inside: Step | None, rest: int) -> list[OpDesc]:
    if event.kind is Kind.BARRIER:
        if inside is not None:
            raise IsaError(
                Finding(
                    code="I205",
                    message=f"a barrier stands between the instructions of {inside.entry.op}",
                    concerns=(inside.concern(),),
                )
            )
        return [OpDesc.barrier()]
    return [
        _WAITS[counter](count + (rest if inside is not None and inside.effect.counter is counter else 0))
        for counter, count in event.waits
    ]


def _group(event: MachineEvent, phase: Phase) -> int | None:
    """Group 1 falls back in the prologue, and group 0 waits for it at the end."""
    if not event.conditional:
        return None
    return 1 if phase is Phase.PROLOGUE else 0


def _take_stagger(phases: dict[Phase, list[ScheduleEntry]]) -> int:
    """Staggering's own barriers are no entries: take them out, and say where group 1 falls back."""
    prologue, epilogue = phases[Phase.PROLOGUE], phases[Phase.EPILOGUE]
    alone = [slot for slot, entry in enumerate(prologue) if entry.group is not None]
    barriers = [slot for slot, entry in enumerate(prologue) if entry.op == OpDesc.barrier() and entry.group is None]
    closing = [slot for slot, entry in enumerate(epilogue) if entry.group is not None]
    if len(alone) != 1 or len(closing) != 1 or not barriers:
        raise IsaError(
            Finding(
                code="I205",
                message="the barriers that keep the wave groups apart are not all there",
                evidence=(("of group 1 alone", len(alone)), ("of group 0 alone", len(closing))),
            )
        )
    del epilogue[closing[0]]
    del prologue[barriers[-1]]
    del prologue[alone[0]]
    return alone[0]
