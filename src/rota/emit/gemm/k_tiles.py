"""Which K-tile an op works on: takes a program, gives for each entry the tile, counted from the trip's k.

An op of a loop by values says it itself.  In a sum over K-tiles it follows from the loads: what an op reads was
fetched, or read, by another before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rota.errors import EmissionError, Finding
from rota.program.effects import Place
from rota.program.entry import Entry
from rota.program.kinds import OpKind
from rota.program.lowered import LoweredProgram
from rota.program.phase import Phase

_FETCHES = (OpKind.DMA, OpKind.GLOBAL_LOAD)
_TRIPS = (0, 1, 2)  # a trip takes what the one before left, and the first what the prologue did

KTiles = Mapping[Phase, Sequence[int]]


def stated_k_tiles(program: LoweredProgram) -> KTiles:
    """By phase, for each of its entries, as it says itself; 0 for waits, barriers and fences."""
    return {phase: [stated_k_tile(entry) for entry in program.phase(phase)] for phase in Phase}


def stated_k_tile(entry: Entry) -> int:
    """The iteration that an entry stands for."""
    return entry.effect.instance.iteration


def followed_k_tiles(program: LoweredProgram) -> KTiles:
    """By phase, for each of its entries; 0 for waits, barriers and fences."""
    found: dict[tuple[Phase, int], int] = {}
    for trips in _TRIPS:
        for phase, place, entry, tile in _followed(program, trips):
            if found.setdefault((phase, place), tile) != tile:
                raise EmissionError(
                    Finding(
                        code="T203",
                        message=f"{entry.op} works on another K-tile, counted from the trip's k, in one trip than "
                        "in another; no function could be told which",
                        concerns=(entry.concern(),),
                        evidence=(("K-tile", f"k {found[phase, place]:+d}"), ("in another trip", f"k {tile:+d}")),
                    )
                )
    return {phase: [found[phase, place] for place in range(len(program.phase(phase)))] for phase in Phase}


def _followed(program: LoweredProgram, trips: int) -> Iterator[tuple[Phase, int, Entry, int]]:
    """Each entry of so many trips with its K-tile; what nothing has fetched is taken for the trip's own."""
    held: dict[Place, int] = {}
    fetched: dict[Place, int] = {}
    phases = [(Phase.PROLOGUE, 0), *((Phase.KERNEL, trip) for trip in range(1, trips + 1)), (Phase.EPILOGUE, trips + 1)]
    for phase, trip in phases:
        k = program.k_of(phase, trip)
        for place, entry in enumerate(program.phase(phase)):
            effect = entry.effect
            tile = k
            if effect.kind in _FETCHES:
                target = effect.writes[0]
                fetched[target] = fetched.get(target, -1) + 1
                tile = fetched[target] if effect.fetches is None else k + effect.fetches
            elif effect.reads:
                tile = next((held[each] for each in effect.reads if each in held), k)
            held.update(dict.fromkeys(effect.writes, tile))
            yield phase, place, entry, tile - k
