"""When a run has settled: takes the compute unit at a wave's loop edge, gives all that the rest of the run depends on.

Times count from now, and what lies too far back to matter is cut off: the same state again means the same clocks again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

from rota.cycles.gathering import Gathering
from rota.cycles.wave_state import DmaLanding, ModelWave, Tokens

_PAST = -256  # clocks; operands and turns look back far less


def state_of(
    time: int,
    waves: Sequence[ModelWave],
    events: Iterable[tuple[int, int, int, int]],
    landings: Mapping[int, DmaLanding],
    gatherings: Iterable[Gathering],
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
        tuple(_met(gathering, time) for gathering in gatherings),
        tuple((wave.pc, wave.trip - leader, wave.priority, ages[wave.last], *_under_way(wave, time)) for wave in waves),
    )


def _since(time: int, moments: Iterable[int]) -> Iterable[int]:
    return (max(moment - time, _PAST) for moment in moments)


def _met(gathering: Gathering, time: int) -> Hashable:
    """Arrivals and waits, counted from the last complete meeting, and when those were that are still awaited."""
    met = len(gathering.complete)
    waits = tuple(gathering.waits[wave] - met for wave in gathering.waiting)
    behind = -min(waits, default=0)
    return (
        tuple(gathering.arrivals[wave] - met for wave in sorted(gathering.awaited)),
        waits,
        tuple(_since(time, gathering.complete[met - max(behind, 0) :])),
        tuple((each.wave.number, each.since - time, each.meeting - met) for each in gathering.sleepers),
    )


def _on_its_way(landing: DmaLanding) -> tuple[int, int, int, int, int]:
    tokens = landing.tokens
    return landing.wave.number, tokens.cause, landing.token - tokens.issued, landing.port, landing.late


def _under_way(wave: ModelWave, time: int) -> Iterable[Hashable]:
    """Registers, tokens that are still counted, and what the wave sleeps for."""
    yield tuple(_since(time, wave.ready))
    for tokens in wave.tokens:
        yield tuple(_pending(tokens, time))
        yield tuple(
            sorted((token - tokens.issued, done - time, *late) for token, (done, late) in tokens.landed.items())
        )
    waiting = wave.waits_for
    if waiting is not None:
        yield waiting.tokens.cause, waiting.token - waiting.tokens.issued, waiting.since - time


def _pending(tokens: Tokens, time: int) -> Iterable[tuple[int, ...]]:
    """Those that come back last first; `done` never falls."""
    for moment, late in zip(reversed(tokens.done), reversed(tokens.queued), strict=True):
        if moment <= time:
            return
        yield moment - time, *late
