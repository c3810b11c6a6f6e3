"""What a table's instructions read and make: takes a `ScheduleTable`, gives values for its reads, packs and MFMAs.

Which LDS read fills which fragment, and which matrix instruction multiplies it, is not in a table.  It follows from the
kernel that the tables are written for, and from its public checker of them:

- Fragments are multiplied column by column, those of A inside.  A tile takes two steps of K; the reads LRA0, LRB0 bring
  the second, those with the last number the first step of the next tile.
- Where a tile is one step of K, the two kinds of read bring the second and the first half of the fragments instead, and
  where the last number is 3 the fragments are multiplied in four blocks, again column by column.
- A stream's reads fill its fragments evenly and in order.
- Packs of 16 bit (for operands that aren't contiguous in K) each combine two reads.
- TF32 is converted fragment by fragment, see `rota.lift.tf32_packs`.

Every read and pack has registers of its own, the same in every trip.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from rota.lift.schedule_table import ScheduleTable, unreadable
from rota.lift.tf32_packs import TF32Packs
from rota.program.kinds import OpKind

_PACKED_PAIR = 2  # reads that a pack of 16 bit combines
_ELEMENT_PAIRS = 4  # of a fragment, a lane
_QUADRANTS = "3"  # the number of a prefetching stream whose tile is multiplied in four blocks


class Made(NamedTuple):
    """What one instruction of a stream makes, `ahead` tiles before it is multiplied.

    `operand` is the LDS tile that it reads, `reads` the register values; `shared` is a register that it writes into.
    """

    name: str
    kind: OpKind
    ahead: int
    operand: str = ""
    reads: tuple[str, ...] = ()
    shared: str = ""
    instruction: str = ""


class Product(NamedTuple):
    """One matrix instruction: the accumulator and the values it multiplies."""

    name: str
    accumulator: str
    reads: tuple[str, ...]


@dataclass(slots=True)
class Operands:
    """What every read, pack and matrix instruction of a table's loop works on, by stream and index."""

    table: ScheduleTable
    made: dict[tuple[str, int], Made] = field(default_factory=dict)
    products: tuple[Product, ...] = ()
    held: dict[tuple[str, int, int, int], tuple[str, ...]] = field(default_factory=dict)
    """Operand, part (0 the first of a tile), fragment, half of a TF32 number: the values that hold it."""

    def bytes_of(self, stream: str) -> int:
        """What one read moves for one wave."""
        table, count = self.table, len(self.table.stream(stream).of(0))
        axis = "AB".index(stream[2])
        size = table.mfma[axis] * table.mfma[2] * table.stored.bits // 8
        return -(-self.fragments_of(axis) * size // count)

    def fragments_of(self, axis: int) -> int:
        """That the reads of one stream fill."""
        count = self.table.fragments[axis]
        return count if self.table.steps > 1 else count // 2

    def first_of(self, axis: int, part: int) -> int:
        """The first of them; the second part of a tile of one step is the second half of its fragments."""
        return part * self.fragments_of(axis) if self.table.steps == 1 else 0


def derive_operands(table: ScheduleTable, *, in_blocks: bool = False) -> Operands:
    """What each instruction works on, or T303; with `in_blocks` the fragments are multiplied in four blocks anyway."""
    last = table.prefetched
    if table.steps > 2 or last == "0" or (table.steps == 1 and any(count % 2 for count in table.fragments)):
        raise unreadable(table, f"{table.steps} steps of K with reads up to number {last}: no rule says what is when")
    found = Operands(table)
    for axis in range(2):
        _read_stream(found, axis, "0", part=1)
        _read_stream(found, axis, last, part=0)
    found.products = tuple(_products(found, blocks=in_blocks or last == _QUADRANTS))
    return found


def _read_stream(found: Operands, axis: int, number: str, part: int) -> None:
    """What the reads of a stream bring, and what its packs make of it."""
    table, operand = found.table, "AB"[axis]
    reads, packs = table.stream(f"LR{operand}{number}"), table.stream(f"Pack{operand}{number}")
    fragments = found.fragments_of(axis)
    kind = OpKind.LDS_READ_TRANSPOSED if _transposed(table, axis) else OpKind.LDS_READ
    ahead = 1 if part == 0 else 0
    names = tuple(f"{operand.lower()}{part}_{index}" for index in range(len(reads.of(0))))
    for index, name in enumerate(names):
        found.made[reads.name, index] = Made(name, kind, ahead, operand)
    count = len(packs.of(0))
    if count and part == 0:
        ahead = _packed_ahead(table, reads.name, packs.name)
    if table.stored.products > 1:
        own = TF32Packs(table=table, operand=operand, part=part, reads=names, count=count, fragments=fragments)
        _convert(found, packs.name, own, ahead)
        return
    values = tuple(_paired(found, packs.name, names, ahead)) if count else names
    each, rest = divmod(len(values), fragments)
    if rest or not each:
        raise unreadable(table, f"{reads.name} has {len(names)} reads and {count} packs for {fragments} fragments")
    for fragment in range(fragments):
        own_values = values[fragment * each : (fragment + 1) * each]
        found.held[operand, part, found.first_of(axis, part) + fragment, 0] = own_values


def _convert(found: Operands, stream: str, own: TF32Packs, ahead: int) -> None:
    """Packs that split single-precision numbers into halves."""
    for index, pack in enumerate(own.packs()):
        kind = OpKind.MMA if pack.matrix else OpKind.VALU
        found.made[stream, index] = Made(
            pack.name, kind, ahead, reads=pack.reads, shared=pack.shared, instruction=pack.matrix
        )
    first = found.first_of("AB".index(own.operand), own.part)
    for fragment in range(own.fragments):
        for half, values in enumerate(own.halves(fragment)):
            found.held[own.operand, own.part, first + fragment, half] = values


def _packed_ahead(table: ScheduleTable, reads: str, packs: str) -> int:
    """Packs in front of the reads of their trip are for those of the trip before."""
    befores = {
        min(table.stream(packs).of(path)) < min(table.stream(reads).of(path)) for path in range(table.code_paths)
    }
    if len(befores) > 1:
        raise unreadable(table, f"{packs} comes before {reads} in one code path and after it in another")
    return 0 if befores.pop() else 1


def _paired(found: Operands, stream: str, names: tuple[str, ...], ahead: int) -> Iterator[str]:
    """Packs of 16 bit: each combines two neighbouring reads.

    Where a read brings elements of two fragments, two orders of the packs are conceivable, fragment by fragment or
    element by element; a pack is then taken to need what it needs in either.
    """
    count, pairs = len(found.table.stream(stream).of(0)), len(names) // _PACKED_PAIR
    if not pairs or len(names) % _PACKED_PAIR or count % pairs:
        raise unreadable(found.table, f"{stream} has {count} packs for {len(names)} reads")
    for index in range(count):
        firsts = {index % pairs}
        if count > pairs > _ELEMENT_PAIRS and pairs % _ELEMENT_PAIRS == 0:
            block, inside = divmod(index, 2 * _ELEMENT_PAIRS)
            firsts.add(block * _ELEMENT_PAIRS % pairs + inside % _ELEMENT_PAIRS)
        reads = tuple(names[_PACKED_PAIR * first + n] for first in sorted(firsts) for n in range(_PACKED_PAIR))
        name = f"{stream.lower()}_{index}"
        found.made[stream, index] = Made(name, OpKind.VALU, ahead, reads=reads)
        yield name


def _transposed(table: ScheduleTable, axis: int) -> bool:
    """Does it read with instructions that transpose?  They take elements of 16 bits, in operands that need it."""
    contiguous_in_k = table.layout[axis] == "TN"[axis]
    return table.transposing_reads and not contiguous_in_k and table.stored.bits == 16


def _products(found: Operands, *, blocks: bool) -> Iterator[Product]:
    """The matrix instructions in the order in which they are issued."""
    table = found.table
    down, across = table.fragments
    count = table.stored.products
    for number in table.reorder or range(table.mfmas):
        tile, product = divmod(number, count)
        step, place = divmod(tile, down * across)
        a, b = _in_blocks(place, down, across) if blocks else (place % down, place // down)
        halves = ((0, 0), (1, 0), (0, 1))[product]
        reads: list[str] = []
        for operand, fragment, extent, half in (("A", a, down, halves[0]), ("B", b, across, halves[1])):
            part = step if table.steps > 1 else int(fragment >= extent // 2)
            reads += found.held[operand, part, fragment, half]
        name = f"mma{step}_{a}_{b}" if count == 1 else f"mma{step}_{a}_{b}_{product}"
        yield Product(name, f"c{a}_{b}", tuple(reads))


def _in_blocks(place: int, down: int, across: int) -> tuple[int, int]:
    """Row and column of a fragment where the tile is multiplied in four blocks, those of the first columns first."""
    rows, columns = down // 2, across // 2
    block, inside = divmod(place, rows * columns)
    return block % 2 * rows + inside % rows, block // 2 * columns + inside // rows
