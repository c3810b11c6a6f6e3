"""The same loop in another shape: takes a schedule by values, gives it with a trip peeled off, or two trips in one.

What was right stays right, and what was wrong stays wrong at some trip count; a proof by induction over trips meets
other states at the loop's edge.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from random import Random

from rota import CompiledSchedule, Phase, ScheduleEntry
from rota.declare.effects import Version

Entries = tuple[ScheduleEntry, ...]


def reshaped(random: Random, compiled: CompiledSchedule) -> CompiledSchedule:
    """One of the three."""
    return random.choice((peeled_in_front, peeled_behind, unrolled_twice))(compiled)


def peeled_in_front(compiled: CompiledSchedule) -> CompiledSchedule:
    """The first trip belongs to the prologue."""
    per_trip, outside = _tiles(compiled)
    return _with(
        compiled,
        prologue=(*compiled.prologue, *later(compiled.kernel, per_trip)),
        kernel=later(compiled.kernel, per_trip),
        epilogue=later(compiled.epilogue, per_trip),
        tiles=(per_trip, outside + per_trip),
    )


def peeled_behind(compiled: CompiledSchedule) -> CompiledSchedule:
    """The last trip belongs to the epilogue."""
    per_trip, outside = _tiles(compiled)
    return _with(
        compiled,
        prologue=compiled.prologue,
        kernel=compiled.kernel,
        epilogue=(*compiled.kernel, *later(compiled.epilogue, per_trip)),
        tiles=(per_trip, outside + per_trip),
    )


def unrolled_twice(compiled: CompiledSchedule) -> CompiledSchedule:
    """Two trips are one."""
    per_trip, outside = _tiles(compiled)
    return _with(
        compiled,
        prologue=compiled.prologue,
        kernel=(*later(compiled.kernel, -per_trip), *compiled.kernel),
        epilogue=later(compiled.epilogue, -per_trip),
        tiles=(2 * per_trip, outside),
    )


def later(entries: Iterable[ScheduleEntry], by: int) -> Entries:
    """The entries, each of an iteration so much later."""
    return tuple(_later(entry, by) for entry in entries)


def _later(entry: ScheduleEntry, by: int) -> ScheduleEntry:
    effect = entry.effect
    if effect is None or effect.instance is None:
        return entry

    def shifted(version: Version) -> Version:
        return Version(version.name, version.iteration + by)

    changed = replace(
        effect,
        instance=shifted(effect.instance),
        wants=tuple((place, shifted(version)) for place, version in effect.wants),
        makes=tuple((place, shifted(version)) for place, version in effect.makes),
    )
    return replace(entry, effect=changed)


def _with(
    compiled: CompiledSchedule, *, prologue: Entries, kernel: Entries, epilogue: Entries, tiles: tuple[int, int]
) -> CompiledSchedule:
    staggered = compiled.config.warp_stagger.enabled
    return replace(
        compiled,
        prologue=_numbered(prologue, Phase.PROLOGUE),
        kernel=_numbered(kernel, Phase.KERNEL),
        epilogue=_numbered(epilogue, Phase.EPILOGUE),
        trip_tiles=tiles,
        warp_stagger_index=compiled.warp_stagger_index if staggered else len(prologue) + 1,
        certificate=None,
        repairs=(),
    )


def _numbered(entries: Entries, phase: Phase) -> Entries:
    return tuple(replace(entry, time_slot=slot, phase=phase) for slot, entry in enumerate(entries))


def _tiles(compiled: CompiledSchedule) -> tuple[int, int]:
    assert compiled.trip_tiles is not None
    return compiled.trip_tiles
