"""A loop by values as GEMM: what its ops do, if they make C = A x B^T.

The loop says what feeds what, and which operand its LDS tiles hold: slices, in the order of their declaration, runs of
its rows over the whole depth of a K-tile. The loads of a tile bring its rows in their order, and its reads take them in
theirs, part after part.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from rota.emit.gemm.gemm_tile import ColumnPair, Element, Factor, GemmTile, PairPack, Piece
from rota.emit.text import ATTENTION, GEOMETRY, no_gemm_op, no_product, refuse_count, unfit
from rota.errors import Concern, several
from rota.program.kinds import Home, OpKind, takes_formats
from rota.program.loop_spec import SCALE_OPERANDS, LoopOp, LoopSpec


def _concern(op: LoopOp) -> Concern:
    return Concern(label=op.name, source=op.source)


# The scales of a loop by values.
#
# Each operand's scales are one LDS tile, a row of bytes for each row of the operand, one byte or float for each
# block of K. A read brings a lane what it takes of one part; the reads of a tile take its parts in their order.


Parts = tuple[Factor, tuple[int, ...]]
_OPERAND = dict(zip(SCALE_OPERANDS, Factor, strict=True))


class ScaleLoop:
    """The tile of each operand's scales, and the parts whose scales each register value holds; nothing without any."""

    def __init__(self, loop: LoopSpec, tile: GemmTile) -> None:
        """What is scaled must be so in all of its parts, and what isn't has no scales."""
        self.loop = loop
        self.tile = tile
        self.tiles: Mapping[str, Factor] = {
            value.name: _OPERAND[value.operand] for value in loop.values if value.operand in _OPERAND
        }
        if sorted(self.tiles.values(), key=list(Factor).index) != (list(Factor) if tile.has_scales else []):
            due = "one LDS tile with the scales of A and one with those of B" if tile.has_scales else "no scales"
            taker = "a sum of blocks" if tile.block_sums else tile.instruction
            raise unfit(
                f"{taker} takes {due}, and the loop has {', '.join(self.tiles) or 'none'}",
                fixes=('loop.tile(..., operand="A_scale"), or "B_scale"',) if tile.has_scales else (),
            )
        self.parts: Mapping[str, Parts] = dict(self._read())
        for op in loop.ops:
            if op.kind is OpKind.DMA and op.writes[0] in self.tiles:
                self._check_load(op)

    def loads(self, op: LoopOp) -> tuple[Factor, range]:
        operand, writers = self.tiles[op.writes[0]], self.loop.writers(op.writes[0])
        each, left = divmod(self.tile.scale_loads(operand), len(writers))
        if left or not each:
            raise unfit(
                f"{len(writers)} loads can't evenly share the {self.tile.scale_loads(operand)} DMAs of each wave that "
                f"bring {op.writes[0]}",
                concerns=map(_concern, writers),
            )
        first = writers.index(op) * each
        return operand, range(first, first + each)

    def check_scaled(
        self, op: LoopOp, parts: Mapping[Factor, Sequence[int]], scales: Sequence[str] | None = None
    ) -> None:
        """Check that a product, or what adds its sums by `scales`, reads the scales of all its parts and no others."""
        due = parts if self.tile.scaled or scales is not None else dict.fromkeys(Factor, ())
        held: dict[Factor, list[int]] = {operand: [] for operand in Factor}
        for name in op.scales if scales is None else scales:
            if name not in self.parts:
                raise no_product(f"{op} is scaled by {name}, which holds no scales", concerns=[_concern(op)])
            operand, own = self.parts[name]
            held[operand] += own
        for operand, multiplied in parts.items():
            if sorted(held[operand]) != sorted(due[operand]):
                raise no_product(
                    f"{op} multiplies parts {_list_parts(multiplied)} of {operand.name} with the scales of "
                    f"{_list_parts(held[operand])}",
                    concerns=[_concern(op)],
                    fixes=("name what was read of A's scales and of B's, for the rows that are multiplied",),
                )

    def _read(self) -> Iterator[tuple[str, Parts]]:
        for name, operand in self.tiles.items():
            readers = _readers(self.loop, {name})
            count = self.tile.parts(operand)
            if not readers or count % len(readers):
                raise unfit(
                    f"{len(readers)} reads can't evenly share the scales of {count} parts of {operand.name}",
                    concerns=map(_concern, readers),
                )
            share = count // len(readers)
            for number, reader in enumerate(readers):
                value, taken = self.loop.value(reader.writes[0]), share * self.tile.scale_registers(operand)
                _check_registers(self.loop, reader, value.name, taken, f"the scales of {share} parts take {taken}")
                yield value.name, (operand, tuple(range(number * share, (number + 1) * share)))

    def _check_load(self, op: LoopOp) -> None:
        operand, numbers = self.loads(op)
        due, size = len(numbers) * self.tile.scale_dma_bytes, self.loop.value(op.writes[0]).size
        whole = self.tile.scale_bytes(operand)
        if (op.moved, size) != (due, whole):
            raise refuse_count(
                f"{op} is declared to move {op.moved} bytes into a tile of {size}, but its DMAs, {len(numbers)} of "
                f"each wave, move {due} into {whole}",
                concerns=[_concern(op)],
                evidence=(("declared", op.moved), ("moved", due), ("size", size), ("taken", whole)),
                fixes=(f"moved={due}, into a tile of size={whole}",),
            )


def _check_registers(loop: LoopSpec, op: LoopOp, name: str, taken: int, why: str) -> None:
    if (size := loop.value(name).size) != taken:
        raise refuse_count(
            f"{name} is declared as {size} registers of each lane, but {why}",
            concerns=[_concern(op)],
            evidence=(("declared", size), ("taken", taken)),
            fixes=(f"registers={taken}",),
        )


def _list_parts(parts: Sequence[int]) -> str:
    return ", ".join(map(str, parts)) or "none"


# Sums of blocks in a loop by values.
#
# A block's products are summed in registers of their own; a vector op takes such a sum and the scales of its rows
# and columns, and adds what it makes of them to an accumulator.

SumParts = Mapping[Factor, Sequence[int]]
"""The parts of A and of B whose products a sum holds."""


def check_block_sums(loop: LoopSpec, scales: ScaleLoop, sums: Mapping[str, SumParts]) -> None:
    """`sums` are the parts of each by the name of its register value."""
    adders: dict[str, LoopOp] = {}
    for op in loop.ops:
        if op.kind is not OpKind.VALU:
            continue
        concerns = [_concern(op)]
        own = [read.value for read in op.reads if read.value in sums]
        if len(own) != 1:
            raise no_product(
                f"{op} adds {' and '.join(own) or 'no sum of a block'}: a vector op of a GEMM scales one sum of blocks",
                concerns=concerns,
            )
        if own[0] in adders:
            raise no_product(f"{adders[own[0]]} and {op} both add {own[0]} to C", concerns=concerns)
        adders[own[0]] = op
        scales.check_scaled(op, sums[own[0]], [read.value for read in op.reads if read.value not in own])
        summed = loop.value(own[0]).size
        _check_registers(loop, op, op.writes[0], summed, f"{own[0]}, which {op} adds to it, has {summed}")
    for name in sums:
        if name not in adders:
            raise no_product(
                f"nothing adds {name} to C",
                concerns=map(_concern, loop.writers(name)),
                fixes=(f"loop.add(accumulator, [{name}, scales of A, scales of B])",),
            )


# Pairs of columns in a loop by values.
#
# Reads bring two columns of a k at once, those of a slice pair after pair; vector ops make pieces of them, part
# after part, each from the reads that bring it.

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
            reads = dict(find_shared(_readers(loop, {name}), slice_pairs(tile, number, len(slices)), "LDS reads", name))
            packs = [op for op in _readers(loop, set(reads)) if op.kind is OpKind.VALU]
            if not packs:
                raise no_product(f"no vector op turns the pairs of columns that are read of {name}")
            made = dict(find_shared(packs, tile.slice_pieces(Factor.B, number, len(slices)), "pieces", name))
            for op in packs:
                _check_turned(op, {pair for piece in made[op.writes[0]] for pair in pairs_of(tile, piece)}, reads)
            self.reads |= reads
            self.pieces |= made
        for op in loop.ops:
            if slices and op.kind is OpKind.VALU and op.writes[0] not in self.pieces:
                raise no_product(f"{op} turns nothing that is read of B", concerns=[_concern(op)])


def find_shared(
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


class Verb(enum.Enum):
    """What an op of a GEMM does; `GemmBinding` finds its instructions by it."""

    LOAD = enum.auto()
    READ = enum.auto()
    MULTIPLY = enum.auto()
    TURN = enum.auto()
    ADD = enum.auto()


class GemmOp(NamedTuple):
    """A kind of op in a GEMM: what it does, where it reads and writes, how many values it reads (None for any)."""

    verb: Verb
    source: Home | None
    target: Home
    reads: int | None = 1


_OPS: Mapping[OpKind, GemmOp] = {
    OpKind.DMA: GemmOp(Verb.LOAD, None, Home.LDS, 0),
    OpKind.LDS_READ: GemmOp(Verb.READ, Home.LDS, Home.REGISTERS),
    OpKind.LDS_READ_TRANSPOSED: GemmOp(Verb.READ, Home.LDS, Home.REGISTERS),
    OpKind.MMA: GemmOp(Verb.MULTIPLY, Home.REGISTERS, Home.ACCUMULATOR, None),
}
_PAIR_OPS = {OpKind.VALU: GemmOp(Verb.TURN, Home.REGISTERS, Home.REGISTERS, None)}
_BLOCK_OPS = {
    OpKind.MMA: GemmOp(Verb.MULTIPLY, Home.REGISTERS, Home.REGISTERS, None),
    OpKind.VALU: GemmOp(Verb.ADD, Home.REGISTERS, Home.ACCUMULATOR, None),
}


def gemm_ops(tile: GemmTile) -> Mapping[OpKind, GemmOp]:
    """Every kind of op that a GEMM on that tile has."""
    return {**_OPS, **(_PAIR_OPS if tile.pairs else {}), **(_BLOCK_OPS if tile.block_sums else {})}


_SAY = 'a GEMM\'s LDS tiles say whose rows they hold: loop.tile(..., operand="A"), or "B"'


class _Product(NamedTuple):
    """What one matrix op multiplies: parts of A and of B, along some steps of K."""

    op: LoopOp
    a_parts: tuple[int, ...]
    b_parts: tuple[int, ...]
    steps: tuple[int, ...]

    @property
    def blocks(self) -> set[tuple[int, int]]:
        return {(m, n) for m in self.a_parts for n in self.b_parts}

    @property
    def text(self) -> str:
        return " x ".join(read.value for read in self.op.reads if read.value not in self.op.scales)

    def concern(self, role: str = "") -> Concern:
        return replace(_concern(self.op), role=role)


class GemmLoop:
    """The slices of A and B, the pieces of each register value, and the loads of each tile."""

    def __init__(self, loop: LoopSpec, tile: GemmTile) -> None:
        """What doesn't compute C = A x B^T, each product once, or says otherwise of itself, is refused."""
        self.loop = loop
        self.tile = tile
        self.slices = _slices(loop)
        _check_kinds(loop, tile)
        _check_formats(loop, tile)
        self.scales = ScaleLoop(loop, tile)
        pieces = dict(self._share_reads())
        self.pairs = PairLoop(loop, tile, self.slices[Factor.B] if tile.pairs else ())
        self.pieces: Mapping[str, Sequence[Piece]] = pieces | self.pairs.pieces
        products = [self._product(op) for op in loop.ops if op.kind is OpKind.MMA]
        self._check_blocks(products)
        self._check_sizes(products)
        self.sums: Mapping[str, SumParts] = {
            product.op.writes[0]: {Factor.A: product.a_parts, Factor.B: product.b_parts}
            for product in products
            if tile.block_sums
        }
        if tile.block_sums:
            check_block_sums(loop, self.scales, self.sums)

    def loads(self, op: LoopOp) -> tuple[Factor, range]:
        name = op.writes[0]
        operand = Factor[self.loop.value(name).operand]
        names, writers = self.slices[operand], self.loop.writers(name)
        each = self.tile.slice_dmas(operand, len(names))
        if each % len(writers):
            raise unfit(
                f"{len(writers)} loads can't evenly share the {each} DMAs of each wave that bring {name}",
                concerns=map(_concern, writers),
                evidence=(("DMAs of each wave", each), ("loads", len(writers))),
            )
        share = each // len(writers)
        first = names.index(name) * each + writers.index(op) * share
        return operand, range(first, first + share)

    def _share_reads(self) -> Iterator[tuple[str, Sequence[Piece]]]:
        for operand, names in self.slices.items():
            self.tile.slice_rows(operand, len(names))
            for number, name in enumerate(names):
                readers = _readers(self.loop, {name})
                pieces = self.tile.slice_pieces(operand, number, len(names))
                self._check_transposes(operand, readers)
                if not readers:
                    raise no_product(f"nothing reads the tile {name}: a part of {operand.name} is never multiplied")
                if operand is Factor.A or not self.tile.pairs:
                    yield from find_shared(readers, pieces, "LDS reads", name)

    def _check_transposes(self, operand: Factor, readers: Sequence[LoopOp]) -> None:
        """All reads of B transpose, or none; those of A never do."""
        due = OpKind.LDS_READ_TRANSPOSED if self.tile.transposes(operand) else OpKind.LDS_READ
        wrong = [op for op in readers if op.kind is not due]
        if wrong:
            raise unfit(
                f"{wrong[0]} is a {wrong[0].kind.word} op of {operand.name}: a GEMM's reads of A are plain, those of B "
                "all plain (B as N x K) or all transposed (B as K x N)",
                concerns=map(_concern, wrong),
            )

    def _product(self, op: LoopOp) -> _Product:
        """A's operands come before B's: the other way round is the transpose."""
        names = [read.value for read in op.reads if read.value not in op.scales]
        if wrong := next((name for name in names if name not in self.pieces), ""):
            unturned = wrong in self.pairs.reads
            what = "pairs of B's columns that no vector op has turned" if unturned else "no part of A or B"
            raise no_product(f"{op} multiplies {wrong}, which is {what}", concerns=[_concern(op)])
        operands = [self.pieces[name][0].operand for name in names]
        concern = _concern(op)
        if repeated := next((name for name in names if names.count(name) > 1), ""):
            raise no_product(f"{op} reads {repeated} twice: a product has different factors", concerns=[concern])
        if len(set(operands)) < len(Factor):
            raise no_product(
                f"{op} multiplies {' and '.join(names) or 'nothing'}: C = A x B^T takes one factor of A, one of B",
                concerns=[concern],
            )
        if operands != sorted(operands, key=list(Factor).index):
            ordered = sorted(names, key=lambda name: list(Factor).index(self.pieces[name][0].operand))
            raise no_product(
                f"{op} multiplies {' x '.join(names)}, B by A, which is no block of C = A x B^T but its transpose",
                concerns=[concern],
                fixes=(f"name A's registers first: {', '.join(ordered)}",),
            )
        a, b = (self._factor(op, operand, names) for operand in Factor)
        if a[1] != b[1]:
            raise no_product(f"{op} doesn't multiply the same steps of A and B", concerns=[concern])
        self.scales.check_scaled(op, {Factor.A: a[0], Factor.B: b[0]})
        return _Product(op, a[0], b[0], a[1])

    def _factor(self, op: LoopOp, operand: Factor, names: Sequence[str]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Parts and steps of one operand; every part must have every step, whole."""
        pieces = [piece for name in names for piece in self.pieces[name] if piece.operand is operand]
        per_step = self.tile.step_pieces(operand)
        parts = tuple(sorted({piece.part for piece in pieces}))
        steps = tuple(sorted({piece.piece // per_step for piece in pieces}))
        if len(pieces) != len(parts) * len(steps) * per_step:
            whole = f"a step takes {per_step} LDS reads of each part" if per_step > 1 else ""
            raise no_product(
                f"{op} doesn't multiply the same steps of {operand.name} for all of its rows",
                concerns=[_concern(op)],
                evidence=(("reads", ", ".join(names)), *((("whole", whole),) if whole else ())),
            )
        return parts, steps

    def _check_blocks(self, products: Sequence[_Product]) -> None:
        """Every block of C has one accumulator, which takes every step of K once."""
        sums: dict[str, list[_Product]] = {}
        for product in products:
            sums.setdefault(product.op.writes[0], []).append(product)
        owner: dict[tuple[int, int], _Product] = {}
        for accumulator, added in sums.items():
            self._check_sum(accumulator, added)
            for block in added[0].blocks:
                first = owner.setdefault(block, added[0])
                if first is not added[0]:
                    raise no_product(
                        f"{first.op.writes[0]} and {accumulator} both sum a block of C, {added[0].text}",
                        concerns=(first.concern("computes it"), added[0].concern("computes it too")),
                    )
        wanted = [(m, n) for m in range(self.tile.parts(Factor.A)) for n in range(self.tile.parts(Factor.B))]
        for block in wanted:
            if block not in owner:
                a, b = (self._holders(*each) for each in zip(Factor, block, strict=True))
                raise no_product(
                    f"nothing multiplies {a} with {b}: that block of C would stay 0",
                    evidence=(("blocks of C that a wave has", len(wanted)), ("computed", len(owner))),
                    fixes=(f"declare an accumulator and a matrix op for {a} x {b}",),
                )

    def _check_sum(self, accumulator: str, added: Sequence[_Product]) -> None:
        first = added[0]
        taken: dict[int, _Product] = {}
        for product in added:
            if product.blocks != first.blocks:
                rows = "; ".join(", ".join(names) for names in self.slices.values())
                raise no_product(
                    f"{accumulator} sums {first.text} and {product.text}, which are different blocks of C",
                    concerns=(first.concern("adds one"), product.concern("adds another")),
                    evidence=(("taken for", f"runs of rows, in the order in which they are declared: {rows}"),),
                    fixes=(
                        "an accumulator of its own for each product of other rows",
                        "a K-tile that is split along K is not written: declare one half as deep (BK) instead",
                    ),
                )
            for step in product.steps:
                before = taken.setdefault(step, product)
                if before is not product:
                    raise no_product(
                        f"{product.op} adds {product.text} to {accumulator} a second time",
                        concerns=(before.concern("adds it"), product.concern("adds it again")),
                    )
        if len(taken) < self.tile.steps:
            raise no_product(
                f"{accumulator} sums only some of a K-tile: {len(taken)} of its {self.tile.steps} steps of "
                f"{self.tile.geometry.MMA_K}",
                concerns=[product.concern() for product in added],
            )

    def _check_sizes(self, products: Sequence[_Product]) -> None:
        tile = self.tile
        for operand, names in self.slices.items():
            due = tile.slice_dmas(operand, len(names)) * tile.dma_rows * tile.row_bytes
            for name in names:
                if (size := self.loop.value(name).size) != due:
                    raise unfit(
                        f"the tile {name} has {size} bytes, but a slice of {operand.name} takes {due} in this geometry",
                        evidence=(
                            ("declared", size),
                            ("of this geometry", due),
                            (operand.name, f"{tile.rows(operand)}x{tile.geometry.BK} elements in {len(names)} slices"),
                        ),
                        fixes=(GEOMETRY,),
                    )
        for op in self.loop.ops:
            if op.kind is not OpKind.DMA or op.writes[0] in self.scales.tiles:
                continue
            _, dmas = self.loads(op)
            due = len(dmas) * tile.dma_rows * tile.row_bytes
            if op.moved != due:
                raise refuse_count(
                    f"{op} is declared to move {op.moved} bytes, but its DMAs, {len(dmas)} of each wave, move {due}",
                    concerns=[_concern(op)],
                    evidence=(("declared", op.moved), ("moved", due)),
                    fixes=(f"moved={due}",),
                )
        for name, pieces in self.pieces.items():
            self._check_registers(name, len(pieces) * tile.piece_bytes(pieces[0].operand) // tile.register_bytes)
        for name, pairs in self.pairs.reads.items():
            self._check_registers(name, len(pairs))
        for product in products:
            self._check_registers(product.op.writes[0], len(product.blocks) * tile.part_registers)

    def _check_registers(self, name: str, due: int) -> None:
        writer = self.loop.writers(name)[0]
        _check_registers(self.loop, writer, name, due, f"what {writer} brings takes {due}")

    def _holders(self, *part: Factor | int) -> str:
        """The register values that hold a part of an operand."""
        return " and ".join(name for name, pieces in self.pieces.items() if any(piece[:2] == part for piece in pieces))


def _check_kinds(loop: LoopSpec, tile: GemmTile) -> None:
    """Loads, LDS reads and matrix ops, each from where and to where a GEMM has them; vector ops where it has any."""
    homes = {value.name: value.home for value in loop.values}
    known = gemm_ops(tile)
    for value in loop.values:
        if value.home is Home.INPUT or value.into:
            what = "an input" if value.home is Home.INPUT else f"written into the registers of {value.into}"
            raise unfit(f"{value.name} is {what}: the full form writes GEMMs, which have no such values")
    for op in loop.ops:
        concerns = [_concern(op)]
        if op.kind not in known:
            raise no_gemm_op(op, op.kind, *concerns)
        _, source, target, count = known[op.kind]
        reads, writes = [homes[read.value] for read in op.reads], [homes[name] for name in op.writes]
        if writes != [target] or reads != [source] * (len(reads) if count is None else count):
            raise no_product(
                f"{op} is no {op.kind.word} op of a GEMM: there a load fills one LDS tile, a fragment is a read of "
                "one tile into registers, and a matrix op adds a product of registers to one accumulator"
                + (", or a vector op the sum of a block" if tile.block_sums else ""),
                concerns=concerns,
                evidence=(
                    ("reads", _list_values((read.value, homes[read.value]) for read in op.reads)),
                    ("writes", _list_values((name, homes[name]) for name in op.writes)),
                ),
            )
        for read in op.reads:
            if read.parts:
                raise unfit(
                    f"{op} reads a slice of {read.value}: the full form reads whole tiles, once all of one has landed",
                    concerns=concerns,
                    evidence=(("parts", ", ".join(map(str, read.parts))), ("of", len(loop.writers(read.value)))),
                )
            if read.distance:
                raise no_product(
                    f"{op} reads {read.value} of {several(read.distance, 'iteration')} before: in a GEMM every op works"
                    " on the K-tile of its own iteration",
                    concerns=concerns,
                    evidence=(("distance", read.distance), ("in a GEMM", 0)),
                )


def _check_formats(loop: LoopSpec, tile: GemmTile) -> None:
    """Where an instruction takes several formats, the ops name the element's; without a name they have the widest."""
    if not takes_formats(tile.instruction):
        return
    allowed = [("fp4",), ("fp4", "fp4")] if tile.element is Element.FP4 else [(), ("fp8",), ("fp8", "fp8")]
    for op in loop.ops:
        if op.kind is OpKind.MMA and op.formats not in allowed:
            raise unfit(
                f"{op} multiplies elements of {' and '.join(op.formats) or 'no stated format'}, and the kernel is to "
                f"multiply {tile.element.name}",
                concerns=[_concern(op)],
                evidence=(("to be declared", f"formats={allowed[-2]}"),),
            )


def _slices(loop: LoopSpec) -> Mapping[Factor, Sequence[str]]:
    found: dict[Factor, list[str]] = {operand: [] for operand in Factor}
    for value in loop.values:
        if value.home is Home.LDS and value.operand not in SCALE_OPERANDS:
            if not value.operand:
                raise unfit(
                    f"the LDS tile {value.name} is neither A's nor B's: the full form writes GEMMs, C = A x B^T, alone",
                    concerns=map(_concern, loop.writers(value.name)),
                    fixes=(_SAY, ATTENTION),
                )
            found[Factor[value.operand]].append(value.name)
    for operand, names in found.items():
        if not names:
            raise unfit(
                f"the loop has no LDS tile of {operand.name}: the full form writes GEMMs, C = A x B^T, alone",
                fixes=(_SAY,),
            )
    return found


def _list_values(values: Iterator[tuple[str, Home]]) -> str:
    return ", ".join(f"{name} ({home.value})" for name, home in values) or "nothing"
