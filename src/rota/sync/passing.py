"""Which entries of a loop may pass each other: takes a synchronised program, gives what each entry must stay behind.

An order of the kernel that keeps all of this meets every obligation that the given one meets: memory ops of a counter
and its waits keep their order, so that every wait counts the same; no access to memory passes a barrier; and no op
passes another that it shares a register with, or the wait that its operands are covered by.  What computes keeps its
order, too.  It is sufficient, not necessary; a schedule is proved again whatever its order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rota.program.effects import Place, Space
from rota.program.entry import Entry
from rota.program.kinds import OpKind
from rota.program.lowered import LoweredProgram

_TRIPS = 3  # after the prologue; what is covered where is settled by then


def derive_must_follow(program: LoweredProgram) -> tuple[frozenset[int], ...]:
    """For each entry of the kernel those that it must not overtake; what follows from others may be missing."""
    behind: list[set[int]] = [set() for _ in program.kernel]
    for earlier, later in (*_kept(program.kernel), *_conflicting(program.kernel), *_covered(program)):
        behind[later].add(earlier)
    return tuple(map(frozenset, behind))


def _kept(kernel: Sequence[Entry]) -> Iterator[tuple[int, int]]:
    """Pairs in order: of a counter, of the matrix unit, of waits and barriers."""
    last: dict[str, int] = {}
    barrier, since = None, list[int]()
    for number, entry in enumerate(kernel):
        effect = entry.effect
        chains = [effect.counter or (effect.kind.name if effect.kind is OpKind.MMA else "")]
        chains += ["synchronisation"] if entry.op.is_framework else []
        for chain in filter(None, chains):
            if chain in last:
                yield last[chain], number
            last[chain] = number
        if effect.kind is OpKind.BARRIER:
            yield from ((each, number) for each in since)
            barrier, since = number, []
        elif effect.counter is not None:
            since.append(number)
            if barrier is not None:
                yield barrier, number


def _conflicting(kernel: Sequence[Entry]) -> Iterator[tuple[int, int]]:
    """Pairs of which one writes what the other reads or writes; what only adds to a sum may come in any order."""
    writer: dict[Place, int] = {}
    readers: dict[Place, list[int]] = {}
    for number, entry in enumerate(kernel):
        for place in entry.effect.reads:
            if place in writer:
                yield writer[place], number
            readers.setdefault(place, []).append(number)
        for place in entry.effect.writes:
            if place in writer and place.space is not Space.ACCUMULATOR:
                yield writer[place], number
            yield from ((each, number) for each in readers.pop(place, ()) if each != number)
            writer[place] = number


class _Flight:
    """What a wave has under way: which op filled a place last, and which wait covered it."""

    def __init__(self) -> None:
        self.pending: dict[str, list[tuple[int, tuple[Place, ...]]]] = {}
        self.filled: dict[Place, int] = {}
        self.covered: dict[Place, tuple[int, int] | None] = {}
        self.ops = 0

    def wait(self, counter: str, left: int, moment: tuple[int, int]) -> None:
        """All but the youngest `left` tokens are over."""
        tokens = self.pending.setdefault(counter, [])
        over = max(len(tokens) - left, 0)
        for op, places in tokens[:over]:
            for place in places:
                if self.filled[place] == op:
                    self.covered[place] = moment
        del tokens[:over]

    def issue(self, counter: str, count: int, places: tuple[Place, ...]) -> None:
        """An op whose last token says that its places are filled."""
        self.ops += 1
        for place in places:
            self.filled[place], self.covered[place] = self.ops, None
        self.pending.setdefault(counter, []).extend([(self.ops, ())] * (count - 1) + [(self.ops, places)])


def _covered(program: LoweredProgram) -> Iterator[tuple[int, int]]:
    """From each wait of the kernel to the ops of the same trip whose operands it covers."""
    flight, outside = _Flight(), -1
    written = [(outside, number, entry) for number, entry in enumerate(program.prologue)]
    written += [(trip, number, entry) for trip in range(_TRIPS) for number, entry in enumerate(program.kernel)]
    for trip, number, entry in written:
        effect = entry.effect
        if effect.kind is OpKind.WAIT:
            flight.wait(effect.counter or "", effect.wait_value, (trip, number))
            continue
        for place in effect.reads:
            moment = flight.covered.get(place)
            if moment is not None and moment[0] == trip != outside:
                yield moment[1], number
        if effect.counter is not None and effect.tokens:
            flight.issue(effect.counter, effect.tokens, effect.writes)
