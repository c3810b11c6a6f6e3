"""Lowers hipBLASLt's main-loop schedules to programs that rota can prove and draw.

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
from rota.lift.table_loop import Load, StreamValue, TableLoop, op_name
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
from rota.program.kinds import OpKind, Phase
from rota.program.loop_spec import LoopOp
from rota.program.lowered import Barrier, LoweredProgram, Role, merged
from rota.program.machine import Machine

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
