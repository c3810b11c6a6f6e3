"""A list schedule around given barriers: starts, or nothing.

Once barriers and computations have their slots, every other op has a window: from the barrier that it waits for to the
barrier or the computation that waits for it. Reads are placed as late as their windows allow, so that registers are
held briefly, then all others as early as possible. Barriers are tried in several places. Nothing is ever taken back, so
a failure says nothing; a result meets every precedence, window and unit, and takes a fraction of a solver's time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import le
from typing import NamedTuple

from rota.order.modulo.handover import Choice, Meeting

_TRIED = 96  # places for the barriers
_LISTS = 24  # where they leave windows: one of the first few does, or hardly any
_COMPARED = 8  # lists of which the best is taken
_GOLDEN = 0.6180339887498949, 0.7548776662466927, 0.8191725133961645  # steps that spread points evenly in 1, 2, 3 dims
_MEETINGS = 8  # ways for handovers to meet at them


class Listed(NamedTuple):
    """Starts of all ops, the slots of the barriers, and the least distance of any read after them."""

    starts: tuple[int, ...]
    barriers: tuple[int, ...]
    room: int


class _Tie(NamedTuple):
    """The second op starts this many slots after the first, within an iteration."""

    first: int
    second: int
    least: int


@dataclass(slots=True)
class _Windows:
    low: list[int]
    high: list[int]

    def narrow(self, ties: Sequence[_Tie]) -> _Windows | None:
        """The windows with all ties applied; None if an op has no start left."""
        low, high = list(self.low), list(self.high)
        changed = True
        while changed:
            changed = False
            for first, second, least in ties:
                if low[first] + least > low[second]:
                    low[second], changed = low[first] + least, True
            for first, second, least in reversed(ties):
                if high[second] - least < high[first]:
                    high[first], changed = high[second] - least, True
            if not all(map(le, low, high)):
                return None
        return _Windows(low, high)


def is_simple(choice: Choice, ii: int) -> bool:
    """True if stages of computations are settled, barriers aren't, and each unit is held by one op at a time.

    Where two groups of waves take turns at fixed barriers, no polish follows, and a list alone is slower.
    """
    single = all(resource.capacity == 1 for resource in choice.problem.resources)
    short = all(use.occupancy <= ii for op in choice.problem.ops for use in op.uses)
    return single and short and bool(choice.pinned) and not choice.staged and choice.barriers is None


class SlackList:
    """One request for a simple loop, with everything that doesn't depend on where barriers are."""

    def __init__(self, choice: Choice, ii: int, *, stages: int, landing: int, reading: int) -> None:
        self.choice, self.ii = choice, ii
        self.ops = choice.problem.ops
        last = (stages - 1) * ii
        self.fixed = {op: last + slot for op, slot in choice.pinned.items()}
        self.free = [op for op in range(len(self.ops)) if op not in self.fixed]
        self.readers = {reader for reader, _, _ in choice.deliveries}
        self.meetings = choice.meetings(landing, reading)
        self.uses = [[(use.resource, use.offset, (1 << use.occupancy) - 1) for use in op.uses] for op in self.ops]
        room, apart = _Room(ii, self.uses, {resource.name: 0 for resource in choice.problem.resources}), True
        for op, start in self.fixed.items():
            apart = apart and room.has(op, start)
            room.take(op, start)
        self.taken = room.taken
        self.ties = tuple(self._ties(reading))
        bounds = range(len(self.ops))
        given = _Windows([self.fixed.get(op, 0) for op in bounds], [self.fixed.get(op, last + ii - 1) for op in bounds])
        self.windows = given.narrow(self.ties) if apart else None
        self.inner = tuple(tie for tie in self.ties if not {tie.first, tie.second} & self.fixed.keys())
        self.near: dict[int, list[_Tie]] = {op: [] for op in self.free}
        for tie in self.ties:
            for op in {tie.first, tie.second} - self.fixed.keys():
                self.near[op].append(tie)

    def search(self, barriers: int) -> Listed | None:
        """Starts around this many barriers, in one of the first places that leave some.

        Among these, the one whose reads are farthest after their barriers: reads that crowd there delay computations.
        """
        if self.windows is None:
            return None
        ways = ((slots, windows) for slots in self._places(barriers) for windows in self._between(slots))
        found = islice(self._lists(islice(ways, _LISTS)), _COMPARED)
        return max(found, key=lambda each: each.room, default=None)

    def _lists(self, ways: Iterable[tuple[tuple[int, ...], _Windows]]) -> Iterator[Listed]:
        for slots, windows in ways:
            starts = self._place(windows)
            if starts is not None:
                room = min((starts[op] - windows.low[op] for op in self.readers), default=0)
                yield Listed(starts, slots, room)

    def _ties(self, reading: int) -> Iterator[_Tie]:
        """All ties except those that barriers enforce anyway."""
        kept = {
            (one, other, handover.distance): self.ops[one].latency + slack + lag
            for handover, slack, lag in self.meetings
            for one in handover.before
            for other in handover.after
        }
        for one, other, delay, distance in self.choice.problem.arcs:
            if one != other and delay > kept.get((one, other, distance), delay - 1):
                yield _Tie(one, other, delay - distance * self.ii)
        for one, other, delay, distance in self.choice.apart(reading):
            yield _Tie(one, other, delay - distance * self.ii)

    def _places(self, count: int) -> Iterator[tuple[int, ...]]:
        if not self.meetings:
            yield ()
            return
        steps = [_GOLDEN[count - 1] ** (number + 1) for number in range(count)] if count <= len(_GOLDEN) else []
        for number in range(_TRIED):
            slots = sorted({int(number * step % 1 * self.ii) for step in steps})
            if len(slots) == count:
                yield tuple(slots)

    def _between(self, barriers: Sequence[int]) -> Iterator[_Windows]:
        """The windows left if each handover is met at some instance of a barrier, one after the other."""
        if self.windows is not None:
            yield from islice(self._met(self.meetings, self.windows, barriers), _MEETINGS)

    def _met(self, meetings: Sequence[Meeting], windows: _Windows, barriers: Sequence[int]) -> Iterator[_Windows]:
        if not meetings:
            yield windows
            return
        (handover, slack, lag), *others = meetings
        over = max(windows.low[op] + self.ops[op].latency + slack for op in handover.before)
        begins = min(windows.high[op] + handover.distance * self.ii - lag for op in handover.after)
        instances = (range(over + (slot - over) % self.ii, begins + 1, self.ii) for slot in barriers)
        for pivot in sorted((each for some in instances for each in some), reverse=not handover.lands):
            left = _Windows(list(windows.low), list(windows.high))
            for op in handover.before:
                left.high[op] = min(left.high[op], pivot - self.ops[op].latency - slack)
            for op in handover.after:
                left.low[op] = max(left.low[op], pivot + lag - handover.distance * self.ii)
            narrowed = left.narrow(self.inner)
            if narrowed is not None:
                yield from self._met(others, narrowed, barriers)

    def _place(self, windows: _Windows) -> tuple[int, ...] | None:
        """Reads as late as possible, the last first; then the others as early as possible, the most urgent first."""
        room, starts = _Room(self.ii, self.uses, dict(self.taken)), dict(self.fixed)
        late = sorted((op for op in self.free if op in self.readers), key=lambda op: (-windows.high[op], -op))
        early = sorted((op for op in self.free if op not in self.readers), key=lambda op: (windows.high[op], op))
        for op in (*late, *early):
            low, high = self._window(op, windows, starts)
            tried = range(low, min(high, low + self.ii - 1) + 1)
            if op in self.readers:
                tried = range(high, max(low, high - self.ii + 1) - 1, -1)
            start = next((each for each in tried if room.has(op, each)), None)
            if start is None:
                return None
            room.take(op, start)
            starts[op] = start
        return tuple(starts[op] for op in range(len(self.ops)))

    def _window(self, op: int, windows: _Windows, starts: Mapping[int, int]) -> tuple[int, int]:
        """What the placed ops leave of a window."""
        low, high = windows.low[op], windows.high[op]
        for first, second, least in self.near[op]:
            if second == op and first in starts:
                low = max(low, starts[first] + least)
            if first == op and second in starts:
                high = min(high, starts[second] - least)
        return low, high


@dataclass(slots=True)
class _Room:
    """Which slots of each unit are taken, as bits."""

    ii: int
    uses: Sequence[Sequence[tuple[str, int, int]]]
    taken: dict[str, int]

    def has(self, op: int, start: int) -> bool:
        return not any(self.taken[unit] & self._bits(start + offset, held) for unit, offset, held in self.uses[op])

    def take(self, op: int, start: int) -> None:
        for unit, offset, held in self.uses[op]:
            self.taken[unit] |= self._bits(start + offset, held)

    def _bits(self, start: int, held: int) -> int:
        bits = held << (start % self.ii)
        return bits & ((1 << self.ii) - 1) | bits >> self.ii
