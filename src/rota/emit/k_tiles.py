"""Which K-tile an op works on: takes a loop's steps, gives for each the tile, counted from the trip's k.

An op of a loop by values says it itself.  By stages it follows from the loads: what an op reads was fetched, or read,
by another before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rota.declare.effects import Action, Place
from rota.declare.vocabulary import Phase
from rota.errors import EmissionError, Finding
from rota.program.loop import LoopSteps, Step

_FETCHES = (Action.DMA, Action.GLOBAL_TO_REGISTER)
_TRIPS = (0, 1, 2)  # a trip takes what the one before left, and the first what the prologue did

KTiles = Mapping[Phase, Sequence[int]]


def k_tiles(steps: LoopSteps) -> KTiles:
    """By phase, for each of its steps; 0 for waits, barriers and fences."""
    found: dict[tuple[Phase, int], int] = {}
    for trips in _TRIPS:
        for phase, place, step, tile in _followed(steps, trips):
            if found.setdefault((phase, place), tile) != tile:
                raise EmissionError(
                    Finding(
                        code="T203",
                        message=f"{step.entry.op} works on another K-tile, counted from the trip's k, in one trip than "
                        "in another; no function could be told which",
                        concerns=(step.concern(),),
                        evidence=(("K-tile", f"k {found[phase, place]:+d}"), ("in another trip", f"k {tile:+d}")),
                    )
                )
    return {phase: [found[phase, place] for place in range(len(steps.phase(phase)))] for phase in Phase}


def _followed(steps: LoopSteps, trips: int) -> Iterator[tuple[Phase, int, Step, int]]:
    """Each step of so many trips with its K-tile; what nothing has fetched is taken for the trip's own."""
    held: dict[Place, int] = {}
    fetched: dict[Place, int] = {}
    phases = [(Phase.PROLOGUE, 0), *((Phase.KERNEL, trip) for trip in range(1, trips + 1)), (Phase.EPILOGUE, trips + 1)]
    for phase, trip in phases:
        k = steps.tiles_per_trip * trip
        for place, step in enumerate(steps.phase(phase)):
            effect = step.effect
            tile = k
            if effect.instance is not None:
                tile = k + effect.instance.iteration
            elif effect.action in _FETCHES:
                target = effect.writes[0]
                fetched[target] = fetched.get(target, -1) + 1
                tile = fetched[target] if effect.fetches is None else k + effect.fetches
            elif effect.reads:
                tile = next((held[each] for each in effect.reads if each in held), k)
            held.update(dict.fromkeys(effect.writes, tile))
            yield phase, place, step, tile - k
