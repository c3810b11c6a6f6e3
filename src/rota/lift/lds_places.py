"""Buffers of a loop in LDS: takes the bytes that waves use, gives places with names.

Bytes that one instruction uses belong together, for all waves, and so do those of instructions that have a byte in
common: they are one buffer.  Buffers that one instruction uses in different trips are copies of one tile.  Each
instruction that writes a buffer writes a part of it.  An instruction whose bytes are only bounded joins no buffers: it
may use any that it reaches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import lcm

from rota.lift.loop_recorder import LoopRecorder
from rota.lift.natural_loops import NaturalLoop
from rota.program.effects import Place, Space
from rota.program.limits import MOST_INSTRUCTIONS
from rota.prove.operation import Operation, OperationKind

Use = tuple[int, int]
"""A trip, counted from the first that repeats, and an operation."""
_MOST_COPIES = 8
_ALWAYS = range(1)
"""The window of a loop all of whose trips are alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LdsUses:
    """The places of each use, how many trips differ, and what isn't exact about them, in words."""

    copies: int
    places: dict[Use, tuple[Place, ...]]
    told: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class _Buffer:
    octets: int
    uses: list[Use]

    @property
    def first(self) -> int:
        return (self.octets & -self.octets).bit_length() - 1


def derive_lds_places(recorder: LoopRecorder, loops: Sequence[NaturalLoop]) -> LdsUses:
    """Places of the loops' accesses."""
    windows = [_window(recorder, loop) for loop in loops]
    copies = lcm(*(1 if window is None else len(window) for window in windows))
    most = min(_MOST_COPIES, MOST_INSTRUCTIONS // max(len(loop.chain) for loop in loops))
    told: list[str] = []
    octets: dict[Use, int] = {}
    if copies > most or None in windows:
        copies = 1
        for loop in loops:
            octets |= _union(recorder, loop)
        if octets:
            told.append(
                "LDS addresses repeat in no way that is followed: places are all bytes that an instruction uses"
            )
    else:
        for loop, window in zip(loops, windows, strict=True):
            octets |= _by_trip(recorder, loop, window or _ALWAYS, copies)
    if recorder.inexact:
        told.append(f"of {len(recorder.inexact)} instructions the bytes of LDS are only bounded")
    chain = [each for loop in loops for each in loop.chain]
    rank = {each.number: place for place, each in enumerate(chain)}
    order = sorted(octets, key=lambda use: (use[0], rank[use[1]]))
    places: dict[Use, list[Place]] = {use: [] for use in order}
    writing = frozenset(each.number for each in chain if writes_lds(each))
    known = [use for use in order if use[1] not in recorder.inexact] or order
    loose = [use for use in order if use not in set(known)]
    for name, copy, buffer in _named(_buffers(known, octets)):
        parts: dict[int, int] = {}
        for use in buffer.uses:
            if use[1] in writing:
                parts.setdefault(octets[use], len(parts))
        for use in (*buffer.uses, *(each for each in loose if octets[each] & buffer.octets)):
            mine = [part for mask, part in parts.items() if mask & octets[use]] or [0]
            places[use] += [Place(Space.LDS, name, copy, part) for part in mine]
    return LdsUses(copies=copies, places={use: tuple(each) for use, each in places.items()}, told=tuple(told))


def writes_lds(operation: Operation) -> bool:
    """Does it write LDS and nothing else?"""
    return bool(operation.to_lds) or (operation.kind is OperationKind.LDS and not operation.data)


def _of(recorder: LoopRecorder, loop: NaturalLoop) -> list[tuple[tuple[int, int, int], set[int]]]:
    own = {each.number for each in loop.chain}
    return [(key, masks) for key, masks in recorder.bytes.items() if key[2] in own]


def _window(recorder: LoopRecorder, loop: NaturalLoop) -> range | None:
    """The shortest stretch of trips that repeats, if every trip that was seen agrees with it."""
    seen = _of(recorder, loop)
    by_wave: dict[tuple[int, int], set[int]] = {}
    for (_, wave, number), masks in seen:
        by_wave.setdefault((wave, number), set()).update(masks)
    if all(len(masks) == 1 for masks in by_wave.values()):
        return _ALWAYS
    if any(len(masks) > 1 for _, masks in seen):
        return None
    for first, last in sorted(recorder.periods[loop.head], key=lambda pair: (pair[1] - pair[0], pair[0])):
        for count in range(1, min(last - first, _MOST_COPIES) + 1):
            if (last - first) % count == 0 and all(
                trip < first or masks == recorder.bytes.get((first + (trip - first) % count, wave, number))
                for (trip, wave, number), masks in seen
            ):
                return range(first, first + count)
    return None


def _by_trip(recorder: LoopRecorder, loop: NaturalLoop, window: range, copies: int) -> dict[Use, int]:
    octets: dict[Use, int] = {}
    for (trip, _, number), masks in _of(recorder, loop):
        if window is _ALWAYS:
            for copy in range(copies):
                octets[copy, number] = octets.get((copy, number), 0) | next(iter(masks))
        elif trip in window:
            for copy in range(trip - window.start, copies, len(window)):
                octets[copy, number] = octets.get((copy, number), 0) | next(iter(masks))
    return octets


def _union(recorder: LoopRecorder, loop: NaturalLoop) -> dict[Use, int]:
    octets: dict[Use, int] = {}
    for (_, _, number), masks in _of(recorder, loop):
        for mask in masks:
            octets[0, number] = octets.get((0, number), 0) | mask
    return octets


def _buffers(order: Sequence[Use], octets: dict[Use, int]) -> list[_Buffer]:
    buffers: list[_Buffer] = []
    for use in order:
        if not octets[use]:
            continue
        mine, apart = _Buffer(octets=octets[use], uses=[use]), []
        for each in buffers:
            if each.octets & mine.octets:
                mine = _Buffer(octets=each.octets | mine.octets, uses=[*each.uses, *mine.uses])
            else:
                apart.append(each)
        buffers = [*apart, mine]
    rank = {use: place for place, use in enumerate(order)}
    for each in buffers:
        each.uses.sort(key=rank.__getitem__)
    return sorted(buffers, key=lambda each: each.first)


def _named(buffers: Sequence[_Buffer]) -> Iterator[tuple[str, int, _Buffer]]:
    """Tiles are numbered by their first byte, and so are the copies of one."""
    tiles: list[tuple[set[int], list[_Buffer]]] = []
    for buffer in buffers:
        numbers, mine = {number for _, number in buffer.uses}, [buffer]
        apart = []
        for others, some in tiles:
            if others & numbers:
                numbers, mine = numbers | others, [*some, *mine]
            else:
                apart.append((others, some))
        tiles = [*apart, (numbers, mine)]
    tiles.sort(key=lambda tile: min(each.first for each in tile[1]))
    for tile, (_, some) in enumerate(tiles):
        for copy, buffer in enumerate(sorted(some, key=lambda each: each.first)):
            yield f"lds{tile}", copy, buffer
