"""Lifts the main loop of a compiled kernel to a `LoweredProgram`; first finds it, and the bytes of LDS it accesses.

A loop can be lifted if it is innermost and a single chain of instructions from its head back to its head; it may exit
anywhere.  A branch may skip only code without memory and matrix instructions, waits and barriers, such as the mask of
an edge tile; that code is left out, and counted.  The main loop is the one with the most matrix instructions, then with
the most memory instructions.  Loops with as many of both are candidates, too: waves may each have their own.

The program is the steady state of the loop.  Code before and after it is left out, except barriers by which some waves
are ahead of others.  Registers and waits follow from the instructions, bytes of LDS from the proof (`rota.prove`), that
follows the loop until its state repeats.  If addresses differ from trip to trip, a trip of the program has several of
the loop's.  Waves that run different loops, or the same loop some barriers later, are roles.  The program's `origin`
names the assumptions.

The branch that closes the loop and its compare have no entries: the cycle model adds its own loop edge.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import lcm
from typing import NamedTuple

from rota.errors import Concern, ProgramError, several
from rota.isa.binary.kernel_facts import KernelFacts
from rota.isa.disassembly import Instruction, expand_vskip
from rota.isa.matrix_elements import BITS, BY_FIELD
from rota.isa.registers import ACC
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
from rota.program.kinds import WIDEST, OpKind, Phase, takes_formats
from rota.program.loop_spec import MOST_INSTRUCTIONS
from rota.program.lowered import Barrier, LoweredProgram, Role, Unstated, merged
from rota.program.machine import LANES, Machine
from rota.prove.kernel_proof import Triple, prove
from rota.prove.operation import (
    SCC_BIT,
    VECTORS,
    Operation,
    OperationKind,
    UnknownOperationError,
    read_operation,
    rows_of,
)
from rota.prove.slicing import derive_successors
from rota.prove.state import LdsUse, WaveSet
from rota.prove.verdict import Budget, Verdict
from rota.prove.widening import LaneAddresses, ProductState, Recorder
from rota.targets.device import Device, MatrixRate
from rota.targets.registry import architecture_named

_MEMORY = frozenset({OperationKind.LDS, OperationKind.VMEM, OperationKind.EXCHANGE})


@dataclass(frozen=True, slots=True, kw_only=True)
class NaturalLoop:
    """A loop as the chain of its operations in execution order; `skipped` counts those that are left out."""

    chain: tuple[Operation, ...]
    skipped: int = 0

    @property
    def head(self) -> int:
        return self.chain[0].number


def find_loops(
    name: str, operations: Sequence[Operation], successors: Sequence[Sequence[int]]
) -> tuple[NaturalLoop, ...]:
    """Find the main loop of a kernel, and others with as much work; raises T304 if none can be lifted."""
    bodies = find_bodies(successors)
    inner = {head: body for head, body in bodies.items() if not any(bodies[each] < body for each in body & {*bodies})}
    if not inner:
        raise refuse_lift(name, "it has no loop")
    counts = {head: _count(operations, body) for head, body in inner.items()}
    most = max(counts.values())
    chosen = [head for head in sorted(inner) if counts[head] == most]
    if not any(most):
        raise refuse_lift(name, "no loop of it uses memory or matrix instructions", operations[chosen[0]])
    return tuple(_trace_chain(name, operations, successors, head, inner[head]) for head in chosen)


def is_matrix(operation: Operation) -> bool:
    return operation.instruction.op_kind is OpKind.MMA


def refuse_lift(name: str, why: str, operation: Operation | None = None) -> ProgramError:
    concerns: tuple[Concern, ...] = () if operation is None else (operation.instruction.concern(),)
    return ProgramError.of("T304", f"{name} is not lifted: {why}", concerns=concerns)


def find_bodies(successors: Sequence[Sequence[int]]) -> dict[int, set[int]]:
    """The natural loops by head: all operations that reach a back edge without passing the head."""
    into: list[list[int]] = [[] for _ in successors]
    for number, following in enumerate(successors):
        for each in following:
            into[each].append(number)
    bodies: dict[int, set[int]] = {}
    for number, following in enumerate(successors):
        for head in following:
            if head > number:
                continue
            body = bodies.setdefault(head, {head})
            work = [number]
            while work:
                each = work.pop()
                if each not in body:
                    body.add(each)
                    work += into[each]
    return bodies


def _count(operations: Sequence[Operation], body: set[int]) -> tuple[int, int]:
    matrix = sum(is_matrix(operations[each]) for each in body)
    return matrix, sum(operations[each].kind in _MEMORY for each in body)


def _trace_chain(
    name: str, operations: Sequence[Operation], successors: Sequence[Sequence[int]], head: int, body: set[int]
) -> NaturalLoop:
    chain, at, skipped = [operations[head]], head, 0
    while True:
        if operations[at].kind is OperationKind.CALL:
            raise refuse_lift(name, "its loop calls a function", operations[at])
        following = {each for each in successors[at] if each in body}
        far = max(following)
        if len(following) > 1:
            if not _may_be_skipped(operations, at, following):
                raise refuse_lift(name, "its loop has more than one path through it", operations[at])
            skipped += far - at - 1
        at = far
        if at == head:
            return NaturalLoop(chain=tuple(chain), skipped=skipped)
        if len(chain) == len(body):
            raise refuse_lift(name, "its loop has a loop inside", operations[at])
        chain.append(operations[at])


def _may_be_skipped(operations: Sequence[Operation], at: int, following: set[int]) -> bool:
    """True if a branch skips forward over nothing but computations and further such branches."""
    far = max(following)
    return following == {at + 1, far} and all(
        each.kind is OperationKind.QUIET
        or (each.kind is OperationKind.VALUE and not is_matrix(each))
        or (each.kind is OperationKind.BRANCH and at < (each.instruction.target or 0) <= far)
        for each in operations[at + 1 : far]
    )


class LoopRecorder:
    """A `rota.prove.widening.Recorder` of some loops; passes what it sees on to another one, if there is one."""

    def __init__(self, loops: Sequence[NaturalLoop], also: Recorder | None = None) -> None:
        self._also = also
        self._heads = {each.number: loop.head for loop in loops for each in loop.chain}
        self._trips: dict[Hashable, int] = {}
        self._last: tuple[ProductState, tuple[int, ...], int] | None = None
        self._trip = 0
        # Bit sets of LDS bytes by trip, wave and operation; by loop head, pairs of trips with the same state, and the
        # barriers that each wave had passed when it first reached the head.
        self.bytes: defaultdict[tuple[int, int, int], set[int]] = defaultdict(set)
        self.inexact: set[int] = set()
        self.periods: dict[int, set[tuple[int, int]]] = {loop.head: set() for loop in loops}
        self.entered: dict[int, dict[int, int]] = {loop.head: {} for loop in loops}

    def record_checkpoint(self, product: ProductState, head: tuple[Hashable, ...], key: Hashable) -> None:
        if self._also is not None:
            self._also.record_checkpoint(product, head, key)
        self._last = None
        wave_set = next((each for each in product.wave_sets if head == (each.waves[0],)), None)
        if wave_set is None or wave_set.at not in self.entered:
            return
        trip = _count_visits(product, wave_set, wave_set.at)
        for wave in wave_set.waves:
            self.entered[wave_set.at].setdefault(wave, wave_set.barriers)
        first = self._trips.setdefault(key, trip)
        if first < trip:
            self.periods[wave_set.at].add((first, trip))

    def record_access(
        self, product: ProductState, wave_set: WaveSet, access: LdsUse, lanes: LaneAddresses | None = None
    ) -> None:
        if self._also is not None:
            self._also.record_access(product, wave_set, access, lanes)
        head = self._heads.get(access.number)
        if head is None:
            return
        here = (product, wave_set.waves, head)
        if self._last is None or self._last[0] is not product or self._last[1:] != here[1:]:
            self._last, self._trip = here, _count_visits(product, wave_set, head) - 1
        if not access.exact:
            self.inexact.add(access.number)
        for place, wave in enumerate(wave_set.waves):
            self.bytes[self._trip, wave, access.number].add(access.bytes[place])


def _count_visits(product: ProductState, wave_set: WaveSet, head: int) -> int:
    """How often these waves have reached a loop head on this path."""
    who, at = (wave_set.waves[0],), (wave_set.waves, head)
    return sum(
        len(visits)
        for place, visits in product.history.items()
        if isinstance(place, tuple) and place[0] == who and at in place[1:]
    )


Use = tuple[int, int]
"""A trip, counted from the first one that repeats, and an operation."""
_MOST_COPIES = 8
_ALWAYS = range(1)
"""The window of a loop whose trips all access the same bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LdsUses:
    """The LDS places of each use, the number of trips that differ, and notes about what isn't exact."""

    copies: int
    places: dict[Use, tuple[Place, ...]]
    notes: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class _Buffer:
    octets: int
    uses: list[Use]

    @property
    def first(self) -> int:
        return (self.octets & -self.octets).bit_length() - 1


def derive_lds_places(recorder: LoopRecorder, loops: Sequence[NaturalLoop]) -> LdsUses:
    windows = [_find_window(recorder, loop) for loop in loops]
    copies = lcm(*(1 if window is None else len(window) for window in windows))
    most = min(_MOST_COPIES, MOST_INSTRUCTIONS // max(len(loop.chain) for loop in loops))
    notes: list[str] = []
    octets: dict[Use, int] = {}
    if copies > most or None in windows:
        copies = 1
        for loop in loops:
            octets |= _unite(recorder, loop)
        if octets:
            what = "places are all bytes that an instruction accesses"
            notes.append(f"LDS addresses do not repeat with a short period: {what}")
    else:
        for loop, window in zip(loops, windows, strict=True):
            octets |= _unite_by_trip(recorder, loop, window or _ALWAYS, copies)
    if recorder.inexact:
        notes.append(f"the LDS bytes of {several(len(recorder.inexact), 'instruction')} are upper bounds")
    chain = [each for loop in loops for each in loop.chain]
    rank = {each.number: place for place, each in enumerate(chain)}
    order = sorted(octets, key=lambda use: (use[0], rank[use[1]]))
    places: dict[Use, list[Place]] = {use: [] for use in order}
    writing = frozenset(each.number for each in chain if writes_lds(each))
    known = [use for use in order if use[1] not in recorder.inexact] or order
    loose = [use for use in order if use not in set(known)]
    for name, copy, buffer in _name_tiles(_join_buffers(known, octets)):
        parts: dict[int, int] = {}
        for use in buffer.uses:
            if use[1] in writing:
                parts.setdefault(octets[use], len(parts))
        for use in (*buffer.uses, *(each for each in loose if octets[each] & buffer.octets)):
            mine = [part for mask, part in parts.items() if mask & octets[use]] or [0]
            places[use] += [Place(Space.LDS, name, copy, part) for part in mine]
    return LdsUses(copies=copies, places={use: tuple(each) for use, each in places.items()}, notes=tuple(notes))


def writes_lds(operation: Operation) -> bool:
    return bool(operation.to_lds) or (operation.kind is OperationKind.LDS and not operation.data)


def _select(recorder: LoopRecorder, loop: NaturalLoop) -> list[tuple[tuple[int, int, int], set[int]]]:
    own = {each.number for each in loop.chain}
    return [(key, masks) for key, masks in recorder.bytes.items() if key[2] in own]


def _find_window(recorder: LoopRecorder, loop: NaturalLoop) -> range | None:
    """The shortest period of trips, if every trip that was seen agrees with it."""
    seen = _select(recorder, loop)
    by_wave: dict[tuple[int, int], set[int]] = {}
    for (_, wave, number), masks in seen:
        by_wave.setdefault((wave, number), set()).update(masks)
    if all(len(masks) == 1 for masks in by_wave.values()):
        return _ALWAYS
    if any(len(masks) > 1 for _, masks in seen):
        return None
    for first, last in sorted(recorder.periods[loop.head], key=lambda pair: (pair[1] - pair[0], pair[0])):
        for count in range(1, min(last - first, _MOST_COPIES) + 1):
            if (last - first) % count == 0 and all(
                trip < first or masks == recorder.bytes.get((first + (trip - first) % count, wave, number))
                for (trip, wave, number), masks in seen
            ):
                return range(first, first + count)
    return None


def _unite_by_trip(recorder: LoopRecorder, loop: NaturalLoop, window: range, copies: int) -> dict[Use, int]:
    octets: defaultdict[Use, int] = defaultdict(int)
    for (trip, _, number), masks in _select(recorder, loop):
        start = 0 if window is _ALWAYS else trip - window.start
        if window is _ALWAYS or trip in window:
            for copy in range(start, copies, len(window)):
                octets[copy, number] |= next(iter(masks))
    return octets


def _unite(recorder: LoopRecorder, loop: NaturalLoop) -> dict[Use, int]:
    octets: defaultdict[Use, int] = defaultdict(int)
    for (_, _, number), masks in _select(recorder, loop):
        for mask in masks:
            octets[0, number] |= mask
    return octets


def _join_buffers(order: Sequence[Use], octets: dict[Use, int]) -> list[_Buffer]:
    buffers: list[_Buffer] = []
    for use in order:
        if not octets[use]:
            continue
        mine, disjoint = _Buffer(octets=octets[use], uses=[use]), []
        for each in buffers:
            if each.octets & mine.octets:
                mine = _Buffer(octets=each.octets | mine.octets, uses=[*each.uses, *mine.uses])
            else:
                disjoint.append(each)
        buffers = [*disjoint, mine]
    rank = {use: place for place, use in enumerate(order)}
    for each in buffers:
        each.uses.sort(key=rank.__getitem__)
    return sorted(buffers, key=lambda each: each.first)


def _name_tiles(buffers: Sequence[_Buffer]) -> Iterator[tuple[str, int, _Buffer]]:
    """Number tiles by their first byte, and the copies of each."""
    tiles: list[tuple[set[int], list[_Buffer]]] = []
    for buffer in buffers:
        numbers, mine, disjoint = {number for _, number in buffer.uses}, [buffer], []
        for others, some in tiles:
            if others & numbers:
                numbers, mine = numbers | others, [*some, *mine]
            else:
                disjoint.append((others, some))
        tiles = [*disjoint, (numbers, mine)]
    tiles.sort(key=lambda tile: min(each.first for each in tile[1]))
    for tile, (_, some) in enumerate(tiles):
        for copy, buffer in enumerate(sorted(some, key=lambda each: each.first)):
            yield f"lds{tile}", copy, buffer


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterUses:
    """The places that each operation reads and writes, and the number of registers of each place."""

    reads: dict[int, tuple[Place, ...]]
    writes: dict[int, tuple[Place, ...]]
    sizes: tuple[tuple[str, int], ...]


def derive_register_places(chain: Sequence[Operation]) -> RegisterUses:
    """Group the vector registers that a loop writes into places: registers with the same uses are one place."""
    users: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    matrix = {each.number for each in chain if is_matrix(each)}
    for each in chain:
        for row in rows_of(each.reads & VECTORS):
            users[row].append((each.number, 0))
        for row in rows_of(each.writes & VECTORS):
            users[row].append((each.number, 1))
    together: defaultdict[tuple[tuple[int, int], ...], list[int]] = defaultdict(list)
    for row, uses in users.items():
        if any(writes for _, writes in uses):
            together[tuple(uses)].append(row)
    reads: defaultdict[int, list[Place]] = defaultdict(list)
    writes: defaultdict[int, list[Place]] = defaultdict(list)
    sizes = []
    for uses_of_rows, rows in sorted(together.items(), key=lambda pair: min(pair[1])):
        readers, writers = ({number for number, how in uses_of_rows if how == which} for which in (0, 1))
        sums = readers == writers and writers <= matrix
        place = Place(Space.ACCUMULATOR if sums else Space.REGISTER, _name_rows(sorted(rows)))
        sizes.append((place.name, len(rows)))
        for number in sorted(writers):
            writes[number].append(place)
        for number in sorted(readers):
            if not sums:
                reads[number].append(place)
    return RegisterUses(
        reads={number: tuple(each) for number, each in reads.items()},
        writes={number: tuple(each) for number, each in writes.items()},
        sizes=tuple(sizes),
    )


def _name_rows(rows: Sequence[int]) -> str:
    names = []
    for _, run in groupby(enumerate(rows), key=lambda pair: pair[1] - pair[0]):  # consecutive numbers
        numbers = [row for _, row in run]
        file, base = ("a", ACC) if numbers[0] >= ACC else ("v", 0)
        first, last = numbers[0] - base, numbers[-1] - base
        names.append(f"{file}{first}" if first == last else f"{file}[{first}:{last}]")
    return ",".join(names)


_WIDTH = re.compile(r"dword(?:x(\d))?$")
_SHORT = {"ubyte": 1, "sbyte": 1, "byte": 1, "ushort": 2, "sshort": 2, "short": 2}


class OperationPlaces(NamedTuple):
    reads: tuple[Place, ...] = ()
    writes: tuple[Place, ...] = ()
    lds: tuple[Place, ...] = ()


def derive_ops(
    operation: Operation, places: OperationPlaces, machine: Machine, copy: int | None
) -> Iterator[tuple[Op, Effect]]:
    """The ops of one instruction: usually one, of a wait one for each counter."""
    instruction = operation.instruction
    at = "" if instruction.address is None else f"{instruction.address:#x}: "
    for op, effect in _derive_ops(operation, places, machine, copy):
        yield replace(op, source=instruction.source, declared=at + instruction.text), effect


def _derive_ops(
    operation: Operation, places: OperationPlaces, machine: Machine, copy: int | None
) -> Iterator[tuple[Op, Effect]]:
    if operation.kind is OperationKind.WAIT:
        for counter, count in operation.waits:
            if count < machine.no_wait(counter):
                yield wait_op(counter, count), wait_effect(counter, count)
        return
    if operation.kind is OperationKind.BARRIER:
        yield BARRIER, MEETS
        return
    if operation.name == "s_setprio":
        level = int(operation.instruction.operands[0], 0)
        op = Op(kind=OpKind.PRIORITY, name=f"priority({level})", work=Work(1))
        yield op, Effect(kind=OpKind.PRIORITY, wait_value=level)
        return
    kind = _derive_kind(operation)
    tracked = machine.counter_of(kind)
    into_lds = kind in {OpKind.LDS_WRITE, OpKind.DMA}
    name = operation.name + (" lds" if kind is OpKind.DMA and "_lds_" not in operation.name else "")
    buffers = dict.fromkeys(f"{place.name}[{place.copy}]" for place in places.lds)
    if buffers:
        name += f" {next(iter(buffers))}" if len(buffers) == 1 else " lds?"
    effect = Effect(
        kind=kind,
        counter=tracked,
        tokens=1 if tracked else 0,
        reads=places.reads if into_lds else (*places.lds, *places.reads),
        writes=(*places.lds, *places.writes) if into_lds else places.writes,
        instance=Version(operation.name, copy or 0),
    )
    yield Op(kind=kind, name=name, copy=copy, work=_derive_work(operation, kind)), effect


def _derive_kind(operation: Operation) -> OpKind:
    """By its name, or for instructions that no schedule of ours has, by what it does."""
    if (kind := operation.instruction.op_kind) is not None:
        return kind
    if operation.kind is OperationKind.VMEM:  # of private memory
        return OpKind.GLOBAL_LOAD if operation.data else OpKind.GLOBAL_STORE
    if operation.kind in {OperationKind.LDS, OperationKind.EXCHANGE}:
        reads = operation.data or operation.kind is OperationKind.EXCHANGE
        return OpKind.LDS_READ if reads else OpKind.LDS_WRITE
    return OpKind.VALU if operation.is_vector else OpKind.SCALAR


def _derive_work(operation: Operation, kind: OpKind) -> Work:
    if kind is OpKind.MMA:
        return Work(1, 0, operation.name, _find_widest_bits(operation))
    if operation.kind is OperationKind.LDS:
        return Work(1, LANES * sum(size for _, size in operation.extents))
    if operation.kind is OperationKind.EXCHANGE:
        return Work(1, LANES * 4)
    if operation.kind is OperationKind.VMEM:
        width = _WIDTH.search(operation.name)
        short = next((size for word, size in _SHORT.items() if word in operation.name), 4)
        return Work(1, LANES * (operation.to_lds or (4 * int(width[1] or 1) if width else short)))
    if operation.name == "s_nop":
        return Work(1 + int(operation.instruction.operands[0], 0))
    return Work(1)


def _find_widest_bits(operation: Operation) -> int:
    """The bits of the wider factor of an instruction that takes several formats."""
    if not takes_formats(operation.name):
        return WIDEST
    fields = dict.fromkeys(("cbsz", "blgp"), 0)
    for modifier in operation.instruction.modifiers:
        key, _, value = modifier.partition(":")
        if key in fields:
            fields[key] = int(value, 0)
    return max(BITS[BY_FIELD[value]] for value in fields.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class LiftedLoop:
    program: LoweredProgram
    loops: tuple[NaturalLoop, ...]
    verdict: Verdict


class _Group(NamedTuple):
    """Waves that run the same loop, and the barriers that they passed before it."""

    loop: int
    barriers: int
    waves: tuple[int, ...]


def lift_kernel(
    facts: KernelFacts,
    instructions: Sequence[Instruction],
    device: Device,
    *,
    block: int | Triple | None = None,
    budget: Budget | None = None,
    dynamic_lds: int | None = None,
    also: Recorder | None = None,
) -> LiftedLoop:
    """Lift the main loop of a kernel for a device; raises T304 if it can't be lifted.

    `also` observes the proof beside what the lift needs of it.
    """
    operations = _read_operations(facts, expand_vskip(instructions))
    found = find_loops(facts.name, operations, derive_successors(operations))
    device = _add_matrix_rates(device)
    recorder = LoopRecorder(found, also)
    verdict = prove(
        facts, instructions, block=block, dynamic_lds=dynamic_lds, budget=budget or Budget(), recorder=recorder
    )
    waves = verdict.waves
    chosen, groups = _group_waves(facts.name, found, recorder, verdict)
    loops = tuple(replace(found[number], chain=_drop_loop_edge(found[number].chain)) for number in chosen)
    for each in (each for loop in loops for each in loop.chain):
        if is_matrix(each) and each.name not in device.rates.mfma_passes:
            raise refuse_lift(facts.name, f"the duration of {each.name} on {device.name} is not known", each)
    uses = derive_lds_places(recorder, [found[number] for number in chosen])
    program = _Lift(facts, device, loops, uses, groups, waves).program()
    assumptions = _list_assumptions(found, loops, uses, verdict, waves, entered=any(recorder.entered.values()))
    return LiftedLoop(program=replace(program, origin="; ".join(assumptions)), loops=loops, verdict=verdict)


def _read_operations(facts: KernelFacts, instructions: Sequence[Instruction]) -> tuple[Operation, ...]:
    architecture = architecture_named(facts.arch)
    if architecture is None:
        raise refuse_lift(facts.name, f"rota doesn't know {facts.arch}")
    try:
        return tuple(read_operation(each, number, architecture) for number, each in enumerate(instructions))
    except UnknownOperationError as error:
        raise refuse_lift(facts.name, f"rota doesn't know {error.instruction.opcode}") from error


def _add_matrix_rates(device: Device) -> Device:
    """Add the rates of all matrix instructions: the device lists only those that rota's schedules use."""
    rates = device.rates
    others = tuple(
        MatrixRate(instruction=form.name, passes=form.passes, narrow=form.narrow_passes)
        for form in device.matrix_forms
        if form.name not in rates.mfma_passes
    )
    return replace(device, timing=replace(device.timing, rates=replace(rates, matrix=(*rates.matrix, *others))))


def _drop_loop_edge(chain: Sequence[Operation]) -> tuple[Operation, ...]:
    """Drop the branch that closes the loop, and its compare if that has no other result."""
    kept = list(chain)
    if kept[-1].kind is OperationKind.BRANCH:
        last = kept.pop()
        if last.reads & SCC_BIT:
            at = next((place for place in reversed(range(len(kept))) if kept[place].writes & SCC_BIT), None)
            if at is not None and not kept[at].writes & ~SCC_BIT:
                del kept[at]
    return tuple(kept)


def _group_waves(
    name: str, loops: Sequence[NaturalLoop], recorder: LoopRecorder, verdict: Verdict
) -> tuple[tuple[int, ...], tuple[_Group, ...]]:
    """The loops to lift and the waves of each: the first that all waves reach, or several that each have their own."""
    waves, early = verdict.waves, " until the proof ended early" if verdict.ended_early else ""
    entered = [recorder.entered[loop.head] for loop in loops]
    if not any(entered):
        return (0,), (_Group(0, 0, tuple(range(waves))),)
    whole = next((number for number, each in enumerate(entered) if len(each) == waves), None)
    chosen = [whole] if whole is not None else [number for number, each in enumerate(entered) if each]
    if sum(len(entered[number]) for number in chosen) != waves:
        reached = {wave for number in chosen for wave in entered[number]}
        why = (
            f"{waves - len(reached)} of its {waves} waves reach no loop with as much work{early}"
            if len(reached) < waves
            else "some of its waves reach several loops, and no loop is reached by all"
        )
        raise refuse_lift(name, why, loops[chosen[0]].chain[0])
    found: dict[tuple[int, int], list[int]] = {}
    for place, number in enumerate(chosen):
        for wave, barriers in sorted(entered[number].items()):
            found.setdefault((place, barriers), []).append(wave)
    groups = tuple(_Group(loop, barriers, tuple(some)) for (loop, barriers), some in sorted(found.items()))
    if len(chosen) > 1 and len({group.barriers for group in groups}) > 1:
        raise refuse_lift(name, "its waves enter different loops after different barriers", loops[chosen[0]].chain[0])
    return tuple(chosen), groups


@dataclass(frozen=True, slots=True)
class _Lift:
    facts: KernelFacts
    device: Device
    loops: tuple[NaturalLoop, ...]
    uses: LdsUses
    groups: tuple[_Group, ...]
    waves: int

    def program(self) -> LoweredProgram:
        roles = tuple(Role(f"waves {_describe_waves(group.waves)}", len(group.waves)) for group in self.groups)
        if len(roles) == 1:
            roles = (roles[0]._replace(name="waves"),)
        everyone = tuple(range(len(roles)))
        barriers = (Barrier(WORKGROUP, everyone, everyone),)
        registers = [derive_register_places(loop.chain) for loop in self.loops]
        lists = [tuple(self._entries(loop, uses)) for loop, uses in zip(self.loops, registers, strict=True)]
        if len(self.loops) == 1:
            kernel = lists[0]
        else:
            try:
                own = [lists[group.loop] for group in self.groups]
                kernel = merged(roles, barriers, {Phase.KERNEL: own})[Phase.KERNEL]
            except ProgramError as error:
                why = "its waves run loops that don't have the same barriers"
                raise refuse_lift(self.facts.name, why, self.loops[0].chain[0]) from error
        ahead = [group.barriers - min(each.barriers for each in self.groups) for group in self.groups]
        sizes = {name: size for each in registers for name, size in each.sizes}
        return LoweredProgram(
            name=self._title(len(kernel)),
            machine=self.device,
            semantics=Unstated(registers=tuple(sizes.items())),
            prologue=tuple(_make_extra_barriers(Phase.PROLOGUE, ahead)),
            kernel=kernel,
            epilogue=tuple(_make_extra_barriers(Phase.EPILOGUE, [max(ahead) - each for each in ahead])),
            tiles_per_trip=self.uses.copies,
            tiles_outside=0,
            roles=roles,
            barriers=barriers,
            compiler_tracks_registers=False,
            lds_bytes=self.facts.lds_bytes,
            registers=self.facts.vgprs,
            waves=self.waves,
        )

    def _entries(self, loop: NaturalLoop, registers: RegisterUses) -> Iterator[Entry]:
        copies = self.uses.copies
        for copy in range(copies):
            for each in loop.chain:
                places = OperationPlaces(
                    registers.reads.get(each.number, ()),
                    registers.writes.get(each.number, ()),
                    self.uses.places.get((copy, each.number), ()),
                )
                for op, effect in derive_ops(each, places, self.device, copy if copies > 1 else None):
                    yield Entry(op=op, effect=effect, time_slot=0, phase=Phase.KERNEL)

    def _title(self, entries: int) -> str:
        places = []
        for first, last in ((loop.chain[0].instruction, loop.chain[-1].instruction) for loop in self.loops):
            known = first.address is not None and last.address is not None
            lines = f"lines {first.line} to {last.line}"
            places.append(f"{first.address:#x}..{last.address:#x}" if known else lines)
        where = " and ".join(places)
        count = sum(len(loop.chain) for loop in self.loops)
        return f"loop at {where} of {self.facts.name}, {several(count, 'instruction')}, {entries} entries"


def _make_extra_barriers(phase: Phase, counts: Sequence[int]) -> Iterator[Entry]:
    """Barriers that some waves pass before the loop and others after it."""
    for role, count in enumerate(counts):
        for _ in range(count):
            yield Entry(op=BARRIER, effect=MEETS, time_slot=0, phase=phase, roles=(role,), listed=False)


def _describe_waves(waves: Sequence[int]) -> str:
    if len(waves) > 1 and waves[-1] - waves[0] == len(waves) - 1:
        return f"{waves[0]} to {waves[-1]}"
    return ", ".join(map(str, waves))


def _list_assumptions(
    found: Sequence[NaturalLoop],
    loops: Sequence[NaturalLoop],
    uses: LdsUses,
    verdict: Verdict,
    waves: int,
    *,
    entered: bool,
) -> Iterator[str]:
    yield f"machine code ({verdict.status.value})"
    yield f"the steady state of the loop alone, {several(waves, 'wave')}"
    if uses.copies > 1:
        yield f"a trip is {uses.copies} iterations, whose LDS addresses differ"
    if len(found) > len(loops):
        yield f"one of {len(found)} loops with as many matrix and memory instructions"
    yield from uses.notes
    if not entered:
        yield "the proof didn't reach the loop, so the bytes of LDS that it accesses are not known"
    elif verdict.ended_early:
        yield "bytes of LDS are those that the proof saw before it ended early"
    skipped = sum(loop.skipped for loop in loops)
    if skipped:
        yield f"{several(skipped, 'instruction')} that branches may skip are left out, all of them VALU and scalar ones"
    chain = [each for loop in loops for each in loop.chain]
    if any(each.kind is OperationKind.SMEM for each in chain):
        yield "scalar loads are assumed to return at once"
    if any(each.kind is OperationKind.BRANCH for each in chain):
        yield "branches out of the loop are assumed not to be taken"
