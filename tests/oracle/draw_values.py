"""Drawn loops by values: takes a random generator, gives small loops, start times, and schedules made of them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from random import Random
from typing import TypeVar

from rota import CompiledSchedule, RotaError, compile_loop
from rota.compiled.proved import add_repairs
from rota.order.modulo.scheduler import ModuloScheduler
from rota.program.kinds import Home, OpKind
from rota.program.loop_spec import LoopOp, LoopSpec, Read, Value
from rota.program.lowered import LoweredProgram
from rota.values.compile_loop import unroll_bare
from rota.values.unroll import Placement
from tests.oracle.reshape import reshaped

MFMA = "v_mfma_f32_16x16x32_bf16"
_TILE = 4096
_WAVES = 4
_COMPUTES = (OpKind.VALU, OpKind.MMA, OpKind.MMA, OpKind.TRANSCENDENTAL)
_MOST_UNROLL = 6


class _Drawn:
    """A loop as it is drawn, op by op, each after what it reads of its own iteration."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.careful = random.random() < 0.9  # nobody reads what another value has taken over
        self.values: list[Value] = []
        self.ops: list[LoopOp] = []

    def value(self, home: Home, into: str = "") -> str:
        name = f"{home.name[0].lower()}{len(self.values)}"
        size = _TILE if home is Home.LDS else 4
        self.values.append(Value(name=name, home=home, size=size, into=into))
        return name

    def op(self, kind: OpKind, reads: Iterable[Read], *writes: str, parts: int = 1) -> None:
        inputs = {value.name for value in self.values if value.home is Home.INPUT}
        reads = tuple(reads)
        self.ops.append(
            LoopOp(
                name=f"op{len(self.ops)}",
                kind=kind,
                reads=tuple(read for read in reads if read.value not in inputs),
                inputs=tuple(read.value for read in reads if read.value in inputs),
                writes=writes,
                instructions=self.random.choice((1, 1, 2, 3)),
                moved=_TILE // parts if kind.asynchronous else 0,
                instruction=MFMA if kind is OpKind.MMA else "",
            )
        )

    def names(self, *homes: Home) -> list[str]:
        return [value.name for value in self.values if value.home in homes]

    def some(self, most: int, itself: str = "") -> list[Read]:
        """Register values that are there, mostly of this iteration, now and then the one being made, carried."""
        into = {value.name: value.into for value in self.values}.get(itself, "")
        gone = {value.into for value in self.values} - {into} if self.careful else {""}
        names = [name for name in self.names(Home.REGISTERS, Home.INPUT) if name not in (*gone, itself)]
        if not names:
            return []
        chosen = self.random.sample(names, min(len(names), self.random.randint(1, most)))
        at_once = {*self.names(Home.INPUT), into} if self.careful else self.names(Home.INPUT)
        found = [Read(value=name, distance=0 if name in at_once else self._distance()) for name in chosen]
        if itself and self.random.random() < 0.3:
            found.append(Read(value=itself, distance=self.random.choice((1, 1, 1, 2))))
        return found

    def address(self) -> list[Read]:
        """Now and then a register that a load or an LDS read takes its address from."""
        return self.some(1) if self.names(Home.REGISTERS) and self.random.random() < 0.25 else []

    def fragment(self) -> None:
        """Of a whole tile, or of a slice that one of two loads brings."""
        name = self.random.choice(self.names(Home.LDS))
        writers = [op for op in self.ops if name in op.writes]
        parts = (self.random.randrange(len(writers)),) if len(writers) > 1 and self.random.random() < 0.6 else ()
        tile = Read(value=name, distance=self._distance(), parts=parts)
        address = self.address()
        kind = self.random.choice((OpKind.LDS_READ, OpKind.LDS_READ, OpKind.LDS_READ_TRANSPOSED))
        self.op(kind, [tile, *address], self.value(Home.REGISTERS))

    def out(self) -> None:
        """A store or an atomic, now and then with an address."""
        kind = self.random.choice((OpKind.GLOBAL_STORE, OpKind.ATOMIC))
        self.op(kind, [*self.some(1), *self.address()], self.value(Home.MEMORY))

    def into(self) -> str:
        """Now and then a value whose registers the next one takes over."""
        taken = {value.into for value in self.values}
        if self.careful:
            taken |= {read.value for op in self.ops for read in op.reads if read.distance}
        free = [name for name in self.names(Home.REGISTERS) if name not in taken]
        return self.random.choice(free) if free and self.random.random() < 0.35 else ""

    def _distance(self) -> int:
        return self.random.choice((0, 0, 0, 0, 0, 0, 1, 2))


def draw_loop(random: Random) -> LoopSpec:
    """Two to ten ops: loads, fragments, slices, computes with and without carried values, stores, sums."""
    made = _Drawn(random)
    if random.random() < 0.2:
        made.value(Home.INPUT)
    if random.random() < 0.15:
        counted = made.value(Home.REGISTERS)
        made.op(OpKind.VALU, [Read(value=counted, distance=1)], counted)
    for _ in range(random.choice((1, 1, 2))):
        tile = made.value(Home.LDS)
        parts = random.choice((1, 1, 2))
        for _ in range(parts):
            made.op(OpKind.DMA, made.address(), tile, parts=parts)
    if random.random() < 0.2:
        made.op(OpKind.GLOBAL_LOAD, made.address(), made.value(Home.REGISTERS))
    for _ in range(random.choice((1, 1, 2))):
        made.fragment()
    for _ in range(random.choice((0, 0, 1, 1, 2))):
        into = made.into()
        computed = made.value(Home.REGISTERS, into)
        made.op(random.choice(_COMPUTES), made.some(2, computed), computed)
    if random.random() < 0.2:
        made.op(OpKind.LDS_WRITE, made.some(1), made.value(Home.LDS))
        made.fragment()
    if random.random() < 0.3:
        made.out()
    if random.random() < 0.85:
        total = made.value(Home.ACCUMULATOR)
        for _ in range(random.choice((1, 1, 2))):
            if random.random() < 0.15:
                computed = made.value(Home.REGISTERS)
                made.op(OpKind.MMA, made.some(2, computed), computed, total)
            else:
                made.op(random.choice((OpKind.MMA, OpKind.MMA, OpKind.VALU)), made.some(2), total)
    if made.names(Home.REGISTERS) and random.random() < 0.15:
        kind = random.choice((OpKind.GLOBAL_STORE, OpKind.ATOMIC))
        made.op(kind, made.some(1), made.value(Home.MEMORY))
    used = {name for op in made.ops for name in op.inputs}
    values = tuple(value for value in made.values if value.home is not Home.INPUT or value.name in used)
    return LoopSpec(name="drawn", waves=_WAVES, values=values, ops=tuple(made.ops))


def draw_placement(random: Random, loop: LoopSpec) -> Placement | None:
    """Start times after what is read, and mostly just the copies that they ask for; None where those are too many."""
    interval = random.randint(3, 12)
    writers: dict[str, list[int]] = defaultdict(list)
    for number, op in enumerate(loop.ops):
        for name in op.writes:
            writers[name].append(number)
    takers: dict[str, list[int]] = defaultdict(list)
    for value in loop.values:
        if value.into:
            takers[value.into] += writers[value.name]
    jumps = random.choice(((0, 1), (0, 1, 2, interval), (0, 1, interval // 2, interval, 2 * interval)))
    starts = [random.choice(jumps) for _ in loop.ops]
    for _ in loop.ops:  # later until every op follows what it reads, of its own iteration and of earlier ones
        for number, op in enumerate(loop.ops):
            for read in op.reads:
                for writer in writers[read.value]:
                    if writer != number:
                        starts[number] = max(starts[number], starts[writer] + 1 - read.distance * interval)
                for taker in takers[read.value]:
                    starts[taker] = max(starts[taker], starts[number])
    copies: dict[str, int] = {}
    for value in loop.values:
        if value.home in (Home.LDS, Home.REGISTERS):
            first = loop.registers_of(value.name)[0]
            copies[first] = max(copies.get(first, 1), _needed(loop, value.name, starts, writers, interval))
    for name, needed in copies.items():
        if random.random() < 0.15:
            copies[name] = max(needed + random.choice((-1, 1)), 1)
    if math.lcm(1, *copies.values()) > _MOST_UNROLL:
        return None
    return Placement(interval=interval, starts=tuple(starts), copies=tuple(copies.items()))


def _needed(loop: LoopSpec, name: str, starts: list[int], writers: dict[str, list[int]], interval: int) -> int:
    """How many iterations' versions of a value are alive at once; what a loop begins with asks for as many."""
    made = min(starts[writer] for writer in writers[loop.registers_of(name)[0]])
    carried = max((read.distance for op in loop.ops for read in op.reads if read.value == name), default=0)
    alive_to = [
        starts[number] + read.distance * interval
        for number, op in enumerate(loop.ops)
        for read in op.reads
        if read.value == name
    ]
    alive_to += [starts[writer] for writer in writers[name]]
    return max(carried, *((end - made) // interval + 1 for end in alive_to))


_Compiled = TypeVar("_Compiled", bound=CompiledSchedule)


def with_assumptions(random: Random, compiled: _Compiled) -> _Compiled:
    """Now and then a schedule that may be run again at once, or a machine one of whose counters keeps no order.

    Where a loop begins with contents of LDS, somebody has to put them there between two runs, and to wait for it.
    """
    loop = compiled.lowered.semantics
    if random.random() < 0.12 and not (isinstance(loop, LoopSpec) and _carries_tiles(loop)):
        compiled = replace(compiled, reentrant=True)
    if random.random() < 0.12:
        compiled = replace(compiled, machine=compiled.machine.doubting(random.choice(("vmcnt", "vmcnt", "lgkmcnt"))))
    return compiled


def _carries_tiles(loop: LoopSpec) -> bool:
    tiles = {value.name for value in loop.values if value.home is Home.LDS}
    return any(read.distance and read.value in tiles for op in loop.ops for read in op.reads)


def draw_solved(random: Random) -> LoweredProgram:
    """A loop as the whole compiler makes it."""
    while True:
        loop = draw_loop(random)
        stagger = random.random() < 0.2
        try:
            return compile_loop(
                replace(loop, waves=8) if stagger else loop,
                remainder=random.choice((0, 0, 1)),
                stagger=stagger,
                fewest_barriers=random.random() < 0.5,
                scheduler=ModuloScheduler(time_limit=1.0),
            ).lowered
        except RotaError:
            continue


def draw_placed(random: Random) -> LoweredProgram:
    """A loop at drawn start times with its waits and barriers, mostly repaired, now and then bare or wrong."""
    while True:
        loop = draw_loop(random)
        placement = draw_placement(random, loop)
        if placement is None or placement.stages > 4:
            continue
        bare = unroll_bare(loop, placement, remainder=random.choice((0, 0, 0, 1, 2)))
        bare = with_assumptions(random, replace(bare, compiler_tracks_registers=random.random() < 0.3))
        if random.random() < 0.2:
            at = random.choice((0, len(bare.prologue)))
            bare = replace(bare, staggered=True, stagger_index=at)
        if sum(map(len, (bare.prologue, bare.kernel, bare.epilogue))) > 70:
            continue
        if random.random() < 0.04:
            return bare.lowered
        try:
            whole = add_repairs(bare).lowered
            return reshaped(random, whole) if random.random() < 0.2 else whole
        except RotaError:
            if random.random() < 0.2:
                return bare.lowered
