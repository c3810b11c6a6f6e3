"""A producer and a consumer, written by hand: takes a machine, gives the lowered program of a small GEMM loop.

The producer's waves only load tiles, the consumer's only read and multiply them.  A tile of each operand has two
buffers.  The producer arrives at "full" when a tile has landed, the consumer at "empty" when it has read one:

    producer, tile i: wait at empty (not for the first two), load A and B, wait for tile i - 1 to land, arrive at full
    consumer, tile i: wait at full, read a and b, wait for them, arrive at empty (not for the last two), multiply

The loop is unrolled twice, so that every buffer is a constant: the prologue loads tiles 0 and 1, a trip computes two
tiles and loads the next two, the epilogue computes the last two.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rota import GFX950
from rota.program.entry import Effect, Entry, Op, Place, Space, Version, Work, wait_effect, wait_op
from rota.program.kinds import Home, OpKind, Phase
from rota.program.loop_spec import LoopOp, LoopSpec, Read, Value
from rota.program.lowered import Barrier, LoweredProgram, Role, number_entries
from rota.program.machine import Machine

PRODUCER, CONSUMER = 0, 1
FULL, EMPTY = "full", "empty"
DEPTH = 2  # buffers of a tile
MFMA = "v_mfma_f32_16x16x32_bf16"
SPLIT_BARRIERS = replace(GFX950, name="split barriers", split_barrier=True)
"""No machine that is sold: named barriers at which arriving and waiting are two instructions."""

SPEC = LoopSpec(
    name="producer_consumer",
    waves=4,
    values=(
        Value(name="A", home=Home.LDS, size=4096),
        Value(name="B", home=Home.LDS, size=4096),
        Value(name="a", home=Home.REGISTERS, size=4),
        Value(name="b", home=Home.REGISTERS, size=4),
        Value(name="c", home=Home.ACCUMULATOR, size=4),
    ),
    ops=(
        LoopOp(name="load_A", kind=OpKind.DMA, writes=("A",), moved=4096),
        LoopOp(name="load_B", kind=OpKind.DMA, writes=("B",), moved=4096),
        LoopOp(name="read_a", kind=OpKind.LDS_READ, reads=(Read(value="A"),), writes=("a",), moved=4096),
        LoopOp(name="read_b", kind=OpKind.LDS_READ, reads=(Read(value="B"),), writes=("b",), moved=4096),
        LoopOp(
            name="mma_c", kind=OpKind.MMA, reads=(Read(value="a"), Read(value="b")), writes=("c",), instruction=MFMA
        ),
    ),
)
LOADS, READS, MULTIPLIES = ("load_A", "load_B"), ("read_a", "read_b"), ("mma_c",)


def producer_consumer(machine: Machine = SPLIT_BARRIERS, *, left: int = 2) -> LoweredProgram:
    """The program; the producer's waits leave `left` tokens in flight, by default those of one tile's two loads."""
    maker = _Maker(machine, left)
    return LoweredProgram(
        name="producer_consumer",
        machine=machine,
        semantics=SPEC,
        prologue=number_entries(tuple(maker.prologue())),
        kernel=number_entries(tuple(maker.kernel())),
        epilogue=number_entries(tuple(maker.epilogue())),
        tiles_per_trip=DEPTH,
        tiles_outside=DEPTH,
        roles=(Role("producer", 2, frozenset(LOADS)), Role("consumer", 2, frozenset((*READS, *MULTIPLIES)))),
        barriers=(Barrier(FULL, (PRODUCER,), (CONSUMER,)), Barrier(EMPTY, (CONSUMER,), (PRODUCER,))),
        compiler_tracks_registers=False,
        lds_bytes=2 * DEPTH * 4096,
        registers=12,
        register_limit=512,
        waves=4,
        origin="written by hand",
    )


class _Maker:
    """Makes the entries; iterations count from the phase's k."""

    def __init__(self, machine: Machine, left: int) -> None:
        self.machine = machine
        self.left = left

    def prologue(self) -> Iterator[Entry]:
        """The first two tiles are on their way, and the first has landed."""
        for tile in range(DEPTH):
            yield from self._load(tile, Phase.PROLOGUE)
        yield from self._landed(self.left, Phase.PROLOGUE)

    def kernel(self) -> Iterator[Entry]:
        """Two tiles are computed, and the two that follow them loaded into their buffers."""
        for tile in range(DEPTH):
            yield from self._consume(tile - DEPTH, Phase.KERNEL, hands_back=True)
            yield self._at_barrier(Phase.KERNEL, PRODUCER, awaits=EMPTY)
            yield from self._load(tile, Phase.KERNEL)
            yield from self._landed(self.left, Phase.KERNEL)

    def epilogue(self) -> Iterator[Entry]:
        """The last two tiles are computed; the second of them has yet to land."""
        yield from self._consume(-2, Phase.EPILOGUE, hands_back=False)
        yield from self._landed(0, Phase.EPILOGUE)
        yield from self._consume(-1, Phase.EPILOGUE, hands_back=False)

    def _load(self, tile: int, phase: Phase) -> Iterator[Entry]:
        return (self._data(name, tile, phase, PRODUCER) for name in LOADS)

    def _landed(self, left: int, phase: Phase) -> Iterator[Entry]:
        yield self._wait(OpKind.DMA, left, phase, PRODUCER)
        yield self._at_barrier(phase, PRODUCER, arrives=FULL)

    def _consume(self, tile: int, phase: Phase, *, hands_back: bool) -> Iterator[Entry]:
        yield self._at_barrier(phase, CONSUMER, awaits=FULL)
        for name in READS:
            yield self._data(name, tile, phase, CONSUMER)
        yield self._wait(OpKind.LDS_READ, 0, phase, CONSUMER)
        if hands_back:
            yield self._at_barrier(phase, CONSUMER, arrives=EMPTY)
        for name in MULTIPLIES:
            yield self._data(name, tile, phase, CONSUMER)

    def _data(self, name: str, tile: int, phase: Phase, role: int) -> Entry:
        """One op of one iteration: tiles have a buffer per parity, registers one copy, the accumulator no versions."""
        op = next(each for each in SPEC.ops if each.name == name)
        counter = self.machine.counter_of(op.kind)
        wants = tuple((_place(read.value, tile), Version(read.value, tile)) for read in op.reads)
        makes = tuple((_place(value, tile), Version(value, tile)) for value in op.writes if value != "c")
        sums = tuple(Place(Space.ACCUMULATOR, value) for value in op.writes if value == "c")
        effect = Effect(
            kind=op.kind,
            counter=counter,
            tokens=op.instructions if counter else 0,
            reads=tuple(place for place, _ in wants),
            writes=(*(place for place, _ in makes), *sums),
            instance=Version(name, tile),
            wants=wants,
            makes=makes,
        )
        work = Work(op.instructions, op.moved // 2, op.instruction)  # two waves share what is moved
        return _entry(Op(kind=op.kind, name=name, copy=tile % DEPTH, work=work, declared=op), effect, phase, role)

    def _wait(self, kind: OpKind, count: int, phase: Phase, role: int) -> Entry:
        counter = self.machine.counter_of(kind)
        assert counter is not None, f"{self.machine.name} doesn't count {kind.does}"
        return _entry(wait_op(counter, count), wait_effect(counter, count), phase, role)

    @staticmethod
    def _at_barrier(phase: Phase, role: int, *, arrives: str | None = None, awaits: str | None = None) -> Entry:
        name = f"arrive({arrives})" if arrives else f"wait({awaits})"
        effect = Effect(kind=OpKind.BARRIER, arrives=arrives, awaits=awaits)
        return _entry(Op(kind=OpKind.BARRIER, name=name, work=Work(1)), effect, phase, role)


def _place(value: str, tile: int) -> Place:
    if SPEC.value(value).home is Home.LDS:
        return Place(Space.LDS, value, tile % DEPTH)
    return Place(Space.REGISTER, value)


def _entry(op: Op, effect: Effect, phase: Phase, role: int) -> Entry:
    return Entry(op=op, effect=effect, time_slot=0, phase=phase, roles=(role,))
