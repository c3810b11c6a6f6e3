"""Do the parts of a schedule agree: takes one that was read, gives a `Disagreement` where they don't.

A document repeats itself: entries follow from the loop and its placement, a certificate from the entries.  Each could
have been changed without the other, and what is emitted later trusts them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rota.compiler.compiled import CompiledSchedule
from rota.declare.values import LoopSpec
from rota.declare.vocabulary import FrameworkTag, Phase
from rota.program.entry import ScheduleEntry
from rota.program.unroll import Placement, derive_loop_phases
from rota.verify.prove import verify

_OURS = frozenset(int(tag) for tag in FrameworkTag)


class Disagreement(NamedTuple):
    """A field of the schedule, and what is wrong with it."""

    field: str
    message: str


def disagreement(schedule: CompiledSchedule) -> Disagreement | None:
    """The first one; entries are looked at before their proof, which takes them for granted."""
    phases = {
        Phase.PROLOGUE: schedule.prologue,
        Phase.KERNEL: schedule.kernel,
        Phase.EPILOGUE: schedule.epilogue,
    }
    for found in (_places(phases), _repairs(schedule, phases), _data(schedule, phases), _proof(schedule)):
        for each in found:
            return each
    return None


def _places(phases: dict[Phase, tuple[ScheduleEntry, ...]]) -> Iterator[Disagreement]:
    for phase, entries in phases.items():
        for slot, entry in enumerate(entries):
            where = f"{phase.value.lower()}[{slot}]"
            if entry.phase is not phase or entry.time_slot != slot:
                yield Disagreement(where, f"says that it is {entry.phase.value.lower()} #{entry.time_slot}")
            if entry.op.is_framework and entry.op.tag not in _OURS:
                yield Disagreement(f"{where}.op.tag", f"{entry.op.tag} is none of rota's own")


def _repairs(schedule: CompiledSchedule, phases: dict[Phase, tuple[ScheduleEntry, ...]]) -> Iterator[Disagreement]:
    for number, repair in enumerate(schedule.repairs):
        entries = phases[repair.phase]
        if not 0 <= repair.slot < len(entries) or entries[repair.slot].op != repair.op:
            yield Disagreement(
                f"repairs[{number}]", f"no {repair.op} stands at {repair.phase.value.lower()} #{repair.slot}"
            )


def _data(schedule: CompiledSchedule, phases: dict[Phase, tuple[ScheduleEntry, ...]]) -> Iterator[Disagreement]:
    """The order of data entries is free, within their phase; waits and barriers say all themselves."""
    loop, placement = schedule.loop, schedule.placement
    data = {phase: [each for each in entries if not each.op.is_framework] for phase, entries in phases.items()}
    for phase, entries in phases.items():
        for slot, entry in enumerate(entries):
            if entry.effect is not None and (loop is None or entry.op.is_framework):
                yield Disagreement(f"{phase.value.lower()}[{slot}].effect", "follows from the op, and can't be given")
    if loop is None:
        return
    if placement is None or schedule.trip_tiles is None:
        yield Disagreement("placement", "a loop by values has one, and trip_tiles")
        return
    if not _fits(loop, placement, schedule.trip_tiles, data):
        yield Disagreement("placement", "is not that of this loop, its trip_tiles and its number of entries")
        return
    due = derive_loop_phases(loop, placement, schedule.trip_tiles[1] - placement.stages + 1)
    for phase, wanted in zip(Phase, (due.prologue, due.kernel, due.epilogue), strict=True):
        if sorted(map(_meaning, data[phase])) != sorted(map(_meaning, wanted)):
            yield Disagreement(phase.value.lower(), "its data entries are not those that loop and placement give")


def _fits(loop: LoopSpec, placement: Placement, tiles: tuple[int, int], data: dict[Phase, list[ScheduleEntry]]) -> bool:
    """Sizes first, so that nothing is unrolled that isn't in the document."""
    inside, outside = len(data[Phase.KERNEL]), len(data[Phase.PROLOGUE]) + len(data[Phase.EPILOGUE])
    counts = dict(placement.copies)
    return (
        len(placement.starts) == len(loop.ops)
        and min(placement.starts, default=0) >= 0
        and counts.keys() <= {value.name for value in loop.values}
        and min(counts.values(), default=1) >= 1
        and placement.unroll == tiles[0]
        and placement.stages <= tiles[1] + 1
        and (tiles[0] * len(loop.ops), tiles[1] * len(loop.ops)) == (inside, outside)
    )


def _meaning(entry: ScheduleEntry) -> str:
    """All of an entry but its place; a text, since these have an order."""
    return f"{entry.op!r} {entry.op.label} {entry.effect!r} {entry.is_prefetch} {entry.group}"


def _proof(schedule: CompiledSchedule) -> Iterator[Disagreement]:
    if schedule.certificate is None:
        return
    report = verify(schedule)
    if report.certificate != schedule.certificate:
        reasons: Sequence[str] = [f"{each.code}: {each.message}" for each in report.errors]
        why = f"the proof fails, {reasons[0]}" if reasons else "the proof says something else"
        yield Disagreement("certificate", why)
