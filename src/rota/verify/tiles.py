"""What is computed: takes the machine before an op, gives a finding where it is not the K-tile or block that is due.

For programs that compute a sum over K-tiles: an op passes on whatever tile, and whatever block of A or B, its operands
hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from rota.errors import Concern, Finding
from rota.program.effects import Place
from rota.program.entry import Entry
from rota.program.kinds import OpKind
from rota.program.lowered import LoweredProgram, TileProduct, TileSum
from rota.verify.abstract_machine import AbstractMachine
from rota.verify.accumulate import Taken
from rota.verify.declared import unlike

_Held = TypeVar("_Held")

AccumulatorKey = tuple[Place, tuple[Place, ...]]
"""An accumulator and the registers that are multiplied into it: a slice of K, where each compute covers one."""


class TileContents:
    """Follows K-tiles and blocks from loads to accumulators."""

    proves = "values: every accumulator takes in every K-tile once, both operands of the same tile and their own block"
    first_iterations = 0

    def __init__(self, program: LoweredProgram, semantics: TileSum) -> None:
        self.program, self.semantics = program, semantics
        self.initial: tuple[Place, ...] = ()

    def declared(self) -> Iterator[Finding]:
        """A memory op on another counter than the machine's; what else an entry does follows from its op."""
        for step in self.program.entries:
            effect = step.effect
            due = self.program.machine.counter_of(effect.kind)
            if effect.kind.asynchronous and effect.counter != due:
                yield unlike(step, "counts on", due, effect.counter)

    def impossible(self) -> Iterator[Finding]:
        """Computes that belong to no cell of the grid."""
        return outside_the_grid(self.program, self.semantics)

    def move(self, machine: AbstractMachine, step: Entry, k: int) -> Iterable[Finding]:
        """The op has run: what it fetched, passed on or multiplied."""
        effect = step.effect
        if effect.kind.computes:
            return self._multiplied(machine, step)
        if effect.kind is OpKind.DMA:
            for place in effect.writes:
                machine.holds[place] = k + (effect.fetches or 0)
                machine.blocks[place] = (place.name, place.part)  # a part of a tile is a block of an operand
        elif effect.kind is OpKind.GLOBAL_LOAD:
            for place in effect.writes:
                machine.fetched[place] = machine.holds[place] = machine.fetched.get(place, -1) + 1
                machine.blocks.pop(place, None)  # all of a tile, of which each read takes its own slice
        elif effect.reads and effect.writes:
            known = all(place in machine.holds for place in effect.reads)
            missing = () if known else tuple(undefined(machine, step, effect.reads))
            source, target = effect.reads[0], effect.writes[0]
            _pass_on(machine.holds, source, target)
            _pass_on(machine.blocks, source, target)
            return missing
        return ()

    def _multiplied(self, machine: AbstractMachine, step: Entry) -> Iterable[Finding]:
        return (
            *undefined(machine, step, step.effect.reads),
            *other_blocks(machine, step),
            *accumulate(machine, step),
        )

    def hopeless(self, machine: AbstractMachine, base: int) -> Iterator[Finding]:
        """K-tiles that were left out so long ago that nothing can still hold them."""
        return hopeless(machine, base, self.program.tiles_per_trip)

    def ended(self, machine: AbstractMachine, total: int) -> Iterator[Finding]:
        """Accumulators that lack a tile, or have taken in one too many."""
        return complete(machine, self.semantics.products, total)


def other_blocks(machine: AbstractMachine, step: Entry) -> Iterator[Finding]:
    """Operands that hold a different block from the one their registers stand for."""
    for place in step.effect.reads:
        name, number = machine.blocks.get(place, (place.name, place.copy))
        if (name, number) != (place.name, place.copy):
            yield Finding(
                code="V110",
                message=f"{step.op} multiplies {place}, which hold the wrong block",
                concerns=(step.concern(),),
                evidence=(
                    ("it reads", f"block {number} of {name}"),
                    ("declared", f"block {place.copy} of {place.name}"),
                ),
            )


def outside_the_grid(program: LoweredProgram, declared: TileSum) -> Iterator[Finding]:
    """A compute that belongs to no cell of the grid that was declared."""
    known = {(each.accumulator, each.operands) for each in declared.products}
    rows, columns = declared.grid
    for step in program.entries:
        if step.effect.kind is OpKind.MMA and accumulator_key(step) not in known:
            yield Finding(
                code="V109",
                message=f"{step.op} computes {step.effect.writes[0]}; the grid has {rows} x {columns} cells",
                concerns=(step.concern(),),
                evidence=(("rows", rows), ("columns", columns)),
            )


def undefined(machine: AbstractMachine, step: Entry, places: Iterable[Place]) -> Iterator[Finding]:
    """Everything an op reads must have been written."""
    for place in places:
        if place not in machine.holds:
            yield Finding(
                code="V104",
                message=f"{step.op} reads {place}, which nothing has written",
                concerns=(step.concern(),),
            )


def accumulate(machine: AbstractMachine, step: Entry) -> Iterator[Finding]:
    """Both operands of the same K-tile, and no tile twice."""
    operands = step.effect.reads
    tiles = {place: machine.holds[place] for place in operands if place in machine.holds}
    if len(tiles) < len(operands):
        return  # reported as undefined
    if len(set(tiles.values())) > 1:
        text = ", ".join(f"{place} of K-tile {tile}" for place, tile in tiles.items())
        yield Finding(
            code="V101",
            message=f"{step.op} multiplies operands of different K-tiles",
            concerns=(step.concern(),),
            evidence=(("operands", text),),
        )
        return
    tile = tiles[operands[0]]
    key = accumulator_key(step)
    taken = machine.taken.get(key)
    if taken is None:
        taken = machine.taken[key] = Taken()
    if not taken.add(tile):
        yield Finding(
            code="V102",
            message=f"{step.op} accumulates K-tile {tile} a second time",
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


def complete(machine: AbstractMachine, declared: Iterable[TileProduct], total: int) -> Iterator[Finding]:
    """At the end every accumulator that was declared has taken in the tiles 0 .. total - 1, and no other."""
    for key in dict.fromkeys((*((each.accumulator, each.operands) for each in declared), *machine.taken)):
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


def accumulator_key(step: Entry) -> AccumulatorKey:
    """What a compute multiplies into which accumulator."""
    return step.effect.writes[0], step.effect.reads


def _pass_on(contents: dict[Place, _Held], source: Place, target: Place) -> None:
    if source in contents:
        contents[target] = contents[source]
    else:
        contents.pop(target, None)


def _missing(key: AccumulatorKey, tile: int) -> Finding:
    return Finding(
        code="V103",
        message=f"{key[0]} never takes in K-tile {tile}",
        concerns=(Concern(label=str(key[0])),),
        evidence=(("K-tile", tile),),
    )
