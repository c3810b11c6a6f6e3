"""One way to run a loop: what a search for barriers and slack is given.  Takes and gives nothing but this value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from rota.order.modulo.handover import Delivery, Handover
from rota.order.modulo.longest import Arc
from rota.order.modulo.modulo_problem import ModuloProblem


class Meeting(NamedTuple):
    """A handover, what it adds to the latency of those before, and how far behind the others the last waves are."""

    handover: Handover
    slack: int
    behind: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One way to run the loop: its problem, what it hands over, and what is settled beforehand.

    `pinned` ops have the given slot, all in the last stage unless they are `staged` freely; the ops of a chain start in
    turn; `barriers` are slots, where they are not free, and groups of waves pass each of them `behind` slots apart, or
    a barrier so much later does as well.  Reads that are `gathered` are over at a barrier before their first use.
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
    behind: int = 0
    gathered: tuple[Handover, ...] = ()

    def turns(self) -> Iterator[tuple[int, int, int]]:
        """Ops that start one after the other, and how many slots apart: what both hold is free again by then."""
        single = {resource.name for resource in self.problem.resources if resource.capacity == 1}
        for chain in self.chains:
            for first, second in pairwise(chain):
                held = {(use.resource, use.offset): use.occupancy for use in self.problem.ops[first].uses}
                shared = ((use.resource, use.offset) for use in self.problem.ops[second].uses)
                yield first, second, max((held.get(use, 1) for use in shared if use[0] in single), default=1)

    def apart(self, reading: int) -> Iterator[Arc]:
        """What keeps ops apart besides precedences: their turns, and the slack of reads before their use."""
        for reader, user, distance in self.deliveries:
            yield Arc(reader, user, self.problem.ops[reader].latency + reading, distance)
        yield from (Arc(first, second, slots, 0) for first, second, slots in self.turns())

    def meetings(self, landing: int, reading: int) -> tuple[Meeting, ...]:
        """All handovers, if loads and reads may be so late."""
        return (
            *(Meeting(each, landing if each.lands else reading, self.behind) for each in self.handovers),
            *(Meeting(each, reading, 0) for each in self.gathered),
        )
