"""The oracle: takes a compiled schedule and a trip count, gives what is wrong with it, or None."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from rota.declare.op import OpDesc
from rota.declare.vocabulary import FrameworkTag
from tests.oracle.by_stages import ByStages
from tests.oracle.by_values import ByValues
from tests.oracle.step import LGKM, VM, Content, Counters, Kind, Meaning, Step, WrongError
from tests.oracle.wave import Wave, run

if TYPE_CHECKING:
    from rota import CompiledSchedule, ScheduleEntry

TRIP_COUNTS = range(5)
_AGAIN = ((0,), (1,), (2,), (0, 1))  # trip counts of further runs, where a loop may be run again
_BARRIER = Step("barrier", Kind.BARRIER)
_NOTHING = Step("nothing", Kind.NOTHING)


def agrees(compiled: CompiledSchedule, trip_counts: Iterable[int] = TRIP_COUNTS) -> bool:
    """The oracle finds nothing wrong for these trip counts."""
    return first_wrong(compiled, trip_counts) is None


def first_wrong(compiled: CompiledSchedule, trip_counts: Iterable[int] = TRIP_COUNTS) -> tuple[int, WrongError] | None:
    """The first trip count that goes wrong in some interleaving, and how."""
    try:
        meaning = meaning_of(compiled)
    except WrongError as wrong:
        return 0, wrong
    for trips in trip_counts:
        wrong_now = wrong_with(compiled, trips, meaning)
        if wrong_now is not None:
            return trips, wrong_now
    return None


def wrong_with(compiled: CompiledSchedule, trips: int, meaning: Meaning) -> WrongError | None:
    """What some interleaving of so many trips breaks, or None if all of them do what was declared."""
    runs = [(trips, *others) for others in _AGAIN] if compiled.reentrant else [(trips,)]
    for each in runs:
        try:
            run(
                programs(compiled, meaning, *each),
                tracked=compiled.compiler_tracks_registers,
                counters=counters_of(compiled),
            )
        except WrongError as wrong:
            return wrong
    return None


def counters_of(compiled: CompiledSchedule) -> Counters:
    """The counters of the schedule's machine."""
    machine = compiled.machine
    return Counters(
        no_wait={VM: machine.vmcnt_field.value, LGKM: machine.lgkmcnt_field.value},
        vm_in_order=machine.vmcnt_in_order,
    )


def meaning_of(compiled: CompiledSchedule) -> Meaning:
    """By values where a loop was declared, else by stages; only ops of the former say in an effect what they do."""
    for entry in (*compiled.prologue, *compiled.kernel, *compiled.epilogue):
        if entry.effect is not None and (compiled.loop is None or entry.op.is_framework):
            raise WrongError("claim", f"{entry} claims to be {entry.effect.action.value}")
    return ByStages(compiled) if compiled.loop is None else ByValues(compiled, compiled.loop)


def programs(compiled: CompiledSchedule, meaning: Meaning, *runs: int) -> list[list[Step]]:
    """The steps of each wave group, for a trip count, or for several runs of the loop one behind the other."""
    groups = 2 if compiled.config.warp_stagger.enabled else 1
    return [
        [step for trips in runs for step in _program(compiled, meaning, trips, group, groups)]
        for group in range(groups)
    ]


def _program(compiled: CompiledSchedule, meaning: Meaning, trips: int, group: int, groups: int) -> Iterator[Step]:
    """With stagger, group 1 has a barrier more in the prologue, both one after it, and group 0 one at the end."""
    prologue = _steps(compiled.prologue, meaning, 0, group)
    if groups > 1:
        at = compiled.warp_stagger_index
        extra = [_BARRIER] if group == 1 and 0 <= at <= len(compiled.prologue) else []
        first = _steps(compiled.prologue[:at], meaning, 0, group)
        prologue = chain(first, extra, _steps(compiled.prologue[at:], meaning, 0, group), [_BARRIER])
    yield from prologue
    for trip in range(1, trips + 1):
        yield from _steps(compiled.kernel, meaning, meaning.tiles_per_trip * trip, group)
    yield from _steps(compiled.epilogue, meaning, meaning.tiles_per_trip * (trips + 1), group)
    if groups > 1 and group == 0:
        yield _BARRIER
    yield Step(
        "the end", Kind.END, does=partial(_check, meaning, meaning.tiles_per_trip * trips + meaning.tiles_outside)
    )


def _check(meaning: Meaning, tiles: int, wave: Wave, found: Sequence[Content]) -> Sequence[Content]:
    meaning.check(wave, tiles)
    return ()


def _steps(entries: Sequence[ScheduleEntry], meaning: Meaning, k: int, group: int) -> Iterator[Step]:
    for entry in entries:
        if entry.group in (None, group):
            yield _framework(entry.op) if entry.op.is_framework else meaning.step(entry, k)


def _framework(op: OpDesc) -> Step:
    if op.tag == FrameworkTag.BARRIER:
        return _BARRIER
    if op.tag == FrameworkTag.WAIT_VM:
        return Step(str(op), Kind.WAIT, VM, left=op.wait_value)
    if op.tag == FrameworkTag.WAIT_LGKM:
        return Step(str(op), Kind.WAIT, LGKM, left=op.wait_value)
    return _NOTHING
