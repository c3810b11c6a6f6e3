"""Drawn lowered programs with roles: takes a random generator, gives right ones with few waits and barriers to spare.

A loop is drawn, then which roles do which op, then a stage and a place in the trip for each op.  Copies follow from the
stages, and the loop is unrolled so that each copy is a constant.  Waits and barriers start out as too many and are
taken away one by one as long as the oracle finds nothing wrong, so that most of what is left is needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

from rota import GFX950
from rota.program.entry import (
    ARRIVE,
    AWAIT,
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
from rota.program.lowered import Barrier, Role, number_entries
from rota.program.machine import Machine
from tests.oracle.role_machine import judge
from tests.oracle.role_steps import Draft
from tests.programs.made_up_machine import MADE_UP
from tests.programs.producer_consumer import MFMA, SPLIT_BARRIERS

_TILE, _REGISTERS = 4096, 8
_MOST_UNROLL, _MOST_ENTRIES = 4, 52

Lists = dict[Phase, list[Entry]]


class _Loop:
    """A loop as it is drawn, with the roles that do each op."""

    def __init__(self, random: Random, roles: int) -> None:
        self.random, self.everyone = random, tuple(range(roles))
        self.values: list[Value] = []
        self.ops: list[LoopOp] = []
        self.does: dict[str, tuple[int, ...]] = {}

    def value(self, home: Home, into: str = "") -> str:
        name = f"{home.name[0].lower()}{len(self.values)}"
        size = _TILE if home is Home.LDS else _REGISTERS
        self.values.append(Value(name=name, home=home, size=size, into=into))
        return name

    def op(self, kind: OpKind, reads: Sequence[Read], writes: str, roles: tuple[int, ...], parts: int = 1) -> None:
        name = f"{kind.word}{len(self.ops)}"
        moved = _TILE // parts if kind.asynchronous else 0
        instruction = MFMA if kind is OpKind.MMA else ""
        tokens = self.random.choice((1, 1, 1, 2))
        made = LoopOp(
            name=name,
            kind=kind,
            reads=tuple(reads),
            writes=(writes,),
            instructions=tokens,
            moved=moved,
            instruction=instruction,
        )
        self.ops.append(made)
        self.does[name] = roles

    def some(self, roles: tuple[int, ...]) -> tuple[int, ...]:
        """All of these roles, or some of them."""
        if self.random.random() < 0.5:
            return roles
        return tuple(sorted(self.random.sample(roles, self.random.randint(1, len(roles)))))

    def tile(self) -> None:
        """Loaded in one part or two, or through registers; and read once or twice."""
        random, tile, roles = self.random, self.value(Home.LDS), self.some(self.everyone)
        parts = 1
        if random.random() < 0.25:
            staged = self.value(Home.REGISTERS)
            self.op(OpKind.GLOBAL_LOAD, (), staged, roles)
            self.op(OpKind.LDS_WRITE, (Read(value=staged),), tile, self.some(roles))
        else:
            parts = random.choice((1, 1, 1, 2))
            for _ in range(parts):
                self.op(OpKind.DMA, (), tile, self.some(roles) if random.random() < 0.2 else roles, parts)
        for _ in range(random.choice((1, 1, 2))):
            chosen = (random.randrange(parts),) if parts > 1 and random.random() < 0.5 else ()
            distance = random.choice((0,) * 9 + (1,))
            kind = random.choice((OpKind.LDS_READ, OpKind.LDS_READ, OpKind.LDS_READ_TRANSPOSED))
            read = Read(value=tile, distance=distance, parts=chosen)
            self.op(kind, (read,), self.value(Home.REGISTERS), self.some(self.everyone))

    def makers(self) -> dict[str, tuple[int, ...]]:
        """Register values that nobody has taken over, and the roles that have them."""
        taken = {value.into for value in self.values}
        registers = {value.name for value in self.values if value.home is Home.REGISTERS} - taken
        return {name: self.does[op.name] for op in self.ops for name in op.writes if name in registers}

    def use(self) -> None:
        """A compute, a sum or a store of what some role has in its registers."""
        random, makers = self.random, self.makers()
        one = random.choice(list(makers))
        others = [name for name, roles in makers.items() if name != one and set(roles) & set(makers[one])]
        names = [one, random.choice(others)] if others and random.random() < 0.4 else [one]
        common = tuple(sorted(set.intersection(*(set(makers[name]) for name in names))))
        distance = 1 if random.random() < 0.08 else 0
        reads = [Read(value=name, distance=distance) for name in names]
        kind = random.choice((OpKind.MMA, OpKind.MMA, OpKind.MMA, OpKind.VALU, OpKind.VALU, OpKind.GLOBAL_STORE))
        if kind is OpKind.MMA:
            sums = [value.name for value in self.values if value.home is Home.ACCUMULATOR]
            total = random.choice(sums) if sums and random.random() < 0.25 else self.value(Home.ACCUMULATOR)
            self.op(kind, reads, total, self.some(common))
        elif kind is OpKind.GLOBAL_STORE:
            self.op(kind, reads, self.value(Home.MEMORY), self.some(common))
        else:
            read_later = {read.value for op in self.ops for read in op.reads}
            free = [name for name in names if name not in read_later and not distance]
            into = random.choice(free) if free and random.random() < 0.4 else ""
            made = self.value(Home.REGISTERS, into)
            if not into and random.random() < 0.3:
                reads.append(Read(value=made, distance=1))
            if into and random.random() < 0.3:  # loaded over what nobody reads any more
                self.op(OpKind.GLOBAL_LOAD, (), made, self.some(makers[into]))
            else:
                self.op(kind, reads, made, makers[into] if into and random.random() < 0.5 else self.some(common))

    def spec(self) -> LoopSpec:
        waves = max(4, 2 * len(self.everyone))
        return LoopSpec(name="drawn", waves=waves, values=tuple(self.values), ops=tuple(self.ops))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Schedule:
    """The order of the ops in a trip, the stage of each, and how many copies the values have."""

    order: tuple[str, ...]
    stages: dict[str, int]
    copies: dict[str, int]

    @property
    def last(self) -> int:
        return max(self.stages.values())

    @property
    def unrolled(self) -> int:
        return math.lcm(1, *self.copies.values())


def _schedule(random: Random, spec: LoopSpec) -> _Schedule | None:
    """None where what was drawn leaves no room for some value."""
    writers = {value.name: [op for op in spec.ops if value.name in op.writes] for value in spec.values}
    stages: dict[str, int] = {}
    for op in spec.ops:
        before = [stages[w.name] - r.distance for r in op.reads for w in writers[r.value] if w.name in stages]
        stages[op.name] = max(0, *before, 0) + (random.choice((0, 1)) if before else 0)
    ranks = {op.name: random.random() + number * random.choice((0.0, 0.3, 1.0)) for number, op in enumerate(spec.ops)}
    for op in spec.ops:  # in the order in which they are declared every op follows what it reads
        for read in op.reads:
            for writer in writers[read.value]:
                if writer is not op and stages[writer.name] - read.distance == stages[op.name]:
                    ranks[op.name] = max(ranks[op.name], ranks[writer.name] + 0.01 * random.random() + 0.001)
    order = tuple(sorted(ranks, key=ranks.__getitem__))
    place = {name: number for number, name in enumerate(order)}

    def copies_for(writer: LoopOp, reader: LoopOp, distance: int) -> int:
        least = stages[reader.name] - stages[writer.name] + distance
        return max(1, least if place[reader.name] <= place[writer.name] else least + 1)

    copies: dict[str, int] = {}
    for value in spec.values:
        if value.home not in (Home.LDS, Home.REGISTERS):
            continue
        first = spec.registers_of(value.name)[0]
        needed = [1]
        for op in spec.ops:
            for read in (each for each in op.reads if each.value == value.name):
                needed += [copies_for(writer, op, read.distance) for writer in writers[first]]
        needed += [copies_for(writer, own, 0) for writer in writers[first] for own in writers[value.name]]
        copies[first] = max(copies.get(first, 1), *needed)
    for name in copies:
        copies[name] += random.random() < 0.1
    made = _Schedule(order=order, stages=stages, copies=copies)
    return made if made.unrolled <= _MOST_UNROLL else None


class _Maker:
    """Entries of a loop on a machine."""

    def __init__(self, spec: LoopSpec, loop: _Loop, schedule: _Schedule, machine: Machine) -> None:
        self.spec, self.schedule, self.machine = spec, schedule, machine
        self.does, self.everyone = loop.does, loop.everyone
        self.ops = {op.name: op for op in spec.ops}

    def phases(self) -> Lists:
        """The data ops of each phase: `last` iterations are outside the loop."""
        schedule, last, unrolled = self.schedule, self.schedule.last, self.schedule.unrolled
        lists: Lists = {phase: [] for phase in Phase}
        for step in range(-last, 0):
            for name in schedule.order:
                if step + last - schedule.stages[name] >= 0:
                    lists[Phase.PROLOGUE].append(self._entry(name, step + last - schedule.stages[name], Phase.PROLOGUE))
        for step in range(unrolled):
            for name in schedule.order:
                iteration = step + last - schedule.stages[name] - unrolled
                lists[Phase.KERNEL].append(self._entry(name, iteration, Phase.KERNEL))
        for step in range(last):
            for name in schedule.order:
                if step + last - schedule.stages[name] < last:
                    iteration = step + last - schedule.stages[name] - unrolled
                    lists[Phase.EPILOGUE].append(self._entry(name, iteration, Phase.EPILOGUE))
        return lists

    def _place(self, value: str, part: int, iteration: int) -> Place:
        first = self.spec.registers_of(value)[0]
        space = Space.LDS if self.spec.value(value).home is Home.LDS else Space.REGISTER
        return Place(space, first, iteration % self.schedule.copies[first], part)

    def _entry(self, name: str, iteration: int, phase: Phase) -> Entry:
        op = self.ops[name]
        tiles = {value.name: [w.name for w in self.spec.writers(value.name)] for value in self.spec.values}
        in_lds = {value.name for value in self.spec.values if value.home is Home.LDS}
        wants = tuple(
            (self._place(read.value, part, iteration - read.distance), Version(read.value, iteration - read.distance))
            for read in op.reads
            for part in (read.parts or range(len(tiles[read.value]) if read.value in in_lds else 1))
        )
        sums = {Home.ACCUMULATOR: Space.ACCUMULATOR, Home.MEMORY: Space.MEMORY}
        (written,) = op.writes
        home = self.spec.value(written).home
        part = tiles[written].index(name) if written in in_lds else 0
        makes = () if home in sums else ((self._place(written, part, iteration), Version(written, iteration)),)
        counter = self.machine.counter_of(op.kind)
        effect = Effect(
            kind=op.kind,
            counter=counter,
            tokens=op.instructions if counter else 0,
            reads=tuple(place for place, _ in wants),
            writes=tuple(place for place, _ in makes) or (Place(sums[home], written),),
            instance=Version(name, iteration),
            wants=wants,
            makes=makes,
        )
        roles = None if self.does[name] == self.everyone else self.does[name]
        work = Work(op.instructions, op.moved, op.instruction)
        return Entry(op=Op(kind=op.kind, name=name, work=work), effect=effect, time_slot=0, phase=phase, roles=roles)


def wait(counter: str, left: int, phase: Phase, roles: tuple[int, ...] | None = None) -> Entry:
    """A wait."""
    return Entry(op=wait_op(counter, left), effect=wait_effect(counter, left), time_slot=0, phase=phase, roles=roles)


def meet(name: str, phase: Phase, roles: tuple[int, ...] | None = None) -> Entry:
    """A barrier that is one instruction."""
    effect = replace(MEETS, arrives=name, awaits=name)
    return Entry(op=BARRIER, effect=effect, time_slot=0, phase=phase, roles=roles)


def half(name: str, phase: Phase, roles: tuple[int, ...] | None = None, *, arrives: bool) -> Entry:
    """Arriving, or waiting for all who arrive."""
    effect = Effect(kind=OpKind.BARRIER, arrives=name if arrives else None, awaits=None if arrives else name)
    return Entry(op=ARRIVE if arrives else AWAIT, effect=effect, time_slot=0, phase=phase, roles=roles)


def _at_once(random: Random, lists: Lists, counters: Sequence[str], *, split: bool) -> Lists:
    """All waits and a barrier of all roles wherever two entries touch the same tile, and where a phase begins."""
    return {phase: [*_synchronised(random, entries, counters, phase, split=split)] for phase, entries in lists.items()}


def _synchronised(
    random: Random, entries: Sequence[Entry], counters: Sequence[str], phase: Phase, *, split: bool
) -> Iterator[Entry]:
    read: set[Place] = set()
    written: set[Place] = set()
    loading: dict[Place, str] = {}
    for number, entry in enumerate(entries):
        effect = entry.effect
        reads, writes = set(effect.reads), {place for place in effect.writes if place.space is Space.LDS}
        touched = {place for place in (*effect.reads, *effect.writes) if place in loading}
        if not number or reads & written or writes & (read | written):
            yield from (wait(counter, 0, phase) for counter in counters)
            if split:
                yield half(WORKGROUP, phase, arrives=True)
                yield half(WORKGROUP, phase, arrives=False)
            else:
                yield meet(WORKGROUP, phase)
            read, written, loading = set(), set(), {}
        elif touched:
            for counter in sorted({loading[place] for place in touched}):
                yield wait(counter, 0, phase, entry.roles if random.random() < 0.7 else None)
                loading = {place: other for place, other in loading.items() if other != counter}
        yield entry
        read |= {place for place in reads if place.space is Space.LDS}
        written |= writes
        loading |= _loads(effect)


def _handed_over(lists: Lists, maker: _Maker) -> tuple[Lists, tuple[Barrier, ...]]:
    """Two barriers for every op that fills a tile and every op that reads it: full and empty, some arrivals ahead."""
    does, copies = maker.does, maker.schedule.copies
    barriers: list[Barrier] = []
    ahead: list[Entry] = []
    before: dict[str, list[str]] = {name: [] for name in maker.ops}
    after: dict[str, list[str]] = {name: [] for name in maker.ops}
    tiles = {value.name for value in maker.spec.values if value.home is Home.LDS}
    handed = ((op.name, read) for op in maker.spec.ops for read in op.reads if read.value in tiles)
    for take, read in handed:
        for fill in (op.name for op in maker.spec.writers_of(read)):
            full, empty = f"full{len(barriers)}", f"empty{len(barriers)}"
            barriers += [Barrier(full, does[fill], does[take]), Barrier(empty, does[take], does[fill])]
            after[fill].append(full)
            before[take].append(full)
            after[take].append(empty)
            before[fill].append(empty)
            ahead += [half(full, Phase.PROLOGUE, does[fill], arrives=True)] * read.distance
            free = copies[read.value] - read.distance
            ahead += [half(empty, Phase.PROLOGUE, does[take], arrives=True)] * free
    made: Lists = {phase: [] for phase in Phase}
    made[Phase.PROLOGUE] += ahead
    for phase, entries in lists.items():
        loading: dict[Place, str] = {}
        for number, entry in enumerate(entries):
            name, effect = entry.op.name, entry.effect
            made[phase] += [half(barrier, phase, does[name], arrives=False) for barrier in before[name]]
            needed = {loading[place] for place in (*effect.reads, *effect.writes) if place in loading}
            for counter in sorted(needed) if number else [each.name for each in maker.machine.counters]:
                made[phase].append(wait(counter, 0, phase, entry.roles if number else None))
                loading = {place: other for place, other in loading.items() if other != counter}
            made[phase].append(entry)
            if after[name] and effect.counter:
                made[phase].append(wait(effect.counter, 0, phase, does[name]))
            made[phase] += [half(barrier, phase, does[name], arrives=True) for barrier in after[name]]
            loading |= _loads(effect)
    return made, tuple(barriers)


def _loads(effect: Effect) -> dict[Place, str]:
    return {place: effect.counter for place in effect.writes if effect.counter and place.space is Space.REGISTER}


def draw_lowered(random: Random) -> Draft:
    """A right program of one to three roles, mostly with no wait or barrier to spare."""
    while True:
        made = _draw(random)
        if made is not None and judge(made) is None:
            return made


def _draw(random: Random) -> Draft | None:
    machine = random.choice((GFX950, GFX950, SPLIT_BARRIERS, MADE_UP))
    if random.random() < 0.15:
        machine = machine.doubting(random.choice([counter.name for counter in machine.counters]))
    loop = _Loop(random, random.choice((1, 2, 2, 2, 3, 3, 3)))
    for _ in range(random.choice((1, 1, 1, 2))):
        loop.tile()
    for _ in range(random.choice((1, 1, 2, 2, 3))):
        loop.use()
    spec = loop.spec()
    schedule = _schedule(random, spec)
    if schedule is None:
        return None
    maker = _Maker(spec, loop, schedule, machine)
    lists = maker.phases()
    used = sorted({entry.effect.counter for entries in lists.values() for entry in entries if entry.effect.counter})
    everyone = loop.everyone
    barriers: tuple[Barrier, ...] = (Barrier(WORKGROUP, everyone, everyone),)
    style = random.choice(("joint", "joint", "split", "handed over"))
    if style == "handed over":
        lists, barriers = _handed_over(lists, maker)
    else:
        lists = _at_once(random, lists, used, split=style == "split")
    if style == "joint" and len(everyone) > 1 and random.random() < 0.2:
        first, *others = random.sample(everyone, len(everyone))
        lists[Phase.PROLOGUE].append(meet(WORKGROUP, Phase.PROLOGUE, (first,)))
        lists[Phase.EPILOGUE].append(meet(WORKGROUP, Phase.EPILOGUE, tuple(sorted(others))))
    if sum(map(len, lists.values())) > _MOST_ENTRIES:
        return None
    alike = all(roles == everyone for roles in loop.does.values())
    mine = {role: frozenset(name for name, roles in loop.does.items() if role in roles) for role in everyone}
    tiles_carried = any(
        read.distance and spec.value(read.value).home is Home.LDS for op in spec.ops for read in op.reads
    )
    return Draft(
        machine=machine,
        semantics=spec,
        prologue=number_entries(lists[Phase.PROLOGUE]),
        kernel=number_entries(lists[Phase.KERNEL]),
        epilogue=number_entries(lists[Phase.EPILOGUE]),
        tiles_per_trip=schedule.unrolled,
        tiles_outside=schedule.last,
        roles=tuple(Role(f"r{role}", spec.waves // len(everyone), None if alike else mine[role]) for role in everyone),
        barriers=barriers,
        compiler_tracks_registers=random.random() < 0.4,
        reentrant=random.random() < 0.15 and not tiles_carried,
        lds_bytes=spec.lds_bytes(schedule.copies),
        registers=spec.registers(schedule.copies),
        register_limit=512,
        waves=spec.waves,
    )
