"""Barriers that are words of LDS: who arrives, and what a wave that has seen a phase end may count on.

A word holds how many arrivals, less one, end its phase, and a bit that turns then; waves poll it.  An arrival marks
what its wave has done in LDS before; a wave that has seen the bit turn comes after all that is so marked.  One phase of
each word is followed: where waves arrive again in a loop, the proof ends.  Where more arrive than the word counts, some
wave may go on before others have arrived, and the word orders nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, NamedTuple

from rota.prove.named_barriers import WORKGROUP, BarrierError

if TYPE_CHECKING:
    from rota.prove.operation import Operation
    from rota.prove.state import InFlight, WaveSet

BYTES, PHASE_BIT = 8, 1 << 29
PENDING = PHASE_BIT - 1  # bits: arrivals that are still to come, less one
POLLING = -2  # the target of a wave that waits for a phase to end


class Mbarrier(NamedTuple):
    """The first phase of the word at that byte of LDS; it is `settled` once the workgroup has met since."""

    place: int
    needed: int
    arrived: int = 0
    settled: bool = False
    broken: bool = False

    @property
    def ended(self) -> bool:
        return self.arrived >= self.needed


def find_phase(wave_set: WaveSet, place: int) -> Mbarrier | None:
    return next((each for each in wave_set.named.phases if each.place == place), None)


def set_up(place: int, word: int, wave_sets: Iterable[WaveSet]) -> None:
    """A lane has written a word; if waves arrive at it later, that began its first phase."""
    for each in wave_sets:
        _put(each, Mbarrier(place, (word & PENDING) + 1))


def settle(wave_sets: Sequence[WaveSet]) -> None:
    """The workgroup meets: what was set up before, and has landed, is seen by all; so is the end of a phase."""
    landing, acquired = 0, frozenset[int]().union(*(each.named.acquired for each in wave_sets if not each.ended))
    for each in wave_sets:
        for flight in each.in_flight:
            if flight.access is not None and flight.access.how == "write":
                landing |= reduce(or_, flight.access.bytes)
    for each in wave_sets:
        phases = (
            phase if landing & _bytes_at(phase.place) else phase._replace(settled=True) for phase in each.named.phases
        )
        each.named = each.named._replace(phases=tuple(phases), acquired=acquired)


def overwrite(octets: int, wave_sets: Iterable[WaveSet]) -> None:
    """Bytes of LDS are written by something that sets no barrier up."""
    for each in wave_sets:
        hit = {phase for phase in each.named.phases if octets & _bytes_at(phase.place)}
        if any(phase.arrived for phase in hit):
            raise BarrierError("an mbarrier is written again after waves have arrived at it")
        if hit:
            each.named = each.named._replace(phases=tuple(phase for phase in each.named.phases if phase not in hit))


def _bytes_at(place: int) -> int:
    return (1 << BYTES) - 1 << place


def arrive(wave_set: WaveSet, place: int, lanes: int, wave_sets: Sequence[WaveSet], *, loops: bool) -> bool:
    """Count arrivals of a wave set; False if the word orders nothing."""
    phase = find_phase(wave_set, place)
    if phase is None or not phase.settled:
        raise BarrierError("waves arrive at an mbarrier that may not be set up yet")
    if phase.ended and (loops or wave_set.named.acquired):  # else nobody has waited for anything
        raise BarrierError("waves arrive at an mbarrier again; only its first phase is followed")
    counted = phase.arrived + lanes
    after = phase._replace(arrived=min(counted, phase.needed), broken=phase.broken or counted > phase.needed)
    for each in wave_sets:
        _put(each, after)
        if after.broken:
            each.named = each.named._replace(acquired=each.named.acquired - {place})
            each.forget_order(place)
    return not after.broken


def poll(wave_set: WaveSet, phase: Mbarrier, number: int) -> int | None:
    """The bit that a wave reads: as it was at first, the next time as it is once the phase has ended; else None."""
    named, place = wave_set.named, phase.place
    if not phase.settled or wave_set.signalled:
        raise BarrierError("a wave polls an mbarrier that may not be set up yet, or between a signal and its wait")
    if named.polled != number:
        wave_set.named = named._replace(polled=number)
        return PHASE_BIT if place in named.acquired else 0
    if place in named.acquired:
        raise BarrierError("a wave waits for an mbarrier again; only its first phase is followed")
    if not phase.ended:
        wave_set.named = named._replace(target=POLLING, awaited=place)
        return None
    wave_set.named = named._replace(acquired=named.acquired | {place})
    return PHASE_BIT


def leave(wave_set: WaveSet, operations: Sequence[Operation]) -> None:
    """Forget that a wave has polled once it is out of the loop that does."""
    polled = wave_set.named.polled
    if polled >= 0 and not operations[polled].polls[0] <= wave_set.at <= operations[polled].polls[1]:
        wave_set.named = wave_set.named._replace(polled=-1)


def find_polling(waiting: Iterable[WaveSet]) -> list[WaveSet]:
    """The waiting wave sets whose phase has ended."""
    found = []
    for each in waiting:
        phase = find_phase(each, each.named.awaited) if each.named.target == POLLING else None
        if phase is not None and phase.ended:
            found.append(each)
    return found


def resume(wave_set: WaveSet) -> None:
    wave_set.waiting = False
    wave_set.named = wave_set.named._replace(target=WORKGROUP, awaited=-1)


def mark(flight: InFlight, place: int) -> InFlight:
    """An access that is over when its wave arrives there."""
    return flight if flight.access is None else flight._replace(released=flight.released | {place})


def are_ordered(one: InFlight, other: InFlight) -> bool:
    """True if a wave had seen the end of a phase, at which the other's arrival counted, before it made its access."""
    return not one.released.isdisjoint(other.acquired) or not other.released.isdisjoint(one.acquired)


def _put(wave_set: WaveSet, phase: Mbarrier) -> None:
    others = (each for each in wave_set.named.phases if each.place != phase.place)
    wave_set.named = wave_set.named._replace(phases=tuple(sorted((*others, phase))))
