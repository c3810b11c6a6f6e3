"""When a run has settled: takes the compute unit at a wave's loop edge, gives all that the rest of the run hangs on.

Times count from now, and what lies too far back to matter is cut off: the same state again means the same clocks again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

from rota.simulate.wave import Landing, Wave

_PAST = -256  # clocks; operands and turns look back far less


def state_of(
    time: int,
    waves: Sequence[Wave],
    events: Iterable[tuple[int, int, int, int]],
    landings: Mapping[int, Landing],
    arrived: Iterable[tuple[Wave, int, int]],
    *,
    free: Iterable[int],
) -> Hashable:
    """The state as a key; `free` says when units were or will be free, and turns taken."""
    ages = {last: age for age, last in enumerate(sorted({wave.last for wave in waves}))}  # only their order counts
    leader = waves[0].trip
    return (
        tuple(_since(time, free)),
        tuple(
            (when - time, number if number < len(waves) else _on_its_way(landings[number]))
            for when, _, _, number in sorted(events)
        ),
        tuple((wave.number, since - time) for wave, since, _ in arrived),
        tuple((wave.pc, wave.trip - leader, wave.priority, ages[wave.last], *_under_way(wave, time)) for wave in waves),
    )


def _since(time: int, moments: Iterable[int]) -> Iterable[int]:
    return (max(moment - time, _PAST) for moment in moments)


def _on_its_way(landing: Landing) -> tuple[int, int, int, int]:
    return landing.wave.number, landing.token - landing.wave.vm_issued, landing.port, landing.late


def _under_way(wave: Wave, time: int) -> Iterable[Hashable]:
    """Registers, tokens that are still counted, and what the wave sleeps for."""
    yield tuple(_since(time, wave.ready))
    yield tuple(_pending(wave.lds_done, wave.lds_late, time))
    yield tuple(_pending(wave.vm_done, wave.vm_late, time))
    yield tuple(sorted((token - wave.vm_issued, done - time, late) for token, (done, late) in wave.vm_landed.items()))
    yield None if wave.waits_for is None else (wave.waits_for[0] - wave.vm_issued, wave.waits_for[1] - time)


def _pending(done: Sequence[int], late: Sequence[int], time: int) -> Iterable[tuple[int, int]]:
    """Youngest first; tokens complete in order."""
    for moment, queued in zip(reversed(done), reversed(late), strict=True):
        if moment <= time:
            return
        yield moment - time, queued
