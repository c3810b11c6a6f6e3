"""What entries of a sum over K-tiles do: takes their effects and the declared products, gives steps.

A load into LDS brings a K-tile of the block that its place stands for; a load into registers brings the next tile as a
whole, of which a fragment is a slice.  Whatever else is moved keeps what it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from rota.program.entry import Place, Space
from rota.program.kinds import OpKind
from tests.oracle.step import LDS, REGISTER, Content, Kind, Meaning, Source, Spot, Step, Unset, WrongError

if TYPE_CHECKING:
    from rota.program.entry import Entry
    from rota.program.lowered import LoweredProgram, TileSum
    from tests.oracle.wave import Wave

_IN_LDS_ORDER = (OpKind.LDS_READ, OpKind.LDS_READ_TRANSPOSED, OpKind.LDS_WRITE)


class _Held(NamedTuple):
    """A K-tile, and which block of which operand; None is the whole of one."""

    tile: int
    block: tuple[str, int] | None


_Product = tuple[Place, tuple[Place, ...]]


class ByTiles(Meaning):
    """Every accumulator takes every K-tile once, both factors of the same one, each its own block."""

    def __init__(self, program: LoweredProgram, semantics: TileSum) -> None:
        products = {(each.accumulator, each.operands) for each in semantics.products}
        self.doing = program.doing
        self.due: list[set[_Product]] = [products if role.does is None else set() for role in program.roles]
        for entry in program.entries:
            if entry.effect.kind is OpKind.MMA:
                for role in program.doing(entry.op.name):
                    self.due[role].add((entry.effect.writes[0], entry.effect.reads))
        if set().union(*self.due) != products:
            raise WrongError("count", f"{len(products)} products are declared, others are computed")

    def step(self, entry: Entry, k: int) -> Step:
        """What the effect says."""
        effect = entry.effect
        moves = effect.kind.asynchronous
        computes = effect.kind is OpKind.MMA
        return Step(
            name=str(entry.op),
            kind=Kind.WORK if moves or computes else Kind.NOTHING,
            counter=effect.counter or "" if moves else "",
            tokens=effect.tokens,
            sources=tuple(Source(_spot(place)) for place in effect.reads),
            targets=tuple(map(_spot, effect.writes)) if moves else (),
            does=partial(_add, effect.writes[0], effect.reads) if computes else partial(_move, entry, k),
            in_lds_order=effect.kind in _IN_LDS_ORDER,
            by=self.doing(entry.op.name),
        )

    def check(self, wave: Wave, tiles: int) -> None:
        """Every declared accumulator has every tile once, and there is nothing else."""
        due = self.due[wave.role]
        if wave.done.total() != len(due) * tiles:
            raise WrongError("count", f"{wave.done.total()} products of {len(due)} in {tiles} K-tiles")
        for (product, tile), times in wave.done.items():
            if times != 1 or not 0 <= tile < tiles or product not in due:
                raise WrongError("count", f"{product} takes K-tile {tile} of {tiles} {times} times")


def _spot(place: Place) -> Spot:
    return (LDS if place.space is Space.LDS else REGISTER, place.name, place.copy, place.part)


def _move(entry: Entry, k: int, wave: Wave, found: Sequence[Content]) -> Sequence[Content]:
    """What a load brings, or what was read."""
    effect = entry.effect
    if effect.kind is OpKind.DMA:
        return [_Held(k + (effect.fetches or 0), (place.name, place.part)) for place in effect.writes]
    if effect.kind is OpKind.GLOBAL_LOAD:
        wave.fetched.update(effect.writes)
        return [_Held(wave.fetched[place] - 1, None) for place in effect.writes]
    return [found[0]] * len(effect.writes)


def _add(accumulator: Place, operands: tuple[Place, ...], wave: Wave, found: Sequence[Content]) -> Sequence[Content]:
    tiles = {held.tile for held in found if isinstance(held, _Held)}
    if len(tiles) != 1 or any(isinstance(held, Unset) for held in found):
        raise WrongError("value", f"{accumulator} is given the product of {found}")
    for place, held in zip(operands, found, strict=True):
        if isinstance(held, _Held) and held.block not in (None, (place.name, place.copy)):
            raise WrongError("value", f"{place} holds {held.block}")
    wave.done[(accumulator, operands), tiles.pop()] += 1
    return ()
