"""What waves hand over through LDS, and which choices a search for barriers and slack is given.

Both directions need a barrier: what one wave loaded, all waves read; and what all waves have read, one overwrites.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from rota.order.graph import Arc, Cycle, longest_starts
from rota.order.modulo.modulo_problem import ModuloProblem
from rota.program.kinds import LDS_READS, Home, OpKind
from rota.program.loop_spec import LoopSpec, Read


class Handover(NamedTuple):
    """Every op of `before` completes, in all waves, before one of `after`, `distance` iterations later, starts.

    `lands` if data arrives; otherwise a buffer becomes free.
    """

    value: str
    before: tuple[int, ...]
    after: tuple[int, ...]
    distance: int
    lands: bool


class Delivery(NamedTuple):
    """Registers that `reader` fills and that `user`, `distance` iterations later, needs first."""

    reader: int
    user: int
    distance: int


def derive_handovers(spec: LoopSpec, copies: Mapping[str, int]) -> Iterator[Handover]:
    """Two for each LDS tile, for its parts that are read together, and for the distance of that read."""
    number = {op.name: index for index, op in enumerate(spec.ops)}
    for value in spec.values:
        if value.home is not Home.LDS:
            continue
        readers: dict[Read, list[int]] = {}
        for index, op in enumerate(spec.ops):
            for read in op.reads:
                if read.value == value.name:
                    readers.setdefault(read, []).append(index)
        for read, ops in readers.items():
            writers = tuple(number[op.name] for op in spec.writers_of(read))
            yield Handover(value.name, writers, tuple(ops), read.distance, lands=True)
            free = copies.get(value.name, 1) - read.distance
            yield Handover(value.name, tuple(ops), writers, free, lands=False)


def derive_deliveries(spec: LoopSpec, kinds: Collection[OpKind] = LDS_READS) -> Iterator[Delivery]:
    """From each op of these kinds that fills registers to each op that uses them."""
    filled = {
        name: index
        for index, op in enumerate(spec.ops)
        if op.kind in kinds
        for name in op.writes
        if spec.value(name).home is Home.REGISTERS
    }
    for index, op in enumerate(spec.ops):
        for read in op.reads:
            if read.value in filled:
                yield Delivery(filled[read.value], index, read.distance)


class Meeting(NamedTuple):
    """A handover, what it adds to the latency of the ops before it, and how far the last waves lag."""

    handover: Handover
    slack: int
    lag: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One way to run the loop: its problem, what it hands over, and what is settled beforehand.

    `pinned` ops have the given slot, all in the last stage unless they are `staged` freely; the ops of a chain start in
    turn; `barriers` are slots, where they are not free, and groups of waves pass each of them `lag` slots apart, or
    a barrier this much later does as well.  Reads that are `gathered` are over at a barrier before their first use.
    """

    problem: ModuloProblem
    copies: tuple[tuple[str, int], ...]
    handovers: tuple[Handover, ...]
    deliveries: tuple[Delivery, ...]
    stages: range
    pinned: Mapping[int, int] = field(default_factory=dict)
    staged: bool = False
    chains: tuple[tuple[int, ...], ...] = ()
    barriers: tuple[int, ...] | None = None
    lag: int = 0
    gathered: tuple[Handover, ...] = ()

    def turns(self) -> Iterator[tuple[int, int, int]]:
        """Ops that start one after the other, and how many slots apart: by then their shared unit is free again."""
        single = {resource.name for resource in self.problem.resources if resource.capacity == 1}
        for chain in self.chains:
            for first, second in pairwise(chain):
                held = {(use.resource, use.offset): use.occupancy for use in self.problem.ops[first].uses}
                shared = ((use.resource, use.offset) for use in self.problem.ops[second].uses)
                yield first, second, max((held.get(use, 1) for use in shared if use[0] in single), default=1)

    def apart(self, reading: int) -> Iterator[Arc]:
        """What separates ops besides precedences: their turns, and the slack of reads before their use."""
        for reader, user, distance in self.deliveries:
            yield Arc(reader, user, self.problem.ops[reader].latency + reading, distance)
        yield from (Arc(first, second, slots, 0) for first, second, slots in self.turns())

    def meetings(self, landing: int, reading: int) -> tuple[Meeting, ...]:
        """All handovers, if loads and reads may be this late."""
        return (
            *(Meeting(each, landing if each.lands else reading, self.lag) for each in self.handovers),
            *(Meeting(each, reading, 0) for each in self.gathered),
        )


# Computations in turn.
#
# The spine, whose unit is held longest, comes evenly. The others fill the gaps, each kind in its own order and
# spread over the interval: of what fits, what is due first.


class Issued(NamedTuple):
    """An op: the issue turns it takes, and the slots until its unit accepts the next."""

    op: int
    turns: int
    holds: int


def weave(spine: Sequence[Issued], kinds: Sequence[Sequence[Issued]], ii: int) -> dict[int, int] | None:
    """A slot for each op, all within one interval; None if that spread doesn't fit."""
    slots = dict(_evenly(spine, ii))
    due = dict(pair for kind in kinds for pair in _evenly(kind, ii))
    waiting = [list(reversed(kind)) for kind in kinds]
    free = [0] * len(kinds)
    gaps = [(slots[each.op] + each.turns, after) for each, after in zip(spine, [*slots.values(), ii][1:], strict=True)]
    for begin, end in gaps or [(0, ii)]:
        now = begin
        while now < end:
            fitting = [k for k, left in enumerate(waiting) if left and free[k] <= now and now + left[-1].turns <= end]
            if not fitting:
                now += 1
                continue
            first = min(fitting, key=lambda k: due[waiting[k][-1].op])
            op, turns, holds = waiting[first].pop()
            slots[op], free[first] = now, now + holds
            now += turns
    return None if any(waiting) or any(_holds_twice(kind, slots, ii) for kind in (spine, *kinds)) else slots


def _evenly(kind: Sequence[Issued], ii: int) -> Iterator[tuple[int, int]]:
    total, before = sum(each.holds for each in kind), 0
    for op, _, holds in kind:
        yield op, before * ii // max(total, 1)
        before += holds


def _holds_twice(kind: Sequence[Issued], slots: Mapping[int, int], ii: int) -> bool:
    """True if the unit is held twice, within the interval or around its end."""
    if not kind:
        return False
    return slots[kind[-1].op] + kind[-1].holds > slots[kind[0].op] + ii or any(
        slots[first.op] + first.holds > slots[second.op] for first, second in pairwise(kind)
    )


def has_stages(slots: Mapping[int, int], arcs: Sequence[Arc], ii: int) -> bool:
    """True if ops in these slots can get stages that keep every arc between two of them."""
    number = {op: place for place, op in enumerate(slots)}
    between = [
        Arc(number[p], number[c], -((slots[c] + distance * ii - slots[p] - delay) // ii), 0)
        for p, c, delay, distance in arcs
        if p in number and c in number
    ]
    return not isinstance(longest_starts(len(number), between, 0), Cycle)
