"""Barriers that are words of LDS: who arrives, and what a wave that has seen a phase end may count on.

A word holds how many arrivals, less one, end its phase, and a bit that turns then; waves poll it.  An arrival marks
what is before it: what its wave has done in LDS, and what that wave knows to be over.  Who has seen the phase end comes
after all that is so marked, and knows what those who arrived knew.

Phases are counted back from the present one, which is 0.  A mark says at which phase of a word an access was over; a
lag, how many ends of phases a wave doesn't know of.  A mark larger than the lag is known: both grow by one where a
phase ends, so that a loop comes back to the same numbers.

A phase has the arrivals that it is given here only if none of them can come to another one.  So whoever arrives must
know that all earlier phases have ended, and no phase gets more than it counts.  Else the word orders nothing, and the
proof ends if somebody has relied on it.
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

Marks = frozenset[tuple[int, int]]
"""Bytes of LDS where barriers are, each with a number of phases."""
BYTES, PHASE_BIT = 8, 1 << 29
PENDING = PHASE_BIT - 1  # bits: arrivals that are still to come, less one
UNKNOWN = 0xFFFF_FFFF ^ PHASE_BIT  # bits of what a wave reads: more of them count phases
POLLING = -2  # the target of a wave that waits for a phase to end
STUCK = -3  # of one that can't be followed any further, while others still can
NO_MARKS: Marks = frozenset()
_MOST, _LOST = 4, 99  # phases that are counted, and a lag that is larger


class Mbarrier(NamedTuple):
    """The word at that byte of LDS in its present phase; it is `settled` once the workgroup has met since.

    `bit` is that of its phase, `carried` the lags of those who have arrived, `past` that of phases which have ended.
    `by` are the waves that have arrived, or did so last.
    """

    place: int
    needed: int
    arrived: int = 0
    settled: bool = False
    broken: bool = False
    bit: int = 0
    carried: Marks = NO_MARKS
    past: tuple[Marks, ...] = ()
    by: tuple[int, ...] = ()


class KnownNumber(NamedTuple):
    """Bytes of LDS that hold a number which is known; they are `settled` once the workgroup has met since."""

    place: int
    data: bytes
    settled: bool = False


def find_phase(wave_set: WaveSet, place: int) -> Mbarrier | None:
    return next((each for each in wave_set.named.phases if each.place == place), None)


def knows(lags: Marks, released: Marks) -> bool:
    """True if who has these lags comes after what was over at these phases."""
    return bool(released) and any(there == place and phase > lag for place, lag in lags for there, phase in released)


def are_ordered(one: InFlight, other: InFlight) -> bool:
    """True if a wave knew, when it made its access, that the other's was over."""
    return knows(other.lags, one.released) or knows(one.lags, other.released)


def _lag_of(wave_set: WaveSet, place: int) -> int:
    return next((lag for there, lag in wave_set.named.lags if there == place), _LOST)


def _least(*lags: Marks) -> Marks:
    """What is known of a barrier by one of several."""
    found: dict[int, int] = {}
    for place, lag in frozenset[tuple[int, int]]().union(*lags):
        found[place] = min(lag, found.get(place, _LOST))
    return frozenset(found.items())


def _grow(marks: Marks, place: int, *, beyond: int) -> Marks:
    """The same after the end of one more phase; a number that isn't counted any more becomes that one."""
    if not any(there == place for there, _ in marks):
        return marks
    return frozenset(
        (there, number if there != place else number + 1 if number < _MOST else beyond) for there, number in marks
    )


# Words and their numbers.


def set_up(place: int, word: int, wave_sets: Iterable[WaveSet]) -> None:
    """A lane has written a word; if waves arrive at it later, that began its first phase."""
    for each in wave_sets:
        _put(each, Mbarrier(place, (word & PENDING) + 1))
        each.named = each.named._replace(lags=_least(each.named.lags, frozenset({(place, 0)})))


def write(place: int, data: bytes, wave_sets: Iterable[WaveSet]) -> None:
    """Waves have written a number; what was there before has been overwritten."""
    for each in wave_sets:
        each.named = each.named._replace(words=tuple(sorted((*each.named.words, KnownNumber(place, data)))))


def read(wave_set: WaveSet, place: int, size: int) -> int | None:
    """The number that these bytes hold, if all of them are known."""
    for each in wave_set.named.words:
        start = place - each.place
        if each.settled and start >= 0 and start + size <= len(each.data):
            return int.from_bytes(each.data[start : start + size], "little")
    return None


def settle(wave_sets: Sequence[WaveSet]) -> None:
    """The workgroup meets: what was set up before, and has landed, is seen by all; so are the ends of phases."""
    landing, lags = 0, _least(*(each.named.lags for each in wave_sets if not each.ended))
    for each in wave_sets:
        for flight in each.in_flight:
            if flight.access is not None and flight.access.how == "write":
                landing |= reduce(or_, flight.access.bytes)
    for each in wave_sets:
        phases = tuple(
            phase if landing & _bytes_at(phase.place) else phase._replace(settled=True) for phase in each.named.phases
        )
        words = tuple(
            word if landing & _bytes_at(word.place, len(word.data)) else word._replace(settled=True)
            for word in each.named.words
        )
        each.named = each.named._replace(phases=phases, words=words, lags=lags)


def overwrite(octets: int, wave_sets: Iterable[WaveSet]) -> None:
    """Bytes of LDS are written by something that sets no barrier up."""
    for each in wave_sets:
        hit = {phase for phase in each.named.phases if octets & _bytes_at(phase.place)}
        if any(phase.arrived or phase.past for phase in hit):
            raise BarrierError("an mbarrier is written again after waves have arrived at it")
        gone = {phase.place for phase in hit}
        each.named = each.named._replace(
            phases=tuple(phase for phase in each.named.phases if phase not in hit),
            words=tuple(word for word in each.named.words if not octets & _bytes_at(word.place, len(word.data))),
            lags=frozenset(mark for mark in each.named.lags if mark[0] not in gone),
        )


def _bytes_at(place: int, size: int = BYTES) -> int:
    return (1 << size) - 1 << place if place >= 0 else 0  # a named barrier is nowhere in LDS


# Arrivals.


def arrive(wave_set: WaveSet, place: int, lanes: int, wave_sets: Sequence[WaveSet]) -> bool:
    """Count arrivals of a wave set; False if the word orders nothing.  The caller marks what is over, then turns it."""
    phase = find_phase(wave_set, place)
    if phase is None or not phase.settled:
        raise BarrierError("waves arrive at an mbarrier that may not be set up yet")
    if phase.broken:
        return False
    is_certain = not _lag_of(wave_set, place) and phase.arrived + lanes <= phase.needed
    if not is_certain:
        if len(phase.by) == 1 and phase.by == wave_set.waves:  # a wave's own arrivals don't change places
            raise BarrierError("a wave arrives at an mbarrier again before it knows that its last phase has ended")
        _break(phase, wave_sets)
        return False
    by = tuple(sorted({*wave_set.waves, *(phase.by if phase.arrived else ())}))
    after = phase._replace(arrived=phase.arrived + lanes, carried=_least(phase.carried, wave_set.named.lags), by=by)
    lags = wave_set.named.lags
    for each in wave_sets:
        _put(each, after)
        each.change_flights(lambda _, flight: mark(flight, place) if knows(lags, flight.released) else flight)
    return True


def meet(members: Sequence[WaveSet], number: int, wave_sets: Sequence[WaveSet]) -> None:
    """Waves meet at a named barrier, all that it counts, while others are elsewhere: as at a word of its own."""
    place = -number
    for each in wave_sets:
        before = find_phase(each, place)
        if before is None:
            each.named = each.named._replace(lags=_least(each.named.lags, frozenset({(place, 0)})))
        if before is None or not before.broken:
            needed = sum(len(member.waves) for member in members)
            _put(each, (before or Mbarrier(place, needed, settled=True))._replace(needed=needed))
    arrived = [arrive(each, place, len(each.waves), wave_sets) for each in members]
    if all(arrived):
        for each in members:
            each.release(place, lambda _, __: False)
        turn(members[0], place, wave_sets)
        lags = _least(*(each.named.lags for each in members), frozenset({(place, 0)}))
        for each in members:
            each.named = each.named._replace(lags=lags)


def check_signal(wave_set: WaveSet, number: int) -> None:
    """Raises BarrierError if others have met at a named barrier, and their phase may not have ended yet."""
    if find_phase(wave_set, -number) is not None and _lag_of(wave_set, -number):
        raise BarrierError("it signals a barrier at which others may still meet")


def spoil(number: int, wave_sets: Sequence[WaveSet]) -> None:
    """Arrivals at a named barrier don't fit its count: it orders nothing any more."""
    for each in wave_sets:
        _put(each, Mbarrier(-number, 1, settled=True, broken=True))
        each.named = each.named._replace(lags=_least(each.named.lags, frozenset({(-number, 0)})))


def is_spoiled(wave_set: WaveSet, number: int) -> bool:
    phase = find_phase(wave_set, -number)
    return phase is not None and phase.broken


def _break(phase: Mbarrier, wave_sets: Sequence[WaveSet]) -> None:
    """An arrival may belong to either of two phases: nobody may have relied on this word."""
    place, ended = phase.place, len(phase.past)
    if ended >= _MOST or any(_lag_of(each, place) < ended for each in wave_sets):
        raise BarrierError("waves arrive at an mbarrier before they know that its last phase has ended, or too often")
    for each in wave_sets:
        _put(each, phase._replace(broken=True))
        each.named = each.named._replace(lags=frozenset(mark for mark in each.named.lags if mark[0] != place))
        each.change_flights(lambda _, flight: _forget(flight, place))


def _forget(flight: InFlight, place: int) -> InFlight:
    released, lags = (frozenset(mark for mark in each if mark[0] != place) for each in (flight.released, flight.lags))
    return flight._replace(released=released, lags=lags)


def turn(wave_set: WaveSet, place: int, wave_sets: Sequence[WaveSet]) -> bool:
    """End the phase if it has all its arrivals: True if it has."""
    ended = find_phase(wave_set, place)
    if ended is None or ended.broken or ended.arrived < ended.needed:
        return False

    def grow(_: object, flight: InFlight) -> InFlight:
        released, lags = _grow(flight.released, place, beyond=_MOST), _grow(flight.lags, place, beyond=_LOST)
        return flight._replace(released=released, lags=lags)

    for each in wave_sets:
        each.change_flights(grow)
        phases = []
        for phase in each.named.phases:
            carried, *past = (_grow(lags, place, beyond=_LOST) for lags in (phase.carried, *phase.past))
            if phase.place == place:
                past, carried = [carried, *past][:_MOST], NO_MARKS
            at_end = phase._replace(carried=carried, past=tuple(past))
            phases.append(at_end._replace(arrived=0, bit=phase.bit ^ 1) if phase.place == place else at_end)
        lags = _grow(each.named.lags, place, beyond=_LOST)
        each.named = each.named._replace(phases=tuple(phases), lags=lags)
    return True


def mark(flight: InFlight, place: int) -> InFlight:
    """An access that is over when its wave arrives there; it may have been over for long."""
    if flight.access is None or any(there == place for there, _ in flight.released):
        return flight
    return flight._replace(released=flight.released | {(place, 0)})


# Waves that poll.


def poll(wave_set: WaveSet, phase: Mbarrier, number: int) -> int | None:
    """The bit that a wave reads: the last that it knows of, the next time the one after that; None until it comes.

    It may read a later one the first time, too.  But then it either waits for one more to come, or goes on and knows
    more than is taken for granted here; nothing after the loop depends on what it has read.  Of a word that orders
    nothing it reads both bits, and waits for neither.
    """
    named, place = wave_set.named, phase.place
    if phase.broken:
        wave_set.named = named._replace(polled=number)
        return PHASE_BIT * (named.polled == number)
    if not phase.settled or wave_set.signalled:
        raise BarrierError("a wave polls an mbarrier that may not be set up yet, or between a signal and its wait")
    lag = _lag_of(wave_set, place)
    if lag > _MOST:
        raise BarrierError("a wave polls an mbarrier of which it doesn't know how many phases have ended")
    bit = phase.bit ^ lag & 1
    if named.polled != number:
        wave_set.named = named._replace(polled=number)
        return bit * PHASE_BIT
    if not lag:
        wave_set.named = named._replace(target=POLLING, awaited=place)
        return None
    learned = phase.past[lag - 1] if lag <= len(phase.past) else NO_MARKS
    wave_set.named = named._replace(lags=_least(named.lags, learned, frozenset({(place, lag - 1)})))
    return (bit ^ 1) * PHASE_BIT


def leave(wave_set: WaveSet, operations: Sequence[Operation]) -> None:
    """Forget that a wave has polled once it is out of the loop that does."""
    polled = wave_set.named.polled
    if polled >= 0 and not operations[polled].polls[0] <= wave_set.at <= operations[polled].polls[1]:
        wave_set.named = wave_set.named._replace(polled=-1)


def find_polling(waiting: Iterable[WaveSet]) -> list[WaveSet]:
    """The waiting wave sets whose phase has ended."""
    return [each for each in waiting if each.named.target == POLLING and _lag_of(each, each.named.awaited)]


def resume(wave_set: WaveSet) -> None:
    wave_set.waiting = False
    wave_set.named = wave_set.named._replace(target=WORKGROUP, awaited=-1)


def drop_known(wave_sets: Sequence[WaveSet]) -> None:
    """Drop accesses that all other waves know to be over; the caller has compared them with all that are there now."""
    for each in wave_sets:
        others = [other.named.lags for other in wave_sets if not other.ended]
        if len(each.waves) == 1 and not each.ended:
            others.remove(each.named.lags)

        def is_known(flight: InFlight, others: Sequence[Marks] = others) -> bool:
            return bool(flight.released) and all(knows(lags, flight.released) for lags in others)

        each.drop_accesses(is_known)


def _put(wave_set: WaveSet, phase: Mbarrier) -> None:
    others = (each for each in wave_set.named.phases if each.place != phase.place)
    wave_set.named = wave_set.named._replace(phases=tuple(sorted((*others, phase), key=lambda each: each.place)))
