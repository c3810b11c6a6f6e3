"""Races in LDS: takes the accesses of all waves between two barriers, gives pairs that nothing keeps apart.

An access is open from the stretch (between two barriers) of its issue to that of the wait that covers it.  Two waves'
accesses that are open in one stretch, use a common byte and of which one writes are a race: no barrier with a wait
before it stands between them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rota.prove.squad import Flight, LdsUse, Squad

_STRETCH = 4096  # pairs between two looks at the budget
WRITES = frozenset({"write", "dma"})


class Open(NamedTuple):
    """An access that is open, of which wave."""

    wave: int
    access: LdsUse
    octets: int
    flight: Flight


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Two accesses of different waves, and the bytes that both use."""

    first: Open
    then: Open
    octets: int

    @property
    def doubled(self) -> bool:
        """Is it one load to LDS that two waves issue together?"""
        return self.first.flight is self.then.flight and self.first.access.how == "dma"


def open_accesses(squad: Squad) -> list[tuple[LdsUse, Flight]]:
    """What a squad has open in this stretch."""
    flights = (*squad.vm, *squad.ds, *(each for each, _ in squad.flat))
    return [*squad.done.items(), *((each.access, each) for each in flights if each.access is not None)]


def find_conflicts(  # noqa: C901
    squads: Sequence[Squad],
    counts: Callable[[Conflict], bool] = lambda _: True,
    *,
    most: int = 64,
    still: Callable[[int], None] = lambda _: None,
) -> list[Conflict]:
    """All pairs that count, up to a number of them: each pair of operations once.

    Where few of many count, the search is long: `still` is told of pairs on the way, and raises when it has to end.
    """
    waves: dict[int, list[Open]] = {}
    sums: dict[int, list[int]] = {}
    for squad in squads:
        found = open_accesses(squad)
        if not found:
            continue
        for place, wave in enumerate(squad.waves):
            written = used = atomic = 0
            mine = waves.setdefault(wave, [])
            for access, flight in found:
                octets = access.bytes[place]
                if not octets:
                    continue
                mine.append(Open(wave, access, octets, flight))
                if access.how in WRITES:
                    written |= octets
                elif access.how == "atomic":
                    atomic |= octets
                else:
                    used |= octets
            sums[wave] = [used, written, atomic]
    conflicts: dict[tuple[int, int], Conflict] = {}
    order = sorted(sums)
    for place, one in enumerate(order):
        reads, writes, atomics = sums[one]
        for other in order[place + 1 :]:
            reads2, writes2, atomics2 = sums[other]
            hit = (
                writes & (reads2 | writes2 | atomics2)
                | writes2 & (reads | atomics)
                | atomics & reads2
                | atomics2 & reads
            )
            if hit:
                _pairs(waves[one], waves[other], hit, conflicts, counts, most, still)
    return list(conflicts.values())


def _pairs(  # noqa: PLR0917
    mine: list[Open],
    yours: list[Open],
    hit: int,
    conflicts: dict[tuple[int, int], Conflict],
    counts: Callable[[Conflict], bool],
    most: int,
    still: Callable[[int], None],
) -> None:
    left = [each for each in mine if each.octets & hit]
    right = [each for each in yours if each.octets & hit]
    still(len(mine) + len(yours))  # the first time, too: there may be many short searches
    looked = 0
    for one in left:
        if len(conflicts) >= most:
            return
        looked += len(right)
        if looked > _STRETCH:
            still(looked)
            looked = 0
        for other in right:
            common = one.octets & other.octets
            if not common or not clash(one.access.how, other.access.how):
                continue
            in_turn = (one.flight.epoch, one.access.number) <= (other.flight.epoch, other.access.number)
            first, then = (one, other) if in_turn else (other, one)
            key = (first.access.number, then.access.number)
            if key not in conflicts and len(conflicts) < most:
                conflict = Conflict(first=first, then=then, octets=common)
                if counts(conflict):
                    conflicts[key] = conflict


def clash(one: str, other: str) -> bool:
    """Does it matter which of two comes first?"""
    if one in WRITES or other in WRITES:
        return True
    return {one, other} == {"read", "atomic"}
