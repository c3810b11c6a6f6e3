"""Polish: takes a synchronised loop, gives it with entries moved between matrix instructions, if it is faster so.

A search for starts gives a turn to every op of the loop.  Waits, barriers, the loop's edge and what sets up a load take
turns, too, and stand where they are needed; so some gaps between two matrix instructions are crowded while others are
empty.  First the entries are listed anew: of the next few, the first that need not wait goes ahead.  Then single
entries move past a few matrix instructions as long as each move is faster.  Both go by `order_pace`; the cycle model
decides whether the result is faster.  No entry passes another that it must stay behind (`sync.passing`), and the result
is proved like any other.  The effort is bounded by a count, so the answer depends on nothing but the loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rota.cycles.instructions import encode
from rota.cycles.order_pace import OrderPace, WavePace, in_lockstep
from rota.cycles.parameters import nominal
from rota.cycles.predict import clocks_per_tile
from rota.errors import RotaError
from rota.program.entry import Entry
from rota.program.kinds import OpKind
from rota.program.phase import Phase
from rota.sync.passing import derive_must_follow
from rota.sync.repair import renumbered
from rota.targets.device import device_of
from rota.values.compiled_loop import CompiledLoop

_ABOUT_THE_REPAIR = "W102"  # what a proof finds besides, that of the new order finds again
_AHEAD = 8, 24  # entries that a list looks at
_LISTS = 3  # one made of the other
_FURTHEST = 3  # matrix instructions that one move passes
_AROUND = 6  # entries around a late one that are moved
_STEPS = 120_000  # entries, in all orders that are tried together
_SWEEPS = 8


def faster_order(written: CompiledLoop) -> tuple[int, ...] | None:
    """An order of the kernel's entries in which the loop is faster, not proved; None if none was found."""
    program = written.lowered
    try:
        parameters = nominal(device_of(program.machine))
        code = encode(program, parameters)
    except RotaError:  # the cycle model takes no such program, or has no figures of the device
        return None
    if written.staggered or not in_lockstep(code) or not code.load.mma_clocks:
        return None
    order = _Search(written, OrderPace(code, parameters, len(program.kernel))).run()
    faster = order is not None and clocks_per_tile(reordered(written, order)) < clocks_per_tile(written)
    return order if faster else None


def reordered(written: CompiledLoop, order: Sequence[int]) -> CompiledLoop:
    """The loop with the entries of its kernel in another order; its repairs keep to their entries."""
    places = {number: place for place, number in enumerate(order)}
    moved = replace(
        written,
        kernel=tuple(replace(written.kernel[number], time_slot=place) for place, number in enumerate(order)),
        certificate=None,
        repairs=(),
        findings=tuple(each for each in written.findings if each.code == _ABOUT_THE_REPAIR),
    )
    repairs = tuple(renumbered(each, Phase.KERNEL, places) for each in written.repairs)
    return replace(moved, repairs=tuple(sorted(repairs, key=lambda each: (list(Phase).index(each.phase), each.slot))))


class _Search:
    """Orders of one period, the same in all periods of the unrolled kernel if these are alike."""

    def __init__(self, written: CompiledLoop, wave: OrderPace) -> None:
        kernel = written.lowered.kernel
        self.wave = wave
        self.periods = written.placement.unroll if _alike(kernel, written.placement.unroll) else 1
        self.length = len(kernel) // self.periods
        self.behind = [set[int]() for _ in range(self.length)]
        for later, those in enumerate(derive_must_follow(written.lowered)):
            same = (each for each in those if each // self.length == later // self.length)
            self.behind[later % self.length] |= {each % self.length for each in same}
        self.fixed = [entry.effect.kind is OpKind.MMA for entry in kernel[: self.length]]
        self.left = _STEPS // len(kernel) if kernel else 0

    def run(self) -> tuple[int, ...] | None:
        """The order found, of the whole kernel; None if none is better than the one that is there."""
        order = list(range(self.length))
        first = self._clocks(order)
        starts = [(first, order)]
        for ahead in _AHEAD:
            listed = order
            for _ in range(_LISTS):
                listed = self._listed(listed, ahead)
                starts.append((self._clocks(listed), listed))
        best = min(starts, key=lambda each: each[0])
        for start in (starts[0], best):
            best = min(best, self._climbed(*start), key=lambda each: each[0])
        return None if best[0] == first else self._whole(best[1])

    def _listed(self, order: list[int], ahead: int) -> list[int]:
        """Of the next few entries always the first that stands least, none before what it must stay behind."""
        pace = WavePace(self.wave)
        for _ in range(2):
            pace.trip(self._whole(order))
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

    def _climbed(self, least: int, order: list[int]) -> tuple[int, list[int]]:
        """Single moves, each to the first place at which it is faster."""
        for _ in range(_SWEEPS):
            before = least
            for entry in self._near_late(order):
                least, order = self._moved(least, order, entry)
            if least == before or self.left <= 0:
                break
        return least, order

    def _near_late(self, order: list[int]) -> list[int]:
        """Entries around those that are late, in order."""
        late = {each % self.length for each in self.wave.late(self._whole(order))}
        places = [place for place, entry in enumerate(order) if entry in late]
        near = {other for place in places for other in range(place - _AROUND, place + _AROUND + 1)}
        return [entry for place, entry in enumerate(order) if place in near and not self.fixed[entry]]

    def _moved(self, least: int, order: list[int], entry: int) -> tuple[int, list[int]]:
        place = order.index(entry)
        for other in self._places(order, place):
            if self.left <= 0:
                break
            tried = order[:place] + order[place + 1 :]
            tried.insert(other, entry)
            clocks = self._clocks(tried)
            if clocks < least:
                return clocks, tried
        return least, order

    def _places(self, order: list[int], place: int) -> Iterator[int]:
        """Places one to three matrix instructions earlier, or else later."""
        entry = order[place]
        for step in (-1, 1):
            other, passed = place + step, 0
            while 0 <= other < self.length and passed < _FURTHEST:
                first, second = (order[other], entry) if step < 0 else (entry, order[other])
                if first in self.behind[second]:
                    break
                if self.fixed[order[other]]:
                    passed += 1
                    yield other
                other += step

    def _clocks(self, order: Sequence[int]) -> int:
        self.left -= 1
        return self.wave.clocks(self._whole(order))

    def _whole(self, order: Sequence[int]) -> tuple[int, ...]:
        return tuple(period * self.length + entry for period in range(self.periods) for entry in order)


def _alike(kernel: Sequence[Entry], periods: int) -> bool:
    """Do all periods have the same entries, but for the copies and counts?"""
    length = len(kernel) // periods
    said = [entry.effect.counter if entry.effect.kind is OpKind.WAIT else entry.op.name for entry in kernel]
    return len(kernel) == length * periods and said == said[:length] * periods
