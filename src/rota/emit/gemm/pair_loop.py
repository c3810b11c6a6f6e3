"""Pairs of columns in a loop by values: takes a loop, a tile and its slices of B, gives what reads and vector ops hold.

Reads bring two columns of a k at once, those of a slice pair after pair; vector ops make pieces of them, part after
part, each from the reads that bring it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from rota.emit.gemm.gemm_factors import ColumnPair, Factor, Piece
from rota.emit.gemm.gemm_instructions import PairPack
from rota.emit.gemm.gemm_tile import GemmTile
from rota.emit.refusal import no_product, unfit
from rota.errors import Concern
from rota.program.kinds import OpKind
from rota.program.loop_spec import LoopOp, LoopSpec

_Share = TypeVar("_Share")
_PAIR = 2


def slice_pairs(tile: GemmTile, slice_: int, slices: int) -> tuple[ColumnPair, ...]:
    """What a wave reads of one of several slices: pair after pair, each over the whole depth of the K-tile."""
    own, numbers = tile.parts(Factor.B) // _PAIR // slices, tile.geometry.BK // tile.lane_groups
    return tuple(ColumnPair(pair, each) for pair in range(slice_ * own, (slice_ + 1) * own) for each in range(numbers))


def pairs_of(tile: GemmTile, piece: Piece) -> tuple[ColumnPair, ...]:
    """The reads that bring a piece, and one of the part beside it: two for each of its registers."""
    count = tile.piece_bytes(Factor.B) // tile.element.bytes
    return tuple(ColumnPair(piece.part // _PAIR, piece.piece * count + each) for each in range(count))


def packs_of(tile: GemmTile, piece: Piece, held: Mapping[ColumnPair, int], copy: int) -> Iterator[PairPack]:
    """What makes a copy of a piece, from those copies of the reads that are held."""
    pairs = pairs_of(tile, piece)
    for register, (low, high) in enumerate(zip(pairs[::2], pairs[1::2], strict=True)):
        yield PairPack(piece.part, piece.piece, register, (low, high), (held[low], held[high]), copy)


class PairLoop:
    """What each register value holds of B, as it is read and as it is multiplied; nothing without slices."""

    def __init__(self, loop: LoopSpec, tile: GemmTile, slices: Sequence[str]) -> None:
        """Every vector op must turn what it makes its pieces of, and nothing else."""
        self.reads: dict[str, Sequence[ColumnPair]] = {}
        self.pieces: dict[str, Sequence[Piece]] = {}
        for number, name in enumerate(slices):
            tile.slice_rows(Factor.B, len(slices))
            reads = dict(shared(_readers(loop, {name}), slice_pairs(tile, number, len(slices)), "LDS reads", name))
            packs = [op for op in _readers(loop, set(reads)) if op.kind is OpKind.VALU]
            if not packs:
                raise no_product(f"no vector op turns the pairs of columns that are read of {name}")
            made = dict(shared(packs, tile.slice_pieces(Factor.B, number, len(slices)), "pieces", name))
            for op in packs:
                _check_turned(op, {pair for piece in made[op.writes[0]] for pair in pairs_of(tile, piece)}, reads)
            self.reads |= reads
            self.pieces |= made
        for op in loop.ops:
            if slices and op.kind is OpKind.VALU and op.writes[0] not in self.pieces:
                raise no_product(f"{op} turns nothing that is read of B", concerns=[_concern(op)])


def shared(
    ops: Sequence[LoopOp], everything: Sequence[_Share], what: str, name: str
) -> Iterator[tuple[str, Sequence[_Share]]]:
    """What each op's register value holds, if they share it evenly, in their order."""
    if len(everything) % len(ops):
        who = "vector ops" if ops[0].kind is OpKind.VALU else "reads"
        raise unfit(
            f"{len(ops)} {who} can't evenly share the {len(everything)} {what} of each wave that {name} takes",
            concerns=map(_concern, ops),
            evidence=((f"{what} of each wave", len(everything)), ("ops that share them", len(ops))),
        )
    share = len(everything) // len(ops)
    for index, op in enumerate(ops):
        yield op.writes[0], everything[index * share : (index + 1) * share]


def _check_turned(op: LoopOp, due: set[ColumnPair], reads: Mapping[str, Sequence[ColumnPair]]) -> None:
    names = [read.value for read in op.reads]
    held = [set(reads.get(name, ())) for name in names]
    if not all(due & each for each in held) or not due <= set().union(*held):
        takes = ", ".join(name for name, pairs in reads.items() if due & set(pairs))
        raise no_product(
            f"{op} turns {', '.join(names)}, and what it makes by its turn takes {takes}",
            concerns=[_concern(op)],
            evidence=(("taken for", "parts of B, in the order in which the vector ops are declared"),),
        )


def _readers(loop: LoopSpec, names: set[str]) -> list[LoopOp]:
    return [op for op in loop.ops if any(read.value in names for read in op.reads)]


def _concern(op: LoopOp) -> Concern:
    return Concern(label=op.name, source=op.source)
