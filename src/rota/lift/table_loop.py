"""What a table's loop computes: the operands of each instruction, and the loop as a `LoopSpec`.

Code paths run the same instructions in different orders on different waves, so each has its own ops and registers; LDS
tiles are shared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from rota.errors import several
from rota.lift.schedule_table import ScheduleTable, refuse_reading
from rota.program.entry import Place, Space, Work
from rota.program.kinds import Home, OpKind
from rota.program.loop_spec import LoopOp, LoopSpec, Read, Value
from rota.program.machine import LANES

_NUMBERS = 8  # numbers of a fragment in a lane
_ROUNDED = _NUMBERS // 2  # instructions that round them, two numbers each
_BY_NUMBER = 2 * _ROUNDED + 2 * _NUMBERS
_BY_MATRIX = 2 * _ROUNDED + 2
_SMALL = "v_mfma_f32_4x4x4_16b_bf16"
_TEMPORARY = "temporary"


class Pack(NamedTuple):
    """One conversion: its value, the values it reads, the register it shares, and its name if it is a matrix op."""

    name: str
    reads: tuple[str, ...]
    shared: str = ""
    matrix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TF32Packs:
    """The packs of one stream, which split single-precision numbers into bfloat16 halves."""

    table: ScheduleTable
    operand: str
    part: int
    reads: tuple[str, ...]
    count: int
    fragments: int

    def packs(self) -> Iterator[Pack]:
        each, swaps = self._count_packs()
        width = self.fragments if swaps else 0
        # For each block of reads, which numbers of which fragments change places.
        blocks = [(q, m, f) for q in range(_NUMBERS // (width or 1)) for m in range(width) for f in range(m + 1, width)]
        for q, m, f in sorted(blocks, key=lambda swap: (_NUMBERS * swap[1] + width * swap[0] + swap[2], swap)):
            yield Pack(self._swap(q, m, f), (self.reads[width * q + m], self.reads[width * q + f]))
        for fragment in range(self.fragments):
            yield from self._split_by_number(fragment) if each == _BY_NUMBER else self._split_by_matrix(fragment)

    def halves(self, fragment: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The values that hold a fragment's rounded numbers, and those that hold the remainders."""
        stem = f"{self._stem}_{fragment}"
        high, low = ([f"{stem}_{half}{n}" for n in range(_ROUNDED)] for half in ("high", "low"))
        return tuple(high), tuple(low)

    @property
    def _stem(self) -> str:
        return f"pack{self.operand.lower()}{self.part}"

    @property
    def _width(self) -> int:
        """The number of fragments that a read has numbers of."""
        axis = "AB".index(self.operand)
        return 1 if self.table.layout[axis] == "TN"[axis] else self.table.vector_widths[axis]

    def _count_packs(self) -> tuple[int, int]:
        width = self._width
        swaps = _ROUNDED * (width - 1)
        each, rest = divmod(self.count - swaps, self.fragments)
        whole = len(self.reads) == _NUMBERS and self.fragments == width and _NUMBERS % width == 0
        if rest or each not in (_BY_NUMBER, _BY_MATRIX) or not (whole if swaps else self._reads_each):
            counts = f"{self.count} packs and {len(self.reads)} reads for {self.fragments} fragments of {self.operand}"
            raise refuse_reading(self.table, f"{counts}: a fragment takes {_BY_NUMBER} packs or {_BY_MATRIX}")
        return each, swaps

    @property
    def _reads_each(self) -> int:
        """Reads per fragment; 0 if they don't divide evenly."""
        each, rest = divmod(len(self.reads), self.fragments)
        return 0 if rest or not each or _NUMBERS % each else each

    def _swap(self, q: int, m: int, f: int) -> str:
        return f"{self._stem}_swap{q}_{min(m, f)}_{max(m, f)}"

    def _holders(self, fragment: int, first: int, last: int) -> tuple[str, ...]:
        """The values that hold numbers `first` to `last` of a fragment; for swapped registers also their reads."""
        width = self._width
        if width == 1:
            each = self._reads_each
            held, start = _NUMBERS // each, fragment * each
            return self.reads[start + first // held : start + last // held + 1]
        found: dict[str, None] = {}
        for q, m in (divmod(number, width) for number in range(first, last + 1)):
            found[self.reads[width * q + m]] = None
            if m != fragment:
                found |= {self.reads[width * q + fragment]: None, self._swap(q, m, fragment): None}
        return tuple(found)

    def _round(self, fragment: int) -> Iterator[Pack]:
        for number, name in enumerate(self.halves(fragment)[0]):
            yield Pack(name, self._holders(fragment, 2 * number, 2 * number + 1))

    def _split_by_number(self, fragment: int) -> Iterator[Pack]:
        yield from self._round(fragment)
        high, low = self.halves(fragment)
        left = []
        for number in range(_NUMBERS):
            back = f"{self._stem}_{fragment}_back{number}"
            left.append(f"{self._stem}_{fragment}_left{number}")
            yield Pack(back, (high[number // 2],), shared=_TEMPORARY)
            yield Pack(left[-1], (back, *self._holders(fragment, number, number)))
        yield from self._round_rest(low, [(left[2 * n], left[2 * n + 1]) for n in range(_ROUNDED)])

    def _split_by_matrix(self, fragment: int) -> Iterator[Pack]:
        yield from self._round(fragment)
        high, low = self.halves(fragment)
        left = [f"{self._stem}_{fragment}_left{number}" for number in range(2)]
        for number, name in enumerate(left):
            numbers = self._holders(fragment, 4 * number, 4 * number + 3)
            yield Pack(name, (*high[2 * number : 2 * number + 2], *numbers), matrix=_SMALL)
        yield from self._round_rest(low, [(left[n // 2],) for n in range(_ROUNDED)])

    @staticmethod
    def _round_rest(low: tuple[str, ...], left: list[tuple[str, ...]]) -> Iterator[Pack]:
        # The last numbers first: each result overwrites registers that the one before has read.
        before: tuple[str, ...] = ()
        for number in reversed(range(_ROUNDED)):
            yield Pack(low[number], (*left[number], *before))
            before = (low[number],)


_PACKED_PAIR = 2  # reads that a pack of 16 bits combines
_ELEMENT_PAIRS = 4  # pairs of elements of a fragment in a lane
_QUADRANTS = "3"  # the number of a prefetching stream whose tile is multiplied in four blocks


class StreamValue(NamedTuple):
    """The value that an instruction makes of the LDS tile of `operand` or of register values, in register `shared`."""

    name: str
    kind: OpKind
    ahead: int  # tiles before it is multiplied
    operand: str = ""
    reads: tuple[str, ...] = ()
    shared: str = ""
    instruction: str = ""


class Product(NamedTuple):
    """One matrix instruction: its accumulator and the values that it multiplies."""

    name: str
    accumulator: str
    reads: tuple[str, ...]


@dataclass(slots=True)
class Operands:
    """The operands of every read, pack and matrix instruction of a table's loop, by stream and index."""

    table: ScheduleTable
    values: dict[tuple[str, int], StreamValue] = field(default_factory=dict)
    products: tuple[Product, ...] = ()
    held: dict[tuple[str, int, int, int], tuple[str, ...]] = field(default_factory=dict)
    """By operand, part (0 is the first of a tile), fragment and half of a TF32 number: the values that hold it."""

    def bytes_of(self, stream: str) -> int:
        table, count = self.table, len(self.table.stream(stream).of(0))
        axis = "AB".index(stream[2])
        size = table.mfma[axis] * table.mfma[2] * table.stored.bits // 8
        return -(-self.fragments_of(axis) * size // count)

    def fragments_of(self, axis: int) -> int:
        count = self.table.fragments[axis]
        return count if self.table.steps > 1 else count // 2

    def first_of(self, axis: int, part: int) -> int:
        """The first of these fragments: in a tile of one step, part 1 is the second half of the fragments."""
        return part * self.fragments_of(axis) if self.table.steps == 1 else 0


def derive_operands(table: ScheduleTable, *, in_blocks: bool = False) -> Operands:
    """Find the operands of each instruction, or raise T303; with `in_blocks`, four blocks are multiplied in turn."""
    last = table.prefetched
    if table.steps > 2 or last == "0" or (table.steps == 1 and any(count % 2 for count in table.fragments)):
        steps = several(table.steps, "step")
        why = f"{steps} of K with reads up to number {last}: no rule says which reads are for which step"
        raise refuse_reading(table, why)
    found = Operands(table)
    for axis in range(2):
        _read_stream(found, axis, "0", part=1)
        _read_stream(found, axis, last, part=0)
    found.products = tuple(_list_products(found, blocks=in_blocks or last == _QUADRANTS))
    return found


def _read_stream(found: Operands, axis: int, number: str, part: int) -> None:
    table, operand = found.table, "AB"[axis]
    reads, packs = table.stream(f"LR{operand}{number}"), table.stream(f"Pack{operand}{number}")
    fragments = found.fragments_of(axis)
    # Transposing instructions take elements of 16 bits, and read what is not contiguous in K.
    transposes = table.transposing_reads and table.layout[axis] != "TN"[axis] and table.stored.bits == 16
    kind = OpKind.LDS_READ_TRANSPOSED if transposes else OpKind.LDS_READ
    ahead = 1 if part == 0 else 0
    names = tuple(f"{operand.lower()}{part}_{index}" for index in range(len(reads.of(0))))
    for index, name in enumerate(names):
        found.values[reads.name, index] = StreamValue(name, kind, ahead, operand)
    count = len(packs.of(0))
    if count and part == 0:  # packs before the reads of their trip convert the reads of the trip before
        befores = {min(packs.of(path)) < min(reads.of(path)) for path in range(table.code_paths)}
        if len(befores) > 1:
            why = f"{packs.name} comes before {reads.name} in one code path and after it in another"
            raise refuse_reading(table, why)
        ahead = 0 if befores.pop() else 1
    if table.stored.products > 1:
        own = TF32Packs(table=table, operand=operand, part=part, reads=names, count=count, fragments=fragments)
        _convert(found, packs.name, own, ahead)
        return
    values = tuple(_pair(found, packs.name, names, ahead)) if count else names
    each, rest = divmod(len(values), fragments)
    if rest or not each:
        raise refuse_reading(table, f"{reads.name} has {len(names)} reads and {count} packs for {fragments} fragments")
    for fragment in range(fragments):
        own_values = values[fragment * each : (fragment + 1) * each]
        found.held[operand, part, found.first_of(axis, part) + fragment, 0] = own_values


def _convert(found: Operands, stream: str, own: TF32Packs, ahead: int) -> None:
    for index, pack in enumerate(own.packs()):
        kind = OpKind.MMA if pack.matrix else OpKind.VALU
        found.values[stream, index] = StreamValue(pack.name, kind, ahead, "", pack.reads, pack.shared, pack.matrix)
    first = found.first_of("AB".index(own.operand), own.part)
    for fragment in range(own.fragments):
        for half, values in enumerate(own.halves(fragment)):
            found.held[own.operand, own.part, first + fragment, half] = values


def _pair(found: Operands, stream: str, names: tuple[str, ...], ahead: int) -> Iterator[str]:
    """Packs of 16 bits: each combines two neighbouring reads.

    If a read has elements of two fragments, the packs may go fragment by fragment or element by element; a pack is then
    assumed to need the reads of both orders.
    """
    count, pairs = len(found.table.stream(stream).of(0)), len(names) // _PACKED_PAIR
    if not pairs or len(names) % _PACKED_PAIR or count % pairs:
        raise refuse_reading(found.table, f"{stream} has {count} packs for {len(names)} reads")
    for index in range(count):
        firsts = {index % pairs}
        if count > pairs > _ELEMENT_PAIRS and pairs % _ELEMENT_PAIRS == 0:
            block, inside = divmod(index, 2 * _ELEMENT_PAIRS)
            firsts.add(block * _ELEMENT_PAIRS % pairs + inside % _ELEMENT_PAIRS)
        reads = tuple(names[_PACKED_PAIR * first + n] for first in sorted(firsts) for n in range(_PACKED_PAIR))
        name = f"{stream.lower()}_{index}"
        found.values[stream, index] = StreamValue(name, OpKind.VALU, ahead, reads=reads)
        yield name


def _list_products(found: Operands, *, blocks: bool) -> Iterator[Product]:
    table = found.table
    down, across = table.fragments
    count = table.stored.products
    for number in table.reorder or range(table.mfmas):
        tile, product = divmod(number, count)
        step, place = divmod(tile, down * across)
        a, b = place % down, place // down
        if blocks:  # four, the first columns first
            rows, columns = down // 2, across // 2
            block, inside = divmod(place, rows * columns)
            a, b = block % 2 * rows + inside % rows, block // 2 * columns + inside // rows
        halves = ((0, 0), (1, 0), (0, 1))[product]
        reads: list[str] = []
        for operand, fragment, extent, half in (("A", a, down, halves[0]), ("B", b, across, halves[1])):
            part = step if table.steps > 1 else int(fragment >= extent // 2)
            reads += found.held[operand, part, fragment, half]
        name = f"mma{step}_{a}_{b}" if count == 1 else f"mma{step}_{a}_{b}_{product}"
        yield Product(name, f"c{a}_{b}", tuple(reads))


_REGISTER_BYTES = 4
_INPUTS = {"16bit": "bf16", "TF32": "bf16", "8bit": "f8f6f4"}
_SMALL_RESULT = 4  # registers of the result of a 4 x 4 matrix instruction


class Load(NamedTuple):
    """One load to LDS: the operand whose tile it fills a part of, and the bytes that it moves for a wave."""

    operand: str
    name: str
    moved: int


def loop_of(table: ScheduleTable, *, in_blocks: bool = False) -> LoopSpec:
    """The loop of a table, the same for all waves and without the table's order."""
    return TableLoop(replace(table, code_paths=1), in_blocks=in_blocks).spec


class TableLoop:
    """The declaration of a loop, and what its entries need to know of the ops."""

    def __init__(self, table: ScheduleTable, *, in_blocks: bool) -> None:
        self.table = table
        self.waves = table.waves[0] * table.waves[1]
        self.operands = derive_operands(table, in_blocks=in_blocks)
        self.loads = {name: tuple(self._list_loads(name)) for name in ("GRA", "GRB")}
        side, columns, k = table.mfma
        self.instruction = f"v_mfma_f32_{side}x{columns}x{k}_{_INPUTS[table.element]}"
        ops = tuple(op for path in range(table.code_paths) for op in self.ops(path))
        self.spec = LoopSpec(name=table.title, waves=self.waves, values=tuple(self._values()), ops=ops)
        self.named = {op.name: op for op in ops}
        self.parts = {name: {op.name: n for n, op in enumerate(self.spec.writers(name))} for name in "AB"}
        self._first: dict[str, str] = {}  # the first value of the register that a value overwrites
        for value in self.spec.values:
            if value.into:
                self._first[value.name] = self._first.get(value.into, value.into)

    def suffix(self, path: int) -> str:
        return "" if self.table.code_paths == 1 else f"_p{path}"

    def register(self, name: str) -> Place:
        return Place(Space.REGISTER, self._first.get(name, name))

    def work(self, stream: str, made: StreamValue) -> Work:
        return Work(1, self.operands.bytes_of(stream) if made.operand else 0, made.instruction)

    def ops(self, path: int) -> Iterator[LoopOp]:
        end, waves = self.suffix(path), self.waves // self.table.code_paths
        for load in (*self.loads["GRA"], *self.loads["GRB"]):
            moved = load.moved * waves
            yield LoopOp(name=load.name + end, kind=OpKind.DMA, writes=(load.operand,), moved=moved)
        for (stream, _), made in self.operands.values.items():
            reads = (made.operand,) if made.operand else tuple(name + end for name in made.reads)
            yield LoopOp(
                name=op_name(made) + end,
                kind=made.kind,
                reads=tuple(Read(value=name) for name in reads),
                writes=(made.name + end,),
                moved=self.work(stream, made).moved * waves,
                instruction=made.instruction,
            )
        for product in self.operands.products:
            yield LoopOp(
                name=product.name + end,
                kind=OpKind.MMA,
                reads=tuple(Read(value=name + end) for name in product.reads),
                writes=(product.accumulator + end,),
                instruction=self.instruction,
            )

    def _list_loads(self, stream: str) -> Iterator[Load]:
        # Each load follows an update of its address register; in a swapped order GRA loads B.
        table = self.table
        operand = stream[-1] if not table.swapped else {"GRA": "B", "GRB": "A"}[stream]
        count, odd = divmod(len(table.stream(stream).of(0)), 2)
        if odd or not count:
            why = f"{stream} has {2 * count + odd} instructions; loads come in pairs with m0 updates"
            raise refuse_reading(table, why)
        for number in range(count):
            yield Load(operand, f"load_{operand}{number}", -(-self._size(operand) // (count * self.waves)))

    def _size(self, operand: str) -> int:
        return self.table.tile["AB".index(operand)] * self.table.tile[2] * self.table.stored.bits // 8

    def _values(self) -> Iterator[Value]:
        for name in "AB":
            yield Value(name=name, home=Home.LDS, size=self._size(name), operand=name)
        for path in range(self.table.code_paths):
            end, shared = self.suffix(path), dict[str, str]()
            for (stream, _), made in self.operands.values.items():
                name = made.name + end
                into, size = shared.get(made.shared, ""), self._registers(stream, made)
                yield Value(name=name, home=Home.REGISTERS, size=size, into=into)
                if made.shared:
                    shared[made.shared] = name
            for name in dict.fromkeys(product.accumulator for product in self.operands.products):
                size = self.table.mfma[0] * self.table.mfma[1] // LANES
                yield Value(name=name + end, home=Home.ACCUMULATOR, size=size)

    def _registers(self, stream: str, made: StreamValue) -> int:
        if made.operand:
            return -(-self.operands.bytes_of(stream) // (_REGISTER_BYTES * LANES))
        return _SMALL_RESULT if made.kind is OpKind.MMA else 1


def op_name(made: StreamValue) -> str:
    return f"{'read' if made.operand else 'make'}_{made.name}"
