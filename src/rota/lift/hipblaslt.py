"""hipBLASLt's main-loop schedules as lowered programs: takes a `ScheduleTable` and a machine, gives a `LoweredProgram`.

A table holds the loop.  What surrounds it is assumed: in front of the loop two tiles are loaded, the first is waited
for, and what the loop expects to be read has been read; behind it the last two tiles are computed with the loop's own
instructions (`rota.lift.schedule_table`).

LDS holds two tiles of each operand, or three.  Which of them a read or a load uses is followed through the table's own
pointer arithmetic.  A load fills its part of a tile; a read is taken to read the whole tile of its operand, which is
more than it does: what is proved so holds, and what isn't may be provable with more known about addresses.

Pointer arithmetic moves no data and has no entries.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from rota.lift.schedule_table import MFMA, Body, ScheduleTable, SyncOp, TableInstruction, issued, malformed, unreadable
from rota.lift.table_loop import Load, Made, TableLoop, op_name
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
_ORIGIN = "hipBLASLt's table; assumed: what surrounds the loop, whole tiles read, registers of its own for every value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a table leaves open.

    The loop is unrolled, so that buffers are constants: with each number of tiles `before` it that is less than the
    number of buffers, every number of tiles is covered.  With `a_first` GRA's loads are issued in front of GRB's before
    the loop, otherwise in the loop's own order.  With `full_waits_last` the last tile's waits for LDS are for
    everything.  With `full_counter` a wait for more than its counter holds is what a full counter gives: issue stalls
    there, so no more are under way.  With `in_blocks` fragments are multiplied in four blocks, whatever the streams'
    numbers say.
    """

    before: int = 0
    a_first: bool = False
    full_waits_last: bool = False
    full_counter: bool = False
    in_blocks: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HandMade:
    """A table as something that the command takes: `rota check file.py:name` proves it, `rota show` draws it."""

    table: ScheduleTable
    reading: Reading = Reading()

    def compile_for(self, machine: Machine) -> LoweredProgram:
        """The table's program."""
        return lower_table(self.table, machine, self.reading)


def lower_table(table: ScheduleTable, machine: Machine, reading: Reading | None = None) -> LoweredProgram:
    """The program, or T302 or T303 where the table can't be read."""
    reading = reading or Reading()
    waves, paths = table.waves[0] * table.waves[1], range(table.code_paths)
    if waves % table.code_paths:
        raise malformed(table.title, f"{table.code_paths} code paths for {waves} waves")
    loop = TableLoop(table, in_blocks=reading.in_blocks)
    maker = _Maker(loop, _with_room(machine) if reading.full_counter else machine, reading)
    roles: tuple[Role, ...] = (Role("waves", waves),)
    if table.code_paths > 1:
        own = [frozenset(op.name for op in loop.ops(path)) for path in paths]
        roles = tuple(Role(f"path {path}", waves // table.code_paths, own[path]) for path in paths)
    barriers = (Barrier(WORKGROUP, tuple(paths), tuple(paths)),)
    phases = merged(roles, barriers, {phase: [tuple(maker.phase(phase, path)) for path in paths] for phase in Phase})
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


def _with_room(machine: Machine) -> Machine:
    """The machine as if a wait could say that a counter is full."""
    room = [replace(each, holds=each.holds._replace(value=each.holds.value + 1)) for each in machine.counters]
    return replace(machine, counters=tuple(room))


class _Tile(NamedTuple):
    """The tile that is computed, and where: `offset` is what its number in effects differs by."""

    number: int
    body: Body
    path: int
    phase: Phase
    offset: int


_Held = Sequence[tuple[Place, Version]]


@dataclass(slots=True)
class _Pointers:
    """In one tile: which buffer is read, which is loaded into, how often addresses have moved.

    The address register `holds` the buffer of the stream that took it over.
    """

    tile: int
    buffers: int
    reads: Tally[str] = field(default_factory=Tally)
    loads: Tally[str] = field(default_factory=Tally)
    moved: Tally[str] = field(default_factory=Tally)
    holds: tuple[str, int] = ("", 0)

    def read_buffer(self, operand: str) -> int:
        return (self.tile + self.reads[operand]) % self.buffers

    def load_buffer(self, operand: str) -> int:
        return (self.tile + _AHEAD + self.loads[operand]) % self.buffers


class _Maker:
    """Makes the entries of each code path; iterations are counted from the phase's k."""

    def __init__(self, loop: TableLoop, machine: Machine, reading: Reading) -> None:
        self.loop, self.machine, self.reading = loop, machine, reading
        self.table = loop.table

    def phase(self, phase: Phase, path: int) -> Iterator[Entry]:
        """What the waves of a code path execute."""
        before, buffers = self.reading.before, self.table.buffers
        if phase is Phase.PROLOGUE:
            yield from self._fill(_Tile(0, Body.LOOP, path, phase, 0))
        bodies = {
            Phase.PROLOGUE: [(tile, Body.LOOP) for tile in range(before)],
            Phase.KERNEL: [(before + tile, Body.LOOP) for tile in range(buffers)],
            Phase.EPILOGUE: [(before, Body.NO_LOADS), (before + 1, Body.LAST)],
        }
        # The first trip is the one after the prologue's, which has number 0.
        offset = 0 if phase is Phase.PROLOGUE else -buffers
        for number, body in bodies[phase]:
            yield from self._body(_Tile(number, body, path, phase, offset))

    def _fill(self, at: _Tile) -> Iterator[Entry]:
        """In front of the loop: two tiles are loaded, and what the first tile begins with is read and converted."""
        streams = sorted(self.loop.loads, key=lambda name: self.table.stream(name).of(0))
        if self.reading.a_first:
            streams.sort()
        loads = [load for stream in streams for load in self.loop.loads[stream]]
        for tile in range(_AHEAD):
            for load in loads:
                yield self._load(load, at, tile, tile % self.table.buffers)
        yield self._wait(OpKind.DMA, len(loads), at)
        yield _entry(BARRIER, MEETS, at)
        last = self.table.prefetched
        for stream in (f"LRA{last}", f"LRB{last}"):
            yield from self._ahead(stream, at)
        yield self._wait(OpKind.LDS_READ, 0, at)
        for stream in (f"PackA{last}", f"PackB{last}"):
            yield from self._ahead(stream, at)

    def _ahead(self, stream: str, at: _Tile) -> Iterator[Entry]:
        """What a stream makes for the next tile."""
        for index in range(len(self.table.stream(stream).of(at.path))):
            made = self.loop.operands.made[stream, index]
            if made.ahead:
                yield self._made(made, stream, at, 0, 0)

    def _body(self, at: _Tile) -> Iterator[Entry]:
        pointers = _Pointers(at.number, self.table.buffers)
        for each in issued(self.table, at.path, at.body):
            if each.sync is not None:
                yield from self._synchronise(each.sync, at)
            elif each.stream == MFMA:
                yield self._product(each.number, at)
            elif each.stream in self.loop.loads:
                yield from self._loading(each, pointers, at)
            elif (each.stream, each.number) in self.loop.operands.made:
                made = self.loop.operands.made[each.stream, each.number]
                if at.body is not Body.LAST or not made.ahead:  # else it converts what no read has brought
                    yield self._made(made, each.stream, at, made.ahead, pointers.read_buffer(made.operand))
            else:
                self._point(pointers, each, at.path)
        if at.body is Body.LOOP and any(
            moved[name] != 1 for moved in (pointers.reads, pointers.loads) for name in "AB"
        ):
            raise unreadable(self.table, "it has a pointer that isn't moved on once in a trip")

    def _loading(self, each: TableInstruction, pointers: _Pointers, at: _Tile) -> Iterator[Entry]:
        """An update of the address register, or the load behind it."""
        load = self.loop.loads[each.stream][each.number // 2]
        if not each.number:  # takes over the pointer; later updates add to it
            pointers.holds = each.stream, pointers.load_buffer(load.operand)
        stream, buffer = pointers.holds
        if each.stream != stream:
            raise unreadable(self.table, "loads of A and B take turns, and there is one address register")
        if each.number % 2:
            due = len(self.table.stream(f"GRInc{load.operand}").of(at.path))
            if pointers.moved[load.operand] != due:
                raise unreadable(self.table, f"{each.stream} loads before GRInc{load.operand} is through")
            yield self._load(load, at, _AHEAD, buffer)

    def _point(self, pointers: _Pointers, each: TableInstruction, path: int) -> None:
        """Pointer arithmetic; a pointer has moved with the last instruction of its stream."""
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

    def _synchronise(self, sync: SyncOp, at: _Tile) -> Iterator[Entry]:
        if sync.barrier:
            yield _entry(BARRIER, MEETS, at)
        if sync.lds is not None:
            full = at.body is Body.LAST and self.reading.full_waits_last
            yield self._wait(OpKind.LDS_READ, 0 if full else sync.lds, at)
        if sync.memory is not None:
            yield self._wait(OpKind.DMA, sync.memory, at)

    def _wait(self, kind: OpKind, count: int, at: _Tile) -> Entry:
        """A wait on the counter that tracks a kind of op."""
        counter = self.machine.counter_of(kind)
        if counter is None:
            raise unreadable(self.table, f"{self.machine.name} has no counter for {kind.does}")
        if self.reading.full_counter:
            count = min(count, self.machine.largest_wait(counter))
        return _entry(wait_op(counter, count), wait_effect(counter, count), at)

    def _load(self, load: Load, at: _Tile, ahead: int, buffer: int) -> Entry:
        op = self.loop.named[load.name + self.loop.suffix(at.path)]
        version = Version(load.operand, at.number + ahead + at.offset)
        part = self.loop.parts[load.operand][op.name]
        makes = ((Place(Space.LDS, load.operand, buffer, part), version),)
        return self._data(op, at, ahead, Work(1, load.moved), makes=makes, copy=buffer)

    def _made(self, made: Made, stream: str, at: _Tile, ahead: int, buffer: int) -> Entry:
        """A read or a pack."""
        end, iteration = self.loop.suffix(at.path), at.number + ahead + at.offset
        wants = [(self.loop.register(name + end), Version(name + end, iteration)) for name in made.reads]
        if made.operand:
            parts = self.loop.parts[made.operand].values()
            tile = Version(made.operand, iteration)
            wants = [(Place(Space.LDS, made.operand, buffer, part), tile) for part in parts]
        makes = ((self.loop.register(made.name + end), Version(made.name + end, iteration)),)
        op = self.loop.named[op_name(made) + end]
        return self._data(op, at, ahead, self.loop.work(stream, made), wants=wants, makes=makes)

    def _product(self, number: int, at: _Tile) -> Entry:
        product, end = self.loop.operands.products[number], self.loop.suffix(at.path)
        iteration = at.number + at.offset
        wants = [(self.loop.register(name + end), Version(name + end, iteration)) for name in product.reads]
        entry = self._data(self.loop.named[product.name + end], at, 0, Work(1, 0, self.loop.instruction), wants=wants)
        sums = (Place(Space.ACCUMULATOR, product.accumulator + end),)
        return replace(entry, effect=replace(entry.effect, writes=sums))

    def _data(
        self,
        op: LoopOp,
        at: _Tile,
        ahead: int,
        work: Work,
        *,
        wants: _Held = (),
        makes: _Held = (),
        copy: int | None = None,
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
        return _entry(Op(kind=op.kind, name=op.name, copy=copy, work=work, declared=op), effect, at)


def _entry(op: Op, effect: Effect, at: _Tile) -> Entry:
    return Entry(op=op, effect=effect, time_slot=0, phase=at.phase)
