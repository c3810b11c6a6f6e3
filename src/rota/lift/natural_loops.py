"""Finds the main loop of a kernel in machine code, and the bytes of LDS that its instructions access.

A loop can be lifted if it is innermost and a single chain of instructions from its head back to its head; it may exit
anywhere.  A branch may skip only code without memory and matrix instructions, waits and barriers, such as the mask of
an edge tile; that code is left out, and counted.  The main loop is the one with the most matrix instructions, then with
the most memory instructions.  Loops with as many of both are candidates, too: waves may each have their own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from math import lcm

from rota.errors import Concern, ProgramError, several
from rota.program.entry import Place, Space
from rota.program.kinds import OpKind
from rota.program.loop_spec import MOST_INSTRUCTIONS
from rota.prove.operation import Operation, OperationKind
from rota.prove.state import LdsUse, WaveSet
from rota.prove.widening import LaneAddresses, ProductState, Recorder

_MEMORY = frozenset({OperationKind.LDS, OperationKind.VMEM, OperationKind.EXCHANGE})


@dataclass(frozen=True, slots=True, kw_only=True)
class NaturalLoop:
    """A loop as the chain of its operations in execution order; `skipped` counts those that are left out."""

    chain: tuple[Operation, ...]
    skipped: int = 0

    @property
    def head(self) -> int:
        return self.chain[0].number


def find_loops(
    name: str, operations: Sequence[Operation], successors: Sequence[Sequence[int]]
) -> tuple[NaturalLoop, ...]:
    """Find the main loop of a kernel, and others with as much work; raises T304 if none can be lifted."""
    bodies = find_bodies(successors)
    inner = {head: body for head, body in bodies.items() if not any(bodies[each] < body for each in body & {*bodies})}
    if not inner:
        raise refuse_lift(name, "it has no loop")
    counts = {head: _count(operations, body) for head, body in inner.items()}
    most = max(counts.values())
    chosen = [head for head in sorted(inner) if counts[head] == most]
    if not any(most):
        raise refuse_lift(name, "no loop of it uses memory or matrix instructions", operations[chosen[0]])
    return tuple(_trace_chain(name, operations, successors, head, inner[head]) for head in chosen)


def is_matrix(operation: Operation) -> bool:
    return operation.instruction.op_kind is OpKind.MMA


def refuse_lift(name: str, why: str, operation: Operation | None = None) -> ProgramError:
    concerns: tuple[Concern, ...] = () if operation is None else (operation.instruction.concern(),)
    return ProgramError.of("T304", f"{name} is not lifted: {why}", concerns=concerns)


def find_bodies(successors: Sequence[Sequence[int]]) -> dict[int, set[int]]:
    """The natural loops by head: all operations that reach a back edge without passing the head."""
    into: list[list[int]] = [[] for _ in successors]
    for number, following in enumerate(successors):
        for each in following:
            into[each].append(number)
    bodies: dict[int, set[int]] = {}
    for number, following in enumerate(successors):
        for head in following:
            if head > number:
                continue
            body = bodies.setdefault(head, {head})
            work = [number]
            while work:
                each = work.pop()
                if each not in body:
                    body.add(each)
                    work += into[each]
    return bodies


def _count(operations: Sequence[Operation], body: set[int]) -> tuple[int, int]:
    matrix = sum(is_matrix(operations[each]) for each in body)
    return matrix, sum(operations[each].kind in _MEMORY for each in body)


def _trace_chain(
    name: str, operations: Sequence[Operation], successors: Sequence[Sequence[int]], head: int, body: set[int]
) -> NaturalLoop:
    chain, at, skipped = [operations[head]], head, 0
    while True:
        if operations[at].kind is OperationKind.CALL:
            raise refuse_lift(name, "its loop calls a function", operations[at])
        following = {each for each in successors[at] if each in body}
        far = max(following)
        if len(following) > 1:
            if not _may_be_skipped(operations, at, following):
                raise refuse_lift(name, "its loop has more than one path through it", operations[at])
            skipped += far - at - 1
        at = far
        if at == head:
            return NaturalLoop(chain=tuple(chain), skipped=skipped)
        if len(chain) == len(body):
            raise refuse_lift(name, "its loop has a loop inside", operations[at])
        chain.append(operations[at])


def _may_be_skipped(operations: Sequence[Operation], at: int, following: set[int]) -> bool:
    """True if a branch skips forward over nothing but computations and further such branches."""
    far = max(following)
    return following == {at + 1, far} and all(
        each.kind is OperationKind.QUIET
        or (each.kind is OperationKind.VALUE and not is_matrix(each))
        or (each.kind is OperationKind.BRANCH and at < (each.instruction.target or 0) <= far)
        for each in operations[at + 1 : far]
    )


class LoopRecorder:
    """A `rota.prove.widening.Recorder` of some loops; passes what it sees on to another one, if there is one."""

    def __init__(self, loops: Sequence[NaturalLoop], also: Recorder | None = None) -> None:
        self._also = also
        self._heads = {each.number: loop.head for loop in loops for each in loop.chain}
        self._trips: dict[Hashable, int] = {}
        self._last: tuple[ProductState, tuple[int, ...], int] | None = None
        self._trip = 0
        # Bit sets of LDS bytes by trip, wave and operation; by loop head, pairs of trips with the same state, and the
        # barriers that each wave had passed when it first reached the head.
        self.bytes: defaultdict[tuple[int, int, int], set[int]] = defaultdict(set)
        self.inexact: set[int] = set()
        self.periods: dict[int, set[tuple[int, int]]] = {loop.head: set() for loop in loops}
        self.entered: dict[int, dict[int, int]] = {loop.head: {} for loop in loops}

    def record_checkpoint(self, product: ProductState, head: tuple[Hashable, ...], key: Hashable) -> None:
        if self._also is not None:
            self._also.record_checkpoint(product, head, key)
        self._last = None
        wave_set = next((each for each in product.wave_sets if head == (each.waves[0],)), None)
        if wave_set is None or wave_set.at not in self.entered:
            return
        trip = _count_visits(product, wave_set, wave_set.at)
        for wave in wave_set.waves:
            self.entered[wave_set.at].setdefault(wave, wave_set.barriers)
        first = self._trips.setdefault(key, trip)
        if first < trip:
            self.periods[wave_set.at].add((first, trip))

    def record_access(
        self, product: ProductState, wave_set: WaveSet, access: LdsUse, lanes: LaneAddresses | None = None
    ) -> None:
        if self._also is not None:
            self._also.record_access(product, wave_set, access, lanes)
        head = self._heads.get(access.number)
        if head is None:
            return
        here = (product, wave_set.waves, head)
        if self._last is None or self._last[0] is not product or self._last[1:] != here[1:]:
            self._last, self._trip = here, _count_visits(product, wave_set, head) - 1
        if not access.exact:
            self.inexact.add(access.number)
        for place, wave in enumerate(wave_set.waves):
            self.bytes[self._trip, wave, access.number].add(access.bytes[place])


def _count_visits(product: ProductState, wave_set: WaveSet, head: int) -> int:
    """How often these waves have reached a loop head on this path."""
    who, at = (wave_set.waves[0],), (wave_set.waves, head)
    return sum(
        len(visits)
        for place, visits in product.history.items()
        if isinstance(place, tuple) and place[0] == who and at in place[1:]
    )


Use = tuple[int, int]
"""A trip, counted from the first one that repeats, and an operation."""
_MOST_COPIES = 8
_ALWAYS = range(1)
"""The window of a loop whose trips all access the same bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LdsUses:
    """The LDS places of each use, the number of trips that differ, and notes about what isn't exact."""

    copies: int
    places: dict[Use, tuple[Place, ...]]
    notes: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class _Buffer:
    octets: int
    uses: list[Use]

    @property
    def first(self) -> int:
        return (self.octets & -self.octets).bit_length() - 1


def derive_lds_places(recorder: LoopRecorder, loops: Sequence[NaturalLoop]) -> LdsUses:
    windows = [_find_window(recorder, loop) for loop in loops]
    copies = lcm(*(1 if window is None else len(window) for window in windows))
    most = min(_MOST_COPIES, MOST_INSTRUCTIONS // max(len(loop.chain) for loop in loops))
    notes: list[str] = []
    octets: dict[Use, int] = {}
    if copies > most or None in windows:
        copies = 1
        for loop in loops:
            octets |= _unite(recorder, loop)
        if octets:
            what = "places are all bytes that an instruction accesses"
            notes.append(f"LDS addresses do not repeat with a short period: {what}")
    else:
        for loop, window in zip(loops, windows, strict=True):
            octets |= _unite_by_trip(recorder, loop, window or _ALWAYS, copies)
    if recorder.inexact:
        notes.append(f"the LDS bytes of {several(len(recorder.inexact), 'instruction')} are upper bounds")
    chain = [each for loop in loops for each in loop.chain]
    rank = {each.number: place for place, each in enumerate(chain)}
    order = sorted(octets, key=lambda use: (use[0], rank[use[1]]))
    places: dict[Use, list[Place]] = {use: [] for use in order}
    writing = frozenset(each.number for each in chain if writes_lds(each))
    known = [use for use in order if use[1] not in recorder.inexact] or order
    loose = [use for use in order if use not in set(known)]
    for name, copy, buffer in _name_tiles(_join_buffers(known, octets)):
        parts: dict[int, int] = {}
        for use in buffer.uses:
            if use[1] in writing:
                parts.setdefault(octets[use], len(parts))
        for use in (*buffer.uses, *(each for each in loose if octets[each] & buffer.octets)):
            mine = [part for mask, part in parts.items() if mask & octets[use]] or [0]
            places[use] += [Place(Space.LDS, name, copy, part) for part in mine]
    return LdsUses(copies=copies, places={use: tuple(each) for use, each in places.items()}, notes=tuple(notes))


def writes_lds(operation: Operation) -> bool:
    return bool(operation.to_lds) or (operation.kind is OperationKind.LDS and not operation.data)


def _select(recorder: LoopRecorder, loop: NaturalLoop) -> list[tuple[tuple[int, int, int], set[int]]]:
    own = {each.number for each in loop.chain}
    return [(key, masks) for key, masks in recorder.bytes.items() if key[2] in own]


def _find_window(recorder: LoopRecorder, loop: NaturalLoop) -> range | None:
    """The shortest period of trips, if every trip that was seen agrees with it."""
    seen = _select(recorder, loop)
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


def _unite_by_trip(recorder: LoopRecorder, loop: NaturalLoop, window: range, copies: int) -> dict[Use, int]:
    octets: defaultdict[Use, int] = defaultdict(int)
    for (trip, _, number), masks in _select(recorder, loop):
        start = 0 if window is _ALWAYS else trip - window.start
        if window is _ALWAYS or trip in window:
            for copy in range(start, copies, len(window)):
                octets[copy, number] |= next(iter(masks))
    return octets


def _unite(recorder: LoopRecorder, loop: NaturalLoop) -> dict[Use, int]:
    octets: defaultdict[Use, int] = defaultdict(int)
    for (_, _, number), masks in _select(recorder, loop):
        for mask in masks:
            octets[0, number] |= mask
    return octets


def _join_buffers(order: Sequence[Use], octets: dict[Use, int]) -> list[_Buffer]:
    buffers: list[_Buffer] = []
    for use in order:
        if not octets[use]:
            continue
        mine, disjoint = _Buffer(octets=octets[use], uses=[use]), []
        for each in buffers:
            if each.octets & mine.octets:
                mine = _Buffer(octets=each.octets | mine.octets, uses=[*each.uses, *mine.uses])
            else:
                disjoint.append(each)
        buffers = [*disjoint, mine]
    rank = {use: place for place, use in enumerate(order)}
    for each in buffers:
        each.uses.sort(key=rank.__getitem__)
    return sorted(buffers, key=lambda each: each.first)


def _name_tiles(buffers: Sequence[_Buffer]) -> Iterator[tuple[str, int, _Buffer]]:
    """Number tiles by their first byte, and the copies of each."""
    tiles: list[tuple[set[int], list[_Buffer]]] = []
    for buffer in buffers:
        numbers, mine, disjoint = {number for _, number in buffer.uses}, [buffer], []
        for others, some in tiles:
            if others & numbers:
                numbers, mine = numbers | others, [*some, *mine]
            else:
                disjoint.append((others, some))
        tiles = [*disjoint, (numbers, mine)]
    tiles.sort(key=lambda tile: min(each.first for each in tile[1]))
    for tile, (_, some) in enumerate(tiles):
        for copy, buffer in enumerate(sorted(some, key=lambda each: each.first)):
            yield f"lds{tile}", copy, buffer
