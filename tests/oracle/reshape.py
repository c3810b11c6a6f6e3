"""The same loop in another shape: takes a program by values, gives it with a trip peeled off, or two trips in one.

What was right stays right, and what was wrong stays wrong at some trip count; a proof by induction over trips meets
other states at the loop's edge.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from random import Random

from rota.program.entry import Entry
from rota.program.kinds import Phase
from rota.program.lowered import LoweredProgram, number_entries

Entries = tuple[Entry, ...]


def reshaped(random: Random, program: LoweredProgram) -> LoweredProgram:
    """One of the three."""
    return random.choice((peeled_in_front, peeled_behind, unrolled_twice))(program)


def peeled_in_front(program: LoweredProgram) -> LoweredProgram:
    """The first trip belongs to the prologue."""
    per_trip, outside = _tiles(program)
    return _with(
        program,
        prologue=(*program.prologue, *later(program.kernel, per_trip)),
        kernel=later(program.kernel, per_trip),
        epilogue=later(program.epilogue, per_trip),
        tiles=(per_trip, outside + per_trip),
    )


def peeled_behind(program: LoweredProgram) -> LoweredProgram:
    """The last trip belongs to the epilogue."""
    per_trip, outside = _tiles(program)
    return _with(
        program,
        prologue=program.prologue,
        kernel=program.kernel,
        epilogue=(*program.kernel, *later(program.epilogue, per_trip)),
        tiles=(per_trip, outside + per_trip),
    )


def unrolled_twice(program: LoweredProgram) -> LoweredProgram:
    """Two trips are one."""
    per_trip, outside = _tiles(program)
    return _with(
        program,
        prologue=program.prologue,
        kernel=(*later(program.kernel, -per_trip), *program.kernel),
        epilogue=later(program.epilogue, -per_trip),
        tiles=(2 * per_trip, outside),
    )


def later(entries: Iterable[Entry], by: int) -> Entries:
    """The entries, each of an iteration so much later."""
    return tuple(_later(entry, by) for entry in entries)


def _later(entry: Entry, by: int) -> Entry:
    effect = entry.effect
    if not effect.instance.name:
        return entry
    changed = replace(
        effect,
        instance=effect.instance.at(by),
        wants=tuple((place, version.at(by)) for place, version in effect.wants),
        makes=tuple((place, version.at(by)) for place, version in effect.makes),
    )
    return replace(entry, effect=changed)


def _with(
    program: LoweredProgram, *, prologue: Entries, kernel: Entries, epilogue: Entries, tiles: tuple[int, int]
) -> LoweredProgram:
    return replace(
        program,
        prologue=_in(prologue, Phase.PROLOGUE),
        kernel=_in(kernel, Phase.KERNEL),
        epilogue=_in(epilogue, Phase.EPILOGUE),
        tiles_per_trip=tiles[0],
        tiles_outside=tiles[1],
    )


def _in(entries: Entries, phase: Phase) -> Entries:
    return number_entries([replace(entry, phase=phase) for entry in entries])


def _tiles(program: LoweredProgram) -> tuple[int, int]:
    return program.tiles_per_trip, program.tiles_outside
