"""Lifts the main loop of a compiled kernel to a `LoweredProgram`.

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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple

from rota.errors import ProgramError, several
from rota.isa.binary.kernel_facts import KernelFacts
from rota.isa.disassembly import Instruction, expand_vskip
from rota.isa.matrix_elements import BITS, BY_FIELD
from rota.isa.registers import ACC
from rota.lift.natural_loops import (
    LdsUses,
    LoopRecorder,
    NaturalLoop,
    derive_lds_places,
    find_loops,
    is_matrix,
    refuse_lift,
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
from rota.program.kinds import WIDEST, OpKind, Phase, takes_formats
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
from rota.prove.verdict import Budget, Verdict
from rota.prove.widening import Recorder
from rota.targets.device import Device, MatrixRate
from rota.targets.registry import architecture_named


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
