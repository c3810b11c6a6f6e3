"""Barriers of a part of a workgroup: who waits at which, and when they go on.

`s_barrier_init` says how many arrivals complete a phase, a wave joins one barrier at a time, signals it once and waits
for it.  Here waves go on when all that haven't ended wait.  Where as many wait at a barrier as it counts, and no others
are left, they are ordered as by a barrier of the workgroup.  Where more wait than it counts, some may go on before the
others have come: all go on, and nothing is ordered.  Where others wait elsewhere, `rota.prove.mbarriers` says whether
these may come to it, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rota.prove.mbarriers import KnownNumber, Marks, Mbarrier
    from rota.prove.state import WaveSet

WORKGROUP = -1
_NUMBER, _COUNT, _MOST = 0x1F, 16, 0x7F  # of a barrier, where its count begins, and the largest


class BarrierError(Exception):
    """The proof can't tell what a barrier orders."""


class Count(NamedTuple):
    """A barrier that a wave initialised; it is `settled` once the workgroup has met since.

    One that nobody initialised may get its count `by_signals`.
    """

    barrier: int
    arrivals: int
    settled: bool = False
    by_signals: bool = False


class NamedBarriers(NamedTuple):
    """The barrier that a wave has joined (0: none), the one that it has signalled or waits at, and all counts.

    Of barriers in LDS: their phases, how many ends of phases the wave doesn't know of, the operation by which it
    `polled` last, and the byte of the one that it waits for; and `words` of LDS whose contents are known.
    """

    joined: int = 0
    target: int = WORKGROUP
    counts: tuple[Count, ...] = ()
    phases: tuple[Mbarrier, ...] = ()
    lags: Marks = frozenset()
    words: tuple[KnownNumber, ...] = ()
    polled: int = -1
    awaited: int = -1


NO_BARRIERS = NamedBarriers()


def initialise(word: int, wave_sets: Iterable[WaveSet]) -> None:
    number, arrivals = word & _NUMBER, word >> _COUNT
    if not number or not arrivals:
        raise BarrierError("it initialises no barrier")
    for each in wave_sets:
        by_signals = any(count.barrier == number and count.by_signals for count in each.named.counts)
        if number in {each.named.joined, each.named.target} or by_signals:
            raise BarrierError("it initialises a barrier that a wave has joined")
        others = (count for count in each.named.counts if count.barrier != number)
        each.named = each.named._replace(counts=tuple(sorted((*others, Count(number, arrivals)))))


def join(word: int, wave_set: WaveSet) -> None:
    number = word & _NUMBER
    is_new = any(each.barrier == number and not each.settled for each in wave_set.named.counts)
    if not number or wave_set.signalled or is_new:
        raise BarrierError("it joins a barrier that may not be initialised yet, or between a signal and its wait")
    wave_set.named = wave_set.named._replace(joined=number)


def signal(word: int, wave_set: WaveSet) -> None:
    """Arrive at the joined barrier; the caller marks the wave set as signalled."""
    named, number, count = wave_set.named, word & _NUMBER, word >> _COUNT & _MOST
    known = next((each for each in named.counts if each.barrier == number), None)
    if wave_set.signalled or number != named.joined or (count and known is not None and not known.by_signals):
        raise BarrierError("it signals a barrier that its wave hasn't joined, changes its count, or signals it twice")
    if known is None and not count:
        raise BarrierError("it signals a barrier that may not be initialised")
    if count:
        others = (each for each in named.counts if each.barrier != number)
        made = Count(number, count, settled=True, by_signals=True)
        named = named._replace(counts=tuple(sorted((*others, made))))
    wave_set.named = named._replace(target=number)


def settle(wave_sets: Iterable[WaveSet]) -> None:
    """Mark all counts as seen by the workgroup, which meets."""
    for each in wave_sets:
        counts = tuple(count._replace(settled=True) for count in each.named.counts)
        each.named = each.named._replace(target=WORKGROUP, counts=counts)


class Released(NamedTuple):
    """The wave sets that go on, of all that haven't ended, and their barrier; none if all hang.

    `fits` says that they are as many as it counts, `alone` that no other waves are left which may come to it.
    """

    members: list[WaveSet]
    barrier: int = WORKGROUP
    fits: bool = True
    alone: bool = True


def find_released(waiting: Sequence[WaveSet]) -> Released:
    groups: defaultdict[int, list[WaveSet]] = defaultdict(list)
    for each in waiting:
        groups[each.named.target].append(each)
    if [*groups] == [WORKGROUP]:
        return Released(groups[WORKGROUP])
    for number, members in sorted(groups.items()):
        found = {count for each in members for count in each.named.counts if count.barrier == number}
        arrivals = min((each.arrivals for each in found), default=0)
        there = sum(len(each.waves) for each in members)
        if number < 0 or arrivals > there:  # of the workgroup, or polled in LDS
            continue
        alone = len(groups) == 1 and there > 1 and not any(each.by_signals for each in found)
        return Released(members, number, len(found) == 1 and arrivals == there, alone)
    return Released([])
