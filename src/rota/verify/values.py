"""What is computed: takes the machine before a compute, gives a finding where it is not the K-tile that is due."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rota.declare.effects import Place
from rota.errors import Concern, Finding
from rota.program.loop import Step
from rota.verify.accumulate import Taken
from rota.verify.machine import AbstractMachine

AccumulatorKey = tuple[Place, int]
"""An accumulator and, where its computes each cover a slice of K, the slice."""


def undefined(machine: AbstractMachine, step: Step, places: Iterable[Place]) -> Iterator[Finding]:
    """Everything an op reads must have been written."""
    for place in places:
        if place not in machine.holds:
            yield Finding(
                code="V104",
                message=f"{step.entry.op} reads {place}, which nothing has written",
                concerns=(step.concern(),),
            )


def accumulate(machine: AbstractMachine, step: Step) -> Iterator[Finding]:
    """Both operands of the same K-tile, and no tile twice."""
    operands = step.effect.reads
    tiles = {place: machine.holds[place] for place in operands if place in machine.holds}
    if len(tiles) < len(operands):
        return  # reported as undefined
    if len(set(tiles.values())) > 1:
        text = ", ".join(f"{place} of K-tile {tile}" for place, tile in tiles.items())
        yield Finding(
            code="V101",
            message=f"{step.entry.op} multiplies operands of different K-tiles",
            concerns=(step.concern(),),
            evidence=(("operands", text),),
        )
        return
    tile = next(iter(tiles.values()))
    if not machine.taken.setdefault(accumulator_key(step), Taken()).add(tile):
        yield Finding(
            code="V102",
            message=f"{step.entry.op} accumulates K-tile {tile} a second time",
            concerns=(step.concern(),),
            evidence=(("K-tile", tile),),
        )


def hopeless(machine: AbstractMachine, base: int, tiles_per_trip: int) -> Iterator[Finding]:
    """K-tiles that were left out so long ago that nothing can still hold them."""
    oldest = min((*machine.holds.values(), base)) if machine.holds else base
    horizon = min(oldest, base - 2 * tiles_per_trip)
    for key, taken in machine.taken.items():
        while taken.upto < horizon:
            yield _missing(key, taken.skip())


def complete(machine: AbstractMachine, declared: Iterable[AccumulatorKey], total: int) -> Iterator[Finding]:
    """At the end every accumulator that was declared has taken in the tiles 0 .. total - 1, and no other."""
    for key in dict.fromkeys((*declared, *machine.taken)):
        taken = machine.taken.get(key, Taken()).fork()
        while taken.upto < total:
            yield _missing(key, taken.skip())
        beyond = sorted({*taken.beyond, *range(total, taken.upto)})
        if beyond:
            yield Finding(
                code="V105",
                message=f"{key[0]} takes in K-tile {beyond[0]}, but the loop has {total}",
                concerns=(Concern(label=str(key[0])),),
                evidence=(("K-tile", beyond[0]), ("tiles", total)),
            )


def accumulator_key(step: Step) -> AccumulatorKey:
    """The accumulator, and for a single operand (single buffer) the slice of K that the compute covers."""
    reads = step.effect.reads
    return step.effect.writes[0], reads[0].subtile if len(reads) == 1 else 0


def _missing(key: AccumulatorKey, tile: int) -> Finding:
    return Finding(
        code="V103",
        message=f"{key[0]} never takes in K-tile {tile}",
        concerns=(Concern(label=str(key[0])),),
        evidence=(("K-tile", tile),),
    )
