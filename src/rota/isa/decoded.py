"""A kernel ready to run, as decoded steps, and which waves reach an instruction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType

import numpy as np

from rota.errors import Finding, IsaError, Severity
from rota.isa.binary.kernel_facts import KernelFacts
from rota.isa.disassembly import Instruction, expand_pairs, expand_vskip, find_endless, read_listing
from rota.isa.hazards.spacing import NOTHING, spacing_of
from rota.isa.matrix import decode_matrix
from rota.isa.memory.arrivals import decode_arrival
from rota.isa.memory.async_copies import decode_copy
from rota.isa.memory.lds_ops import decode_shared
from rota.isa.memory.memories import Lds, Memory
from rota.isa.memory.vector_memory import decode_memory
from rota.isa.opcodes import ARRIVALS, IsaFlow, IsaUnit, MemVerb, Trait
from rota.isa.registers import EXEC_ROWS, LAUNCH_ROWS, SCALAR, TRAP_ROWS, is_beyond, rows_in
from rota.isa.valu.uniform import decode_uniform
from rota.isa.valu.vector import decode_vector
from rota.isa.wave.control import check_float_mode, decode_control
from rota.isa.wave.operand import unknown
from rota.isa.wave.scalar import decode_scalar
from rota.isa.wave.wave import Faults, Step, Wave, with_indexing
from rota.targets.architecture import Architecture, Traffic
from rota.targets.registry import architecture_named, list_architectures


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelProgram:
    """A decoded kernel, which any number of interleavings can run.

    The results are subject to its `findings`. From the instructions in `endless` no path reaches an end. `image` is the
    memory that is loaded with the code.
    """

    facts: KernelFacts
    architecture: Architecture
    steps: tuple[Step, ...]
    findings: tuple[Finding, ...] = ()
    endless: frozenset[int] = frozenset()
    image: bytes = b""
    has_meetings: bool = False  # at named barriers, or at words of LDS that count arrivals


def load_program(
    facts: KernelFacts, listing: str | tuple[Instruction, ...], *, image: bytes = b"", spaced: bool = True
) -> KernelProgram:
    """Decodes a kernel; the error names all instructions that the interpreter lacks.  `image` holds its constants.

    Without `spaced`, the interpreter doesn't ask for wait states.
    """
    architecture = architecture_named(facts.arch)
    if architecture is None or not _is_supported(architecture):
        names = sorted(each.arch for each in list_architectures() if _is_supported(each))
        raise IsaError.of("I111", f"the interpreter doesn't know {facts.arch}", fixes=(f"known: {', '.join(names)}",))
    instructions = read_listing(listing, facts.name, entry=facts.entry) if isinstance(listing, str) else listing
    instructions = expand_pairs(expand_vskip(instructions))
    places: dict[int, int] = {}
    for number, each in enumerate(instructions):
        if each.address is not None:
            places.setdefault(each.address, number)
    steps: list[Step] = []
    refused: dict[str, list[Finding]] = {}
    for instruction in instructions:
        try:
            steps.append(replace(decode(instruction, architecture, places, spaced=spaced), instruction=instruction))
        except IsaError as error:
            refused.setdefault(error.findings[0].message, []).append(error.findings[0])
    if refused:
        raise IsaError(
            *(replace(each[0], evidence=(*each[0].evidence, ("sites", len(each)))) for each in refused.values())
        )
    unlike = check_float_mode(facts)
    if any(finding.severity is Severity.ERROR for finding in unlike):
        raise IsaError(*unlike)
    return KernelProgram(
        facts=facts,
        architecture=architecture,
        steps=tuple(steps),
        findings=unlike,
        endless=find_endless(instructions),
        has_meetings=any(_meets(each) for each in instructions),
        image=image,
    )


def _meets(instruction: Instruction) -> bool:
    """True if it belongs to a barrier other than the workgroup's own."""
    access, name = instruction.spec.access, instruction.mnemonic
    counts = access is not None and (access.tensor or access.atomic in ARRIVALS)
    return counts or name in {"s_barrier_init", "s_barrier_join"}


_COUNTED = frozenset({Traffic.LOAD, Traffic.STORE, Traffic.LDS, Traffic.SCALAR})


def _is_supported(architecture: Architecture) -> bool:
    """True if it says which counters count its memory instructions; then the interpreter can execute its code."""
    counted = {traffic for queue in architecture.queues for traffic in queue.counts}
    return not architecture.unmodelled and counted >= _COUNTED


def decode(
    instruction: Instruction,
    architecture: Architecture,
    places: Mapping[int, int] = MappingProxyType({}),
    *,
    spaced: bool = True,
) -> Step:
    """Decodes one instruction or raises I102; `places` maps addresses to numbers, for jumps by register."""
    step = _decode(instruction, architecture, places, spaced=spaced)
    if not instruction.spec.unit.is_vector:
        return step
    return with_indexing(step, lambda each: _decode(each, architecture, places, spaced=spaced))


@cache
def _extensions() -> frozenset[str]:
    return frozenset(name for each in list_architectures() for name in each.extensions)


def _decode(instruction: Instruction, architecture: Architecture, places: Mapping[int, int], *, spaced: bool) -> Step:
    opcode = instruction.mnemonic
    if opcode in _extensions() and opcode not in architecture.extensions:
        raise unknown(instruction, f"place on {architecture.name}, which lacks it, so it")
    if not instruction.spec.is_modelled:
        raise unknown(instruction)
    accumulators = architecture.descriptor.accumulators
    trapped = TRAP_ROWS if architecture.descriptor.workgroup_ids else TRAP_ROWS - LAUNCH_ROWS
    for operand in instruction.operands:
        if not rows_in(operand).isdisjoint(trapped) or is_beyond(operand, accumulators=accumulators):
            raise unknown(instruction, f"operand {operand!r}")
    try:
        step = (
            decode_control(instruction, places, architecture)
            or decode_matrix(instruction, architecture)
            or decode_arrival(instruction)
            or decode_copy(instruction, architecture)
            or decode_shared(instruction, architecture)
            or decode_memory(instruction, architecture)
            or decode_vector(instruction, architecture)
            or decode_uniform(instruction)
            or decode_scalar(instruction)
        )
    except (LookupError, ValueError) as error:  # a missing operand, or text instead of a number
        raise unknown(instruction, "form") from error
    if step is None:
        raise unknown(instruction)
    touches = step.sources if _returns_in_order(instruction, architecture) else step.touches
    spaced = spaced and not architecture.hazards.by_vectors  # those a walk over all paths checks
    return replace(step, touches=touches, spacing=spacing_of(instruction, architecture) if spaced else NOTHING)


def _returns_in_order(instruction: Instruction, architecture: Architecture) -> bool:
    """True for loads that return in the order of issue and overwrite their registers whole."""
    access, traffic = instruction.spec.access, instruction.traffic
    if access is None or traffic is None or access.verb is not MemVerb.LOAD or access.half or instruction.is_flat:
        return False
    return architecture.queue_of(traffic).orders(traffic)


# Which waves reach an instruction. A wave starts with its lanes' numbers in v0, in a workgroup of one dimension;
# arguments and memory are unknown. Results of known registers are computed; after a loop, and after code that a branch
# may skip, whatever that code writes is unknown.

# After these, instructions use other registers than they name, or do nothing.
_INDIRECT = Trait.INDEXES | Trait.SKIPS


def waves_at(
    instructions: Sequence[Instruction],
    architecture: Architecture,
    waves: int,
    numbers: Sequence[int],
    *,
    reached: range = range(0),
) -> dict[int, frozenset[int] | None]:
    """For each number the waves that execute it, if they reach `reached`; None if arguments or memory decide that."""
    indirect = any(each.spec.traits & _INDIRECT for each in instructions)
    steps: list[Step | None] = []
    for each in instructions:
        try:
            lost = indirect and (each.spec.unit.computes_lanes or bool(each.spec.traits & _INDIRECT))
            steps.append(None if lost else decode(each, architecture))
        except IsaError:
            steps.append(None)
    with np.errstate(all="ignore"):
        walks = [_Walk(steps, instructions, _start_wave(wave, architecture), reached).run() for wave in range(waves)]
    found: dict[int, frozenset[int] | None] = {}
    for number in numbers:
        known = all(each[number] is not None for each in walks)
        found[number] = frozenset(wave for wave, each in enumerate(walks) if each[number]) if known else None
    return found


def _start_wave(number: int, architecture: Architecture) -> Wave:
    faults = Faults()
    memory, lds = Memory((), faults), Lds(0, faults)
    wave = Wave(architecture=architecture, number=number, faults=faults, memory=memory, lds=lds, at_issue=lambda: False)
    wave.v[0] = number * wave.lanes + np.arange(wave.lanes)
    return wave


class _Walk:
    """One pass of a wave over the code; a loop body runs once, with everything that it writes unknown."""

    def __init__(
        self, steps: Sequence[Step | None], instructions: Sequence[Instruction], wave: Wave, reached: range
    ) -> None:
        self._steps, self._instructions, self._wave, self._reached = steps, instructions, wave, reached
        targets = enumerate(each.target for each in instructions)
        self._loops = [range(start, end + 1) for end, start in targets if start is not None and start <= end]
        self._entered: set[range] = set()
        self._known = {0, *EXEC_ROWS}
        self._skippable = 0  # an undecided branch may have skipped everything before this number

    def run(self) -> list[bool | None]:
        """Whether the wave executes each instruction; None if unknown."""
        executed: list[bool | None] = [False] * len(self._steps)
        number = 0
        while number < len(self._steps):
            certain = number >= self._skippable
            executed[number] = True if certain else None
            if certain and self._instructions[number].spec.flow is IsaFlow.END:
                break
            for loop in self._loops:
                if number in loop and loop not in self._entered:
                    self._entered.add(loop)
                    for step in self._steps[loop.start : loop.stop]:
                        self._known -= self._known.copy() if step is None else step.results
            number = self._after(number, certain=certain)
        for loop in self._loops:
            executed[loop.start : loop.stop] = [each or None for each in executed[loop.start : loop.stop]]
        return executed

    def _after(self, number: int, *, certain: bool) -> int:
        step, target = self._steps[number], self._instructions[number].target
        if step is not None and target is not None:
            taken = (step.act(self._wave) is not None) if certain and step.sources <= self._known else None
            if taken and target > number:
                return target
            skips_reached = self._reached and number < self._reached.start and target >= self._reached.stop
            if taken is None and not skips_reached:
                self._skippable = max(self._skippable, target)
        elif step is not None and certain and self._is_computed(step):
            step.act(self._wave)
            self._known |= step.results
        else:
            self._known -= self._known.copy() if step is None else step.results
        return number + 1

    def _is_computed(self, step: Step) -> bool:
        """True if the result follows from known registers; lanes outside EXEC keep their old value."""
        instruction, unit = step.instruction, step.instruction.spec.unit
        # No memory, matrices or clocks, and no writes to one lane of a register.
        if unit not in {IsaUnit.SALU, IsaUnit.CONTROL, IsaUnit.VALU} or instruction.spec.partial:
            return False
        if not step.sources <= self._known:
            return False
        if unit is not IsaUnit.VALU:
            return True
        lanes = {row for row in step.results if row < SCALAR}
        whole = self._wave.mask is None or lanes <= self._known
        return whole and not instruction.modifiers and self._known >= EXEC_ROWS
