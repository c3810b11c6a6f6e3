"""A kernel's main loop as a lowered program: takes facts and instructions of machine code, gives a `LoweredProgram`.

The loop is lifted as its steady state: what comes before and after it is left out, but for barriers by which some waves
are ahead of others.  Registers and waits follow from the instructions, bytes of LDS from the proof (`rota.prove`),
which follows the loop until its state repeats; where addresses differ from trip to trip, the program's trip has as many
of the loop's.  Waves that run different loops, or the same one some barriers apart, are roles.  What is assumed is said
in the program's `origin`.

Instructions that close the loop, a branch and the compare in front of it, have no entries: the cycle model adds its own
loop edge.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from rota.errors import ProgramError, several
from rota.isa.binary.kernel_facts import KernelFacts
from rota.isa.code.disassembly import Instruction
from rota.isa.wave.skip import without_skipping
from rota.lift.lds_places import LdsUses, derive_lds_places
from rota.lift.loop_recorder import LoopRecorder
from rota.lift.machine_entry import OperationPlaces, derive_ops
from rota.lift.natural_loops import MATRIX, NaturalLoop, find_loops, not_lifted
from rota.lift.register_places import RegisterUses, derive_register_places
from rota.program.effects import WORKGROUP
from rota.program.entry import BARRIER, MEETS, Entry
from rota.program.lowered import Barrier, LoweredProgram, Role, Unstated
from rota.program.merge import merged
from rota.program.phase import Phase
from rota.prove.backward_slice import derive_ways
from rota.prove.kernel_proof import Triple, prove
from rota.prove.operation import SCC_BIT, Operation, OperationKind, UnknownOperationError
from rota.prove.operation_reader import read_operation
from rota.prove.paths import Budget
from rota.prove.verdict import Verdict
from rota.targets.device import Device
from rota.targets.rates import MatrixRate
from rota.targets.registry import architecture_named

_SECONDS = 10.0
"""What a picture may take of a processor; a proof that ends early has seen less of LDS, which is said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiftedLoop:
    """The program, the loops that it was, and what the proof said about the whole kernel."""

    program: LoweredProgram
    loops: tuple[NaturalLoop, ...]
    verdict: Verdict


class _Group(NamedTuple):
    """Waves that run the same loop, and how many barriers they had come to when they came there."""

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
) -> LiftedLoop:
    """The main loop of a kernel for a device, or T304."""
    operations = _operations(facts, without_skipping(instructions))
    found = find_loops(facts.name, operations, derive_ways(operations))
    device = _with_all_matrix_rates(device)
    recorder = LoopRecorder(found)
    verdict = prove(facts, instructions, block=block, budget=budget or Budget(seconds=_SECONDS), recorder=recorder)
    waves = verdict.waves
    chosen, groups = _groups(facts.name, found, recorder, verdict)
    loops = tuple(replace(found[number], chain=_without_edge(found[number].chain)) for number in chosen)
    for loop in loops:
        _check_matrix(facts.name, loop, device)
    uses = derive_lds_places(recorder, [found[number] for number in chosen])
    program = _Lift(facts, device, loops, uses, groups, waves).program()
    told = _readings(found, loops, uses, verdict, waves, entered=any(recorder.entered.values()))
    return LiftedLoop(program=replace(program, origin="; ".join(told)), loops=loops, verdict=verdict)


def _operations(facts: KernelFacts, instructions: Sequence[Instruction]) -> tuple[Operation, ...]:
    architecture = architecture_named(facts.arch)
    if architecture is None:
        raise not_lifted(facts.name, f"rota doesn't know {facts.arch}")
    try:
        return tuple(read_operation(each, number, architecture) for number, each in enumerate(instructions))
    except UnknownOperationError as error:
        raise not_lifted(facts.name, f"rota doesn't know {error.instruction.opcode}") from error


def _with_all_matrix_rates(device: Device) -> Device:
    """With the passes of all matrix instructions: rates list those that schedules are written with."""
    rates = device.rates
    others = tuple(
        MatrixRate(instruction=form.name, passes=form.passes, narrow=form.narrow_passes)
        for form in device.matrix_forms
        if form.name not in rates.mfma_passes
    )
    return replace(device, timing=replace(device.timing, rates=replace(rates, matrix=(*rates.matrix, *others))))


def _check_matrix(name: str, loop: NaturalLoop, device: Device) -> None:
    known = device.rates.mfma_passes
    for each in loop.chain:
        if each.name.startswith(MATRIX) and each.name not in known:
            raise not_lifted(name, f"how long {each.name} takes on {device.name} is not known", each)


def _without_edge(chain: Sequence[Operation]) -> tuple[Operation, ...]:
    """Without the branch that closes the loop, and the compare that it is for if it does nothing else."""
    kept = list(chain)
    if kept[-1].kind is OperationKind.BRANCH:
        last = kept.pop()
        if last.reads & SCC_BIT:
            at = next((place for place in reversed(range(len(kept))) if kept[place].writes & SCC_BIT), None)
            if at is not None and not kept[at].writes & ~SCC_BIT:
                del kept[at]
    return tuple(kept)


def _groups(
    name: str, loops: Sequence[NaturalLoop], recorder: LoopRecorder, verdict: Verdict
) -> tuple[tuple[int, ...], tuple[_Group, ...]]:
    """The loops to lift, and who runs each: the first that all waves come to, or loops that share them out."""
    waves, early = verdict.waves, " until the proof ended early" if verdict.ended_early else ""
    entered = [recorder.entered[loop.head] for loop in loops]
    if not any(entered):
        return (0,), (_Group(0, 0, tuple(range(waves))),)
    whole = next((number for number, each in enumerate(entered) if len(each) == waves), None)
    chosen = [whole] if whole is not None else [number for number, each in enumerate(entered) if each]
    if sum(len(entered[number]) for number in chosen) != waves:
        came = {wave for number in chosen for wave in entered[number]}
        why = (
            f"{waves - len(came)} of its {waves} waves come to no loop with as much work{early}"
            if len(came) < waves
            else "some of its waves come to several loops, and none to all"
        )
        raise not_lifted(name, why, loops[chosen[0]].chain[0])
    found: dict[tuple[int, int], list[int]] = {}
    for place, number in enumerate(chosen):
        for wave, barriers in sorted(entered[number].items()):
            found.setdefault((place, barriers), []).append(wave)
    groups = tuple(_Group(loop, barriers, tuple(some)) for (loop, barriers), some in sorted(found.items()))
    if len(chosen) > 1 and len({group.barriers for group in groups}) > 1:
        raise not_lifted(name, "its waves run different loops, not from the same barrier on", loops[chosen[0]].chain[0])
    return tuple(chosen), groups


@dataclass(frozen=True, slots=True)
class _Lift:
    """Makes the program."""

    facts: KernelFacts
    device: Device
    loops: tuple[NaturalLoop, ...]
    uses: LdsUses
    groups: tuple[_Group, ...]
    waves: int

    def program(self) -> LoweredProgram:
        several_roles = len(self.groups) > 1
        roles = tuple(
            Role(f"waves {_told(group.waves)}" if several_roles else "waves", len(group.waves)) for group in self.groups
        )
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
                why = "its waves run loops that don't meet at the same barriers"
                raise not_lifted(self.facts.name, why, self.loops[0].chain[0]) from error
        ahead = [group.barriers - min(each.barriers for each in self.groups) for group in self.groups]
        sizes = {name: size for each in registers for name, size in each.sizes}
        return LoweredProgram(
            name=self._title(len(kernel)),
            machine=self.device,
            semantics=Unstated(registers=tuple(sizes.items())),
            prologue=tuple(_extra(Phase.PROLOGUE, ahead)),
            kernel=kernel,
            epilogue=tuple(_extra(Phase.EPILOGUE, [max(ahead) - each for each in ahead])),
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
        where = " and ".join(_where(loop) for loop in self.loops)
        count = sum(len(loop.chain) for loop in self.loops)
        return f"loop at {where} of {self.facts.name}, {several(count, 'instruction')}, {entries} entries"


def _extra(phase: Phase, counts: Sequence[int]) -> Iterator[Entry]:
    """Barriers that some waves come to before the loop and others behind it."""
    for role, count in enumerate(counts):
        for _ in range(count):
            yield Entry(op=BARRIER, effect=MEETS, time_slot=0, phase=phase, roles=(role,), listed=False)


def _told(waves: Sequence[int]) -> str:
    if len(waves) > 1 and waves[-1] - waves[0] == len(waves) - 1:
        return f"{waves[0]} to {waves[-1]}"
    return ", ".join(map(str, waves))


def _where(loop: NaturalLoop) -> str:
    first, last = loop.chain[0].instruction, loop.chain[-1].instruction
    if first.address is None or last.address is None:
        return f"lines {first.line} to {last.line}"
    return f"{first.address:#x}..{last.address:#x}"


def _readings(
    found: Sequence[NaturalLoop],
    loops: Sequence[NaturalLoop],
    uses: LdsUses,
    verdict: Verdict,
    waves: int,
    *,
    entered: bool,
) -> Iterator[str]:
    """What is assumed, and what is left out."""
    yield f"machine code ({verdict.status.value})"
    yield f"the steady state of the loop alone, {several(waves, 'wave')}"
    if uses.copies > 1:
        yield f"a trip is {uses.copies} iterations, whose LDS addresses differ"
    if len(found) > len(loops):
        yield f"one of {len(found)} loops with as many matrix and memory instructions"
    yield from uses.told
    if not entered:
        yield "the proof didn't come to the loop: which bytes of LDS it uses is not known"
    elif verdict.ended_early:
        yield "bytes of LDS are those that were seen until the proof ended early"
    skipped = sum(loop.skipped for loop in loops)
    if skipped:
        yield f"{several(skipped, 'instruction')} that branches may skip are left out, all of them VALU and scalar ones"
    chain = [each for loop in loops for each in loop.chain]
    if any(each.kind is OperationKind.SMEM for each in chain):
        yield "scalar loads are taken to be there at once"
    if any(each.kind is OperationKind.BRANCH for each in chain):
        yield "branches that leave it are not taken"
