"""Polish: move entries between matrix instructions where the cycle model finds that faster.

A search for starts gives a turn to every op of the loop. Waits, barriers, the loop's edge and the set-up of a load need
turns, too, so some gaps between two matrix instructions are crowded while others are empty. A quick model tries other
orders; the cycle model decides which is faster, and among equals, which is faster when loads and reads are late. No
entry passes another that it must follow (`rota.sync.needless`), and the result is proved like any other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from math import inf
from typing import NamedTuple

from rota.cycles.instructions import encode, in_order, nominal, unlucky
from rota.cycles.pace import PacedLoop, make_paced_loop
from rota.cycles.predict import bounds_of, clocks_of
from rota.errors import RotaError
from rota.program.entry import Entry
from rota.program.kinds import OpKind, Phase
from rota.sync.needless import derive_must_follow
from rota.sync.repair import renumber
from rota.targets.device import device_of
from rota.values.compiled_loop import CompiledLoop

_FURTHEST = 3  # matrix instructions that one entry passes


class EntryMoves:
    """Moves that keep every entry after those it must follow; `fixed` matrix instructions keep their order."""

    def __init__(self, predecessors: Sequence[Collection[int]], fixed: Sequence[bool]) -> None:
        self.predecessors, self.fixed = predecessors, fixed

    def single(self, order: Sequence[int], entry: int) -> Iterator[list[int]]:
        """Move the entry one to three matrix instructions earlier, or else later."""
        place = order.index(entry)
        for step in (-1, 1):
            other, passed = place + step, 0
            while 0 <= other < len(order) and passed < _FURTHEST and self._may_swap(order[other], entry, step):
                if self.fixed[order[other]]:
                    passed += 1
                    yield _move(order, place, other)
                other += step

    def shift(self, order: Sequence[int], stretch: Sequence[int], step: int) -> list[int] | None:
        """Move each matrix instruction of a stretch one entry earlier (-1) or later (1); None if one can't.

        So an entry moves from the gap at one end of the stretch to the gap at the other, although none moves far.
        """
        moved: list[int] | None = list(order)
        for entry in stretch if step < 0 else reversed(stretch):
            moved = None if moved is None else self._pass(moved, moved.index(entry), step)
        return moved

    def carry(self, order: Sequence[int], place: int, other: int) -> list[int] | None:
        """Move the entry at one place to another; None if it may not pass one in between."""
        entry, step = order[place], 1 if other > place else -1
        passed = range(place + step, other + step, step)
        return _move(order, place, other) if all(self._may_swap(order[each], entry, step) for each in passed) else None

    def _pass(self, order: Sequence[int], place: int, step: int) -> list[int] | None:
        """The order with the nearest entry of a gap moved across the matrix instruction next to it."""
        other = place + step
        while 0 <= other < len(order) and not self.fixed[order[other]]:
            carried = self.carry(order, other, place)
            if carried is not None:
                return carried
            other += step
        return None

    def _may_swap(self, other: int, entry: int, step: int) -> bool:
        """True if an entry may pass its neighbour before it (-1) or after it (1)."""
        first, second = (other, entry) if step < 0 else (entry, other)
        return first not in self.predecessors[second]


def _move(order: Sequence[int], place: int, other: int) -> list[int]:
    moved = [*order[:place], *order[place + 1 :]]
    moved.insert(other, order[place])
    return moved


# A search for a faster order.
#
# First the entries are listed anew: of the next few, the first that need not wait goes ahead, with loads and reads
# in time or late. From the best of these lists, and from the order that is there, entries move between the gaps of
# matrix instructions as long as each move is faster; then a few entries are moved at random, and it begins anew.
# The effort is bounded by counts, and random is the same everywhere.

_AHEAD = 8, 24  # entries that a list looks at
_LISTS = 3  # one made of the other
_AROUND = 6  # entries around a late one that are moved
_FULL, _EMPTY = 6, 4  # gaps that an entry is carried to or from; entries that are tried of each
_STEPS = 360_000  # entries, in all orders that are tried together
_MORE_STEPS, _FAR = 1_080_000, 1.03  # where the best order is this much slower than the busiest unit allows
_CLIMB = 4  # part of them that one climb takes at most
_SWEEPS = 8
_SHAKEN = 3  # moves at random
_SHAKES = 8  # in vain, before it is given up
_MULTIPLIER, _MODULUS = 48271, 2**31 - 1  # of Park and Miller's generator
_SETTLES = 2  # periods, ahead of what is counted


class _Scored(NamedTuple):
    clocks: int
    order: list[int]


class OrderSearch:
    """Orders of one period, the same in all periods of the kernel.

    `wave` has loads and reads in time, `late` has them late; entries that are `fixed` are matrix instructions.
    """

    def __init__(
        self, wave: PacedLoop, late: PacedLoop, predecessors: Sequence[set[int]], fixed: Sequence[bool], periods: int
    ) -> None:
        self.wave, self.late, self.predecessors, self.fixed, self.periods = wave, late, predecessors, fixed, periods
        self.length, self.left, self.drawn = len(fixed), _STEPS, 1
        self.moves = EntryMoves(predecessors, fixed)

    def run(self, most: int) -> list[tuple[int, ...]]:
        """The fastest orders of the whole kernel that were found, the best under `late` first, and the given one.

        At most this many are faster than the given one, or as fast.
        """
        given = self._scored(list(range(self.length)))
        if given.clocks <= self.wave.least and self._clocks(self.late, given.order) <= self.late.least:
            return [self._whole(given.order)]
        found = [given]
        for wave in (self.wave, self.late):
            lists = list(self._lists(given.order, wave))
            found += [*lists, self._climb(min(lists, key=lambda each: each.clocks))]
        found.append(self._climb(given))
        best = min(found, key=lambda each: each.clocks)
        if best.clocks > _FAR * self.wave.least:
            self.left += _MORE_STEPS
        shakes = _SHAKES
        while self.left > 0 and shakes and best.clocks > self.wave.least:
            found.append(self._climb(self._shaken(best)))
            shakes = _SHAKES if found[-1].clocks < best.clocks else shakes - 1
            best = min(found[-1], best, key=lambda each: each.clocks)
        orders = {tuple(each.order): None for each in found if each.clocks == best.clocks}
        ranked = sorted(orders, key=lambda order: self._clocks(self.late, order))[:most]
        return [self._whole(order) for order in dict.fromkeys((*ranked, tuple(given.order)))]

    def _lists(self, order: list[int], wave: PacedLoop) -> Iterator[_Scored]:
        for ahead in _AHEAD:
            listed = order
            for _ in range(_LISTS):
                listed = self._list_orders(listed, ahead, wave)
                yield self._scored(listed)

    def _list_orders(self, order: list[int], ahead: int, wave: PacedLoop) -> list[int]:
        """List scheduling: among the next few entries take the one that stalls least."""
        pace = wave.settle(*self._trips(order))
        left, listed = list(order), list[int]()
        while left:
            best = place = 0
            for other, entry in enumerate(left[:ahead]):
                if self.predecessors[entry].isdisjoint(left[:other]):
                    stall = pace.stall(entry)
                    if not other or stall < best:
                        best, place = stall, other
                    if not stall:
                        break
            entry = left.pop(place)
            pace.issue(entry)
            listed.append(entry)
        return listed

    def _climb(self, best: _Scored) -> _Scored:
        """Hill climbing: take the first faster order, again and again."""
        end = self.left - _STEPS // _CLIMB
        for _ in range(_SWEEPS):
            before = best.clocks
            for entry in self._near_late(best.order):
                best = self._first_better(best, self.moves.single(best.order, entry), end)
            best = self._first_better(best, self._even_gaps(best.order), end)
            if best.clocks in (before, self.wave.least) or self.left <= max(end, 0):
                break
        return best

    def _first_better(self, best: _Scored, orders: Iterable[list[int]], end: int) -> _Scored:
        for order in orders:
            if self.left <= max(end, 0):
                break
            tried = self._scored(order)
            if tried.clocks < best.clocks:
                return tried
        return best

    def _near_late(self, order: list[int]) -> list[int]:
        late = {each % self.length for each in self.wave.trip(*self._trips(order)).late}
        places = [place for place, entry in enumerate(order) if entry in late]
        near = {other for place in places for other in range(place - _AROUND, place + _AROUND + 1)}
        return [entry for place, entry in enumerate(order) if place in near and not self.fixed[entry]]

    def _even_gaps(self, order: list[int]) -> Iterator[list[int]]:
        """Orders that move an entry from a full gap before a matrix instruction to one that has room.

        A gap is full if the unit is idle before the instruction issues, and has room if the unit is still busy then.
        """
        matrix = [place for place, entry in enumerate(order) if self.fixed[entry]]
        margins = self.wave.trip(*self._trips(order)).margins  # the first period's come first
        full = [number for number, place in enumerate(matrix) if margins[place] < 0]
        room = [number for number, place in enumerate(matrix) if margins[place] > 0]
        scarce = self.wave.turns_are_scarce
        for wanted in room if scarce else full:
            for other in sorted(full if scarce else room, key=lambda each: abs(each - wanted))[:_FULL]:
                source, target = (other, wanted) if scarce else (wanted, other)
                yield from self._carry_entries(order, matrix, source, target)
                low, step = min(source, target), -1 if target > source else 1
                shifted = self.moves.shift(order, [order[matrix[n]] for n in range(low, max(source, target))], step)
                yield from [] if shifted is None else [shifted]

    def _carry_entries(self, order: list[int], matrix: Sequence[int], source: int, target: int) -> Iterator[list[int]]:
        """Orders with an entry of one gap in another, near gaps first."""
        begin = matrix[source - 1] + 1 if source else 0
        gap = range(begin, matrix[source])
        tried = 0
        for place in reversed(gap) if target > source else gap:
            other = matrix[target] - 1 if target > source else matrix[target]
            carried = self.moves.carry(order, place, other) if tried < _EMPTY else None
            if carried is not None:
                tried += 1
                yield carried

    def _shaken(self, best: _Scored) -> _Scored:
        """A few entries moved at random."""
        order = best.order
        for _ in range(_SHAKEN):
            moved = list(self.moves.single(order, order[self._draw(self.length)]))
            order = moved[self._draw(len(moved))] if moved else order
        return self._scored(order)

    def _draw(self, count: int) -> int:
        self.drawn = self.drawn * _MULTIPLIER % _MODULUS
        return self.drawn % count

    def _scored(self, order: list[int]) -> _Scored:
        return _Scored(self._clocks(self.wave, order), order)

    def _clocks(self, wave: PacedLoop, order: Sequence[int]) -> int:
        whole, before = self._trips(order)
        self.left -= len(whole) + len(before)
        return wave.clocks(whole, before)

    def _trips(self, order: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The whole kernel, and as much of its end as a wave needs to settle."""
        whole = self._whole(order)
        return whole, (whole * _SETTLES)[-_SETTLES * self.length :]

    def _whole(self, order: Sequence[int]) -> tuple[int, ...]:
        return tuple(period * self.length + entry for period in range(self.periods) for entry in order)


_ABOUT_THE_REPAIR = "W102"  # what a proof finds besides, that of the new order finds again
_JUDGED = 2  # orders, by the cycle model


class FastOrder(NamedTuple):
    """An order of the kernel's entries, the loop's predicted clocks in it, and those that its busiest unit needs."""

    order: tuple[int, ...]
    clocks: float
    least: float


def find_faster_order(written: CompiledLoop) -> FastOrder | None:
    """An unproved order of the kernel's entries, their own if none was found to be faster; None without a model.

    Orders that the quick model finds equally fast are ranked by it for late loads and reads; the cycle model decides
    among the first of them, and looks no further than one that keeps the busiest unit busy.
    """
    program = written.lowered
    try:
        device = device_of(program.machine)
        parameters, slow = nominal(device), unlucky(device)
        code = encode(program, parameters)
    except RotaError:  # the cycle model takes no such program, or has no figures of the device
        return None
    if written.staggered or len(set(code.roles)) > 1 or not code.load.mma_clocks:
        return None
    late = encode(program, slow)
    least = max(bounds_of(code).values())
    best = FastOrder((), inf, least)
    for order in _search_orders(written, (make_paced_loop(code, parameters), make_paced_loop(late, slow))):
        clocks = clocks_of(in_order(code, order), parameters)
        if clocks < best.clocks:
            best = FastOrder(order, clocks, least)
        if clocks <= least:
            break
    return best


def _search_orders(written: CompiledLoop, waves: tuple[PacedLoop, PacedLoop]) -> list[tuple[int, ...]]:
    """Orders by the quick model; the same in all periods of the unrolled kernel if these are alike."""
    kernel = written.lowered.kernel
    unroll = written.placement.unroll
    periods = next(count for count in range(unroll, 0, -1) if unroll % count == 0 and _periods_are_alike(kernel, count))
    length = len(kernel) // periods
    predecessors = [set[int]() for _ in range(length)]
    for later, those in enumerate(derive_must_follow(written.lowered)):
        predecessors[later % length] |= {each % length for each in those if each // length == later // length}
    fixed = [entry.effect.kind is OpKind.MMA for entry in kernel[:length]]
    return OrderSearch(*waves, predecessors, fixed, periods).run(_JUDGED)


def reorder(written: CompiledLoop, order: Sequence[int]) -> CompiledLoop:
    """The loop with its kernel's entries in another order; repairs follow their entries."""
    places = {number: place for place, number in enumerate(order)}
    moved = replace(
        written,
        kernel=tuple(replace(written.kernel[number], time_slot=place) for place, number in enumerate(order)),
        certificate=None,
        repairs=(),
        findings=tuple(each for each in written.findings if each.code == _ABOUT_THE_REPAIR),
    )
    repairs = tuple(renumber(each, Phase.KERNEL, places) for each in written.repairs)
    return replace(moved, repairs=tuple(sorted(repairs, key=lambda each: (list(Phase).index(each.phase), each.slot))))


def _periods_are_alike(kernel: Sequence[Entry], periods: int) -> bool:
    """True if all periods have the same entries, except for copies and counts."""
    length = len(kernel) // periods
    said = [entry.effect.counter if entry.effect.kind is OpKind.WAIT else entry.op.name for entry in kernel]
    return len(kernel) == length * periods and said == said[:length] * periods
