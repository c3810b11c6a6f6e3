"""Lowers hipBLASLt's main-loop schedules to programs that rota can prove and draw.

First what a table's loop computes: the operands of each instruction, and the loop as a `LoopSpec`. Code paths run the
same instructions in different orders on different waves, so each has its own ops and registers; LDS tiles are shared.

A table has the loop only.  Its surroundings are assumed: before the loop two tiles are loaded, the first is waited for,
and what the loop expects to be read has been read; after it the last two tiles are computed with the loop's own
instructions (`rota.lift.schedule_table`).

LDS holds two or three tiles of each operand.  The table's pointer arithmetic decides which of them a read or a load
accesses; it moves no data and has no entries.  A load fills its part of a tile.  A read is assumed to read the whole
tile of its operand, more than it really does: a proof stays valid, and a failure may be a false alarm.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from rota.errors import several
from rota.lift.schedule_table import (
    MFMA,
    Body,
    ScheduleTable,
    SyncOp,
    TableInstruction,
    iterate_instructions,
    refuse_malformed,
    refuse_reading,
)
from rota.program.entry import (
    BARRIER,
    MEETS,
    WORKGROUP,
    Effect,
    Entry,
    Op,
    Place,
    Space,
    Version,
    Work,
    wait_effect,
    wait_op,
)
from rota.program.kinds import Home, OpKind, Phase
from rota.program.loop_spec import LoopOp, LoopSpec, Read, Value
from rota.program.lowered import Barrier, LoweredProgram, Role, merged
from rota.program.machine import LANES, Machine

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


_AHEAD = 2  # tiles between what is loaded and what is computed
_ORIGIN = "hipBLASLt's table; assumed: code around the loop, reads of whole tiles, separate registers for every value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How to read what a table leaves open.

    The loop is unrolled, so that buffers are constants; `before` tiles run ahead of it, and all numbers of them below
    the number of buffers together cover every number of tiles.
    """

    before: int = 0
    a_first: bool = False  # GRA's loads are issued before GRB's in front of the loop, not in the loop's own order
    full_waits_last: bool = False  # the last tile's LDS waits wait for everything
    full_counter: bool = False  # a wait for more than its counter holds waits for a full one, where issue stalls
    in_blocks: bool = False  # fragments are multiplied in four blocks, whatever the streams' numbers say


@dataclass(frozen=True, slots=True, kw_only=True)
class HandMade:
    """A table as a kernel for the command: `rota check file.py:name` proves it, `rota show file.py:name` draws it."""

    table: ScheduleTable
    reading: Reading = Reading()

    def compile_for(self, machine: Machine) -> LoweredProgram:

        return lower_table(self.table, machine, self.reading)


def lower_table(table: ScheduleTable, machine: Machine, reading: Reading | None = None) -> LoweredProgram:
    """Lower a table; raises T302 or T303 if it can't be read."""
    reading = reading or Reading()
    waves, paths = table.waves[0] * table.waves[1], range(table.code_paths)
    if waves % table.code_paths:
        raise refuse_malformed(table.title, f"{table.code_paths} code paths for {waves} waves")
    loop = TableLoop(table, in_blocks=reading.in_blocks)
    if reading.full_counter:  # counters hold one more, so that a wait can name a full one
        room = [replace(each, holds=each.holds._replace(value=each.holds.value + 1)) for each in machine.counters]
        machine = replace(machine, counters=tuple(room))
    maker = _Maker(loop, machine, reading)
    roles: tuple[Role, ...] = (Role("waves", waves),)
    if table.code_paths > 1:
        own = [frozenset(op.name for op in loop.ops(path)) for path in paths]
        roles = tuple(Role(f"path {path}", waves // table.code_paths, own[path]) for path in paths)
    barriers = (Barrier(WORKGROUP, tuple(paths), tuple(paths)),)
    made = {phase: [tuple(maker.make_phase(phase, path)) for path in paths] for phase in Phase}
    phases = merged(roles, barriers, made)
    return LoweredProgram(
        name=table.title,
        machine=maker.machine,
        semantics=loop.spec,
        prologue=phases[Phase.PROLOGUE],
        kernel=phases[Phase.KERNEL],
        epilogue=phases[Phase.EPILOGUE],
        tiles_per_trip=table.buffers,
        tiles_outside=_AHEAD + reading.before,
        roles=roles,
        barriers=barriers,
        compiler_tracks_registers=False,
        lds_bytes=loop.spec.lds_bytes(dict.fromkeys("AB", table.buffers)),
        waves=waves,
        origin=_ORIGIN,
    )


class _Tile(NamedTuple):
    """The tile to compute, and where; `offset` is added to its number in effects."""

    number: int
    body: Body
    path: int
    phase: Phase
    offset: int


_Versions = Sequence[tuple[Place, Version]]


@dataclass(slots=True)
class _Pointers:
    """The state of pointer arithmetic in one tile: how often pointers of reads and loads, and addresses, have moved."""

    tile: int
    buffers: int
    reads: Tally[str] = field(default_factory=Tally)
    loads: Tally[str] = field(default_factory=Tally)
    moved: Tally[str] = field(default_factory=Tally)
    holds: tuple[str, int] = ("", 0)  # the stream and buffer in the address register

    def read_buffer(self, operand: str) -> int:
        return (self.tile + self.reads[operand]) % self.buffers

    def load_buffer(self, operand: str) -> int:
        return (self.tile + _AHEAD + self.loads[operand]) % self.buffers


class _Maker:
    """Makes the entries of each code path; iterations count from the phase's k."""

    def __init__(self, loop: TableLoop, machine: Machine, reading: Reading) -> None:
        self.loop, self.machine, self.reading = loop, machine, reading
        self.table = loop.table

    def make_phase(self, phase: Phase, path: int) -> Iterator[Entry]:
        before, buffers = self.reading.before, self.table.buffers
        if phase is Phase.PROLOGUE:
            yield from self._make_fill(_Tile(0, Body.LOOP, path, phase, 0))
        bodies = {
            Phase.PROLOGUE: [(tile, Body.LOOP) for tile in range(before)],
            Phase.KERNEL: [(before + tile, Body.LOOP) for tile in range(buffers)],
            Phase.EPILOGUE: [(before, Body.NO_LOADS), (before + 1, Body.LAST)],
        }
        # The first trip is the one after the prologue's, which has number 0.
        offset = 0 if phase is Phase.PROLOGUE else -buffers
        for number, body in bodies[phase]:
            yield from self._make_body(_Tile(number, body, path, phase, offset))

    def _make_fill(self, at: _Tile) -> Iterator[Entry]:
        """Before the loop: load two tiles, and read and convert what the first tile begins with."""
        streams = sorted(self.loop.loads, key=lambda name: self.table.stream(name).of(0))
        if self.reading.a_first:
            streams.sort()
        loads = [load for stream in streams for load in self.loop.loads[stream]]
        for tile in range(_AHEAD):
            for load in loads:
                yield self._make_load(load, at, tile, tile % self.table.buffers)
        yield self._make_wait(OpKind.DMA, len(loads), at)
        yield _make_entry(BARRIER, MEETS, at)
        last = self.table.prefetched
        for stream in (f"LRA{last}", f"LRB{last}"):
            yield from self._make_ahead(stream, at)
        yield self._make_wait(OpKind.LDS_READ, 0, at)
        for stream in (f"PackA{last}", f"PackB{last}"):
            yield from self._make_ahead(stream, at)

    def _make_ahead(self, stream: str, at: _Tile) -> Iterator[Entry]:
        for index in range(len(self.table.stream(stream).of(at.path))):
            made = self.loop.operands.values[stream, index]
            if made.ahead:
                yield self._make_value(made, stream, at, 0, 0)

    def _make_body(self, at: _Tile) -> Iterator[Entry]:
        pointers = _Pointers(at.number, self.table.buffers)
        for each in iterate_instructions(self.table, at.path, at.body):
            if each.sync is not None:
                yield from self._make_sync(each.sync, at)
            elif each.stream == MFMA:
                yield self._make_product(each.number, at)
            elif each.stream in self.loop.loads:
                yield from self._issue_load(each, pointers, at)
            elif (each.stream, each.number) in self.loop.operands.values:
                made = self.loop.operands.values[each.stream, each.number]
                if at.body is not Body.LAST or not made.ahead:  # else it would convert what nothing has read
                    yield self._make_value(made, each.stream, at, made.ahead, pointers.read_buffer(made.operand))
            else:
                self._move_pointer(pointers, each, at.path)
        moves = [moved[name] for moved in (pointers.reads, pointers.loads) for name in "AB"]
        if at.body is Body.LOOP and moves != [1] * 4:
            raise refuse_reading(self.table, "one of its pointers doesn't move exactly once per trip")

    def _issue_load(self, each: TableInstruction, pointers: _Pointers, at: _Tile) -> Iterator[Entry]:
        """An update of the address register (no entry), or the load after it."""
        load = self.loop.loads[each.stream][each.number // 2]
        if not each.number:  # sets the address register; later updates add to it
            pointers.holds = each.stream, pointers.load_buffer(load.operand)
        stream, buffer = pointers.holds
        if each.stream != stream:
            raise refuse_reading(self.table, "loads of A and B take turns, and there is one address register")
        if each.number % 2:
            if pointers.moved[load.operand] != len(self.table.stream(f"GRInc{load.operand}").of(at.path)):
                raise refuse_reading(self.table, f"{each.stream} loads before GRInc{load.operand} is complete")
            yield self._make_load(load, at, _AHEAD, buffer)

    def _move_pointer(self, pointers: _Pointers, each: TableInstruction, path: int) -> None:
        """Follow pointer arithmetic: a pointer moves with the last instruction of its stream."""
        operand = each.stream[-1]
        if each.stream.startswith("GRInc"):
            pointers.moved[operand] += 1
        elif each.number == len(self.table.stream(each.stream).of(path)) - 1:
            if each.stream.startswith("LRS"):
                pointers.reads[operand] += 1
            elif each.stream.startswith("LWS"):
                # A stream without instructions shares the other operand's pointer.
                shared = not all(self.table.stream(name).of(path) for name in ("LWSA", "LWSB"))
                pointers.loads.update("AB" if shared else operand)

    def _make_sync(self, sync: SyncOp, at: _Tile) -> Iterator[Entry]:
        if sync.barrier:
            yield _make_entry(BARRIER, MEETS, at)
        if sync.lds is not None:
            full = at.body is Body.LAST and self.reading.full_waits_last
            yield self._make_wait(OpKind.LDS_READ, 0 if full else sync.lds, at)
        if sync.memory is not None:
            yield self._make_wait(OpKind.DMA, sync.memory, at)

    def _make_wait(self, kind: OpKind, count: int, at: _Tile) -> Entry:
        counter = self.machine.counter_of(kind)
        if counter is None:
            raise refuse_reading(self.table, f"{self.machine.name} has no counter for {kind.does}")
        if self.reading.full_counter:
            count = min(count, self.machine.largest_wait(counter))
        return _make_entry(wait_op(counter, count), wait_effect(counter, count), at)

    def _make_load(self, load: Load, at: _Tile, ahead: int, buffer: int) -> Entry:
        op = self.loop.named[load.name + self.loop.suffix(at.path)]
        version = Version(load.operand, at.number + ahead + at.offset)
        part = self.loop.parts[load.operand][op.name]
        makes = ((Place(Space.LDS, load.operand, buffer, part), version),)
        return self._make_data_entry(op, at, ahead, Work(1, load.moved), makes=makes)

    def _make_value(self, made: StreamValue, stream: str, at: _Tile, ahead: int, buffer: int) -> Entry:
        end, iteration = self.loop.suffix(at.path), at.number + ahead + at.offset
        wants = [(self.loop.register(name + end), Version(name + end, iteration)) for name in made.reads]
        if made.operand:
            parts = self.loop.parts[made.operand].values()
            tile = Version(made.operand, iteration)
            wants = [(Place(Space.LDS, made.operand, buffer, part), tile) for part in parts]
        makes = ((self.loop.register(made.name + end), Version(made.name + end, iteration)),)
        op = self.loop.named[op_name(made) + end]
        return self._make_data_entry(op, at, ahead, self.loop.work(stream, made), wants=wants, makes=makes)

    def _make_product(self, number: int, at: _Tile) -> Entry:
        product, end = self.loop.operands.products[number], self.loop.suffix(at.path)
        iteration = at.number + at.offset
        wants = [(self.loop.register(name + end), Version(name + end, iteration)) for name in product.reads]
        work = Work(1, 0, self.loop.instruction)
        entry = self._make_data_entry(self.loop.named[product.name + end], at, 0, work, wants=wants)
        sums = (Place(Space.ACCUMULATOR, product.accumulator + end),)
        return replace(entry, effect=replace(entry.effect, writes=sums))

    def _make_data_entry(
        self, op: LoopOp, at: _Tile, ahead: int, work: Work, *, wants: _Versions = (), makes: _Versions = ()
    ) -> Entry:
        counter = self.machine.counter_of(op.kind)
        effect = Effect(
            kind=op.kind,
            counter=counter,
            tokens=1 if counter else 0,
            reads=tuple(place for place, _ in wants),
            writes=tuple(place for place, _ in makes),
            instance=Version(op.name, at.number + ahead + at.offset),
            wants=tuple(wants),
            makes=tuple(makes),
        )
        copy = makes[0][0].copy if op.kind is OpKind.DMA else None  # the buffer that a load fills
        return _make_entry(Op(kind=op.kind, name=op.name, copy=copy, work=work, declared=op), effect, at)


def _make_entry(op: Op, effect: Effect, at: _Tile) -> Entry:
    return Entry(op=op, effect=effect, time_slot=0, phase=at.phase)
