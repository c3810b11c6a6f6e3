"""A search for a faster order: takes a period's entries and what must stay behind what, gives the best orders found.

First the entries are listed anew: of the next few, the first that need not wait goes ahead, with loads and reads in
time or late.  From the best of these lists, and from the order that is there, entries move between the gaps of matrix
instructions as long as each move is faster; then a few entries are moved at random, and it begins anew.  The effort is
bounded by counts, and random is the same everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rota.cycles.order_pace import OrderPace
from rota.values.entry_moves import EntryMoves

_AHEAD = 8, 24  # entries that a list looks at
_LISTS = 3  # one made of the other
_AROUND = 6  # entries around a late one that are moved
_FULL, _EMPTY = 6, 4  # gaps that an entry is carried to or from; entries that are tried of each
_STEPS = 360_000  # entries, in all orders that are tried together
_CLIMB = 4  # part of them that one climb takes at most
_SWEEPS = 8
_SHAKEN = 3  # moves at random
_SHAKES = 8  # in vain, before it is given up
_MULTIPLIER, _MODULUS = 48271, 2**31 - 1  # of Park and Miller's generator
_SETTLES = 2  # periods, ahead of what is counted


class _Scored(NamedTuple):
    """An order and its clocks."""

    clocks: int
    order: list[int]


class OrderSearch:
    """Orders of one period, the same in all periods of the kernel.

    `wave` has loads and reads in time, `late` has them late; entries that are `fixed` are matrix instructions.
    """

    def __init__(
        self, wave: OrderPace, late: OrderPace, behind: Sequence[set[int]], fixed: Sequence[bool], periods: int
    ) -> None:
        self.wave, self.late, self.behind, self.fixed, self.periods = wave, late, behind, fixed, periods
        self.length, self.left, self.drawn = len(fixed), _STEPS, 1
        self.moves = EntryMoves(behind, fixed)

    def run(self, most: int) -> list[tuple[int, ...]]:
        """At most so many orders of the whole kernel, of the fewest clocks that were found; if late, the best first."""
        given = self._scored(list(range(self.length)))
        found = [given]
        for wave in (self.wave, self.late):
            lists = list(self._lists(given.order, wave))
            found += [*lists, self._climbed(min(lists, key=lambda each: each.clocks))]
        found.append(self._climbed(given))
        best = min(found, key=lambda each: each.clocks)
        shakes = _SHAKES
        while self.left > 0 and shakes and best.clocks > self.wave.loop.least:
            found.append(self._climbed(self._shaken(best)))
            shakes = _SHAKES if found[-1].clocks < best.clocks else shakes - 1
            best = min(found[-1], best, key=lambda each: each.clocks)
        orders = {tuple(each.order): None for each in found if each.clocks == best.clocks}
        ranked = sorted(orders, key=lambda order: self._clocks(self.late, order))
        return [self._whole(order) for order in ranked[:most]]

    def _lists(self, order: list[int], wave: OrderPace) -> Iterator[_Scored]:
        for ahead in _AHEAD:
            listed = order
            for _ in range(_LISTS):
                listed = self._listed(listed, ahead, wave)
                yield self._scored(listed)

    def _listed(self, order: list[int], ahead: int, wave: OrderPace) -> list[int]:
        """Of the next few entries always the first that stands least, none before what it must stay behind."""
        pace = wave.settled(*self._trips(order))
        left, listed = list(order), list[int]()
        while left:
            best = place = 0
            for other, entry in enumerate(left[:ahead]):
                if self.behind[entry].isdisjoint(left[:other]):
                    stall = pace.stall(entry)
                    if not other or stall < best:
                        best, place = stall, other
                    if not stall:
                        break
            entry = left.pop(place)
            pace.issue(entry)
            listed.append(entry)
        return listed

    def _climbed(self, best: _Scored) -> _Scored:
        """Moves, each to the first order that is faster."""
        end = self.left - _STEPS // _CLIMB
        for _ in range(_SWEEPS):
            before = best.clocks
            for entry in self._near_late(best.order):
                best = self._first_better(best, self.moves.single(best.order, entry), end)
            best = self._first_better(best, self._evened(best.order), end)
            if best.clocks in (before, self.wave.loop.least) or self.left <= max(end, 0):
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
        """Entries around those that are late, in order."""
        late = {each % self.length for each in self.wave.trip(*self._trips(order)).late}
        places = [place for place, entry in enumerate(order) if entry in late]
        near = {other for place in places for other in range(place - _AROUND, place + _AROUND + 1)}
        return [entry for place, entry in enumerate(order) if place in near and not self.fixed[entry]]

    def _evened(self, order: list[int]) -> Iterator[list[int]]:
        """Orders with an entry moved from a gap before a matrix instruction that is full to one that has room.

        A gap is full if the unit is free before the instruction comes, and has room if it is still busy then.
        """
        matrix = [place for place, entry in enumerate(order) if self.fixed[entry]]
        margins = self.wave.trip(*self._trips(order)).margins  # the first period's come first
        full = [number for number, place in enumerate(matrix) if margins[place] < 0]
        room = [number for number, place in enumerate(matrix) if margins[place] > 0]
        scarce = self.wave.loop.turns_are_scarce
        for wanted in room if scarce else full:
            for other in sorted(full if scarce else room, key=lambda each: abs(each - wanted))[:_FULL]:
                source, target = (other, wanted) if scarce else (wanted, other)
                yield from self._carried(order, matrix, source, target)
                low, step = min(source, target), -1 if target > source else 1
                shifted = self.moves.shifted(order, [order[matrix[n]] for n in range(low, max(source, target))], step)
                yield from [] if shifted is None else [shifted]

    def _carried(self, order: list[int], matrix: Sequence[int], source: int, target: int) -> Iterator[list[int]]:
        """Orders with an entry of one gap in another, those first that stand next to it."""
        begin = matrix[source - 1] + 1 if source else 0
        gap = range(begin, matrix[source])
        tried = 0
        for place in reversed(gap) if target > source else gap:
            other = matrix[target] - 1 if target > source else matrix[target]
            carried = self.moves.carried(order, place, other) if tried < _EMPTY else None
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

    def _clocks(self, wave: OrderPace, order: Sequence[int]) -> int:
        whole, before = self._trips(order)
        self.left -= len(whole) + len(before)
        return wave.clocks(whole, before)

    def _trips(self, order: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The whole kernel, and as much of its end as a wave takes to settle."""
        whole = self._whole(order)
        return whole, (whole * _SETTLES)[-_SETTLES * self.length :]

    def _whole(self, order: Sequence[int]) -> tuple[int, ...]:
        return tuple(period * self.length + entry for period in range(self.periods) for entry in order)
