"""The accesses of global memory that a kernel makes, each with its address as a formula."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from rota.errors import IsaError
from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.kernel_facts import Argument, KernelFacts
from rota.isa.disassembly import Instruction
from rota.isa.opcodes import MemSpace, MemVerb
from rota.isa.wave.operand import File, Operand, parse_operand
from rota.prove.footprint.flow import BlockEntries, KernelFlow, LaunchWords, State
from rota.prove.footprint.polynomial import ZERO, Atom, Polynomial, describe, number
from rota.prove.footprint.step import WordStep
from rota.prove.footprint.steps import UNNAMED, resource_base, root_of, take_step
from rota.prove.footprint.words import TRUE, HeldWord, Predicate, Words
from rota.prove.operation import EXEC_BITS, Operation, OperationKind, UnknownOperationError, mark_spills, read_operation
from rota.prove.slicing import derive_successors
from rota.targets.architecture import Architecture
from rota.targets.registry import architecture_named


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """One access: `size` bytes at `base` plus `offset`.

    `pointer` is what the address is counted from. `base` is computed in 64 bits. `offset` is a number of 32 bits where
    the instruction takes one, as buffer resources and scalar bases do, else 0. `limit` is the range that a resource
    checks, where there is one. It is made by lanes for which `active` holds; `known` holds on every way to it.
    """

    operation: Operation
    verb: str
    size: int
    pointer: str
    base: Polynomial
    offset: Polynomial
    limit: Polynomial | None
    active: Predicate
    known: frozenset[Predicate]

    @property
    def is_argument(self) -> bool:
        """True for a load of the kernel's own arguments."""
        return any(each.op == "kernarg" for each in self.base.atoms())

    @property
    def formula(self) -> str:
        return describe(self.base + self.offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelAccesses:
    """All accesses of a kernel; `refused` are those whose address can't be read, each with the reason."""

    name: str
    arguments: tuple[Argument, ...]
    footprints: tuple[Footprint, ...]
    refused: tuple[tuple[Instruction, str], ...]
    words: Words
    flow: KernelFlow


def accesses_of(code: CodeObject, name: str | None = None) -> KernelAccesses:
    """The accesses of one kernel of a code object; raises IsaError where the kernel can't be followed."""
    facts = code.kernel(name)
    architecture = architecture_named(facts.arch)
    if architecture is None:
        raise IsaError.of("I111", f"the code object is for {facts.arch}, which rota doesn't know")
    try:
        return read_accesses(facts, code.instructions(facts.name), architecture)
    except UnknownOperationError as error:
        what = f": its {error.what} is not known" if error.what else ""
        message = f"{error.instruction.opcode} ends the reading of addresses{what}"
        raise IsaError.of("I401", message, concerns=(error.instruction.concern(),)) from error


def read_accesses(
    facts: KernelFacts, instructions: Sequence[Instruction], architecture: Architecture
) -> KernelAccesses:
    """Follow the registers of a kernel and read its accesses of global memory."""
    words = Words()
    flow = read_flow(instructions, architecture)
    found: list[Footprint] = []
    refused: list[tuple[Instruction, str]] = []
    for step in follow(words, flow, facts, architecture):
        if is_global(step.operation):
            read = _read_access(step, flow)
            if isinstance(read, Footprint):
                found.append(read)
                step.source = read.pointer
            else:
                refused.append((step.operation.instruction, read))
    found.sort(key=lambda each: each.operation.number)
    return KernelAccesses(
        name=facts.name,
        arguments=facts.arguments,
        footprints=tuple(found),
        refused=tuple(refused),
        words=words,
        flow=flow,
    )


def read_flow(instructions: Sequence[Instruction], architecture: Architecture) -> KernelFlow:
    operations = mark_spills([read_operation(each, place, architecture) for place, each in enumerate(instructions)])
    for each in operations:
        if each.kind is OperationKind.CALL:
            raise UnknownOperationError(each.instruction, "call")
    return KernelFlow(operations, derive_successors(operations))


def follow(words: Words, flow: KernelFlow, facts: KernelFacts, architecture: Architecture) -> Iterator[WordStep]:
    """Each operation with the state before it, which changes when the next one is asked for.

    A loop is first taken to lose lanes and never to get them back; where that is wrong, all is followed again.
    """
    if any(each.writes & EXEC_BITS for each in flow.operations):
        before = -1
        while len(flow.widens) > before:
            before = len(flow.widens)
            for _ in _follow_once(Words(), flow, facts, architecture):
                pass
    yield from _follow_once(words, flow, facts, architecture)


def _follow_once(words: Words, flow: KernelFlow, facts: KernelFacts, architecture: Architecture) -> Iterator[WordStep]:
    launch = LaunchWords(words, facts, ids_in_traps=not architecture.descriptor.workgroup_ids)
    flow.carried.clear()
    flow.known.clear()
    flow.tests.clear()
    meeting, ends = BlockEntries(words, flow), dict[int, State]()
    make = partial(WordStep, words, launch, lanes=int(architecture.lanes.value))
    for at in flow.order():
        block = flow.blocks[at]
        flow.learn(at)
        state = launch.state() if not at and not block.predecessors else meeting.enter(at, ends)
        for operation in flow.operations[block.first : block.last + 1]:
            step = make(state, operation)
            yield step
            take_step(step)
        ends[at] = state
        if (test := make(state, flow.operations[block.last]).branch_test()) is not None:
            flow.tests[at] = test
    meeting.close(ends)


def is_global(operation: Operation) -> bool:
    """True if it accesses global memory, or may: flat accesses name any memory."""
    access = operation.access
    if access is None or access.private or operation.slots:
        return False
    return access.space in {MemSpace.GLOBAL, MemSpace.FLAT, MemSpace.SCALAR}


def _read_access(step: WordStep, flow: KernelFlow) -> Footprint | str:
    operation, access = step.operation, step.operation.access
    if access is None or operation.tensor:
        return "a tensor copy"
    try:
        if access.space is MemSpace.SCALAR:
            base, offset, limit = _scalar_address(step)
        elif access.buffer:
            base, offset, limit = _buffer_address(step)
        else:
            base, offset, limit = _vector_address(step)
    except (IsaError, LookupError, ValueError) as error:
        return f"its operands: {error}"
    verb = "read" if access.verb is MemVerb.LOAD else "write" if access.verb is MemVerb.STORE else "atomic"
    size = access.size if access.space is not MemSpace.SCALAR else 4 * operation.data.bit_count()
    # The scalar unit doesn't ask for active lanes.
    active = TRUE if access.space is MemSpace.SCALAR else step.state.exec
    return Footprint(
        operation=operation, verb=verb, size=size, pointer=find_pointer(step.words, flow, base), base=base,
        offset=offset, limit=limit, active=active, known=flow.known_at(step.at),
    )  # fmt: skip


def find_pointer(words: Words, flow: KernelFlow, base: Polynomial) -> str:
    """What an address is counted from: of what a loop carries, or a choice, what it begins with."""
    for _ in range(_MOST_LOOPS):
        pointer = root_of(base)
        wide = next((each for each in base.atoms() if each.op in {"wide carried", "wide select"}), None)
        if pointer != UNNAMED or wide is None:
            return pointer
        low, high = (flow.arms_of(each) for each in wide.args if isinstance(each, Atom))
        if not low or not high:
            return pointer
        base = words.join(low[0], high[0])
    return UNNAMED


_MOST_LOOPS = 8  # that carry an address, one inside of another


Address = tuple[Polynomial, Polynomial, Polynomial | None]


def _scalar_address(step: WordStep) -> Address:
    operands = step.operation.operands
    offset = step.value(2) if len(operands) > 2 else ZERO
    offset = offset + number(step.operation.instruction.offset)
    if step.operation.access is not None and step.operation.access.buffer:
        return resource_base(step, operands[1]), offset, step.words.value(step.row(operands[1].rows[2]))
    return step.wide(1), offset, None


def _buffer_address(step: WordStep) -> Address:
    instruction = step.operation.instruction
    operands = _vector_operands(step)
    place = next(at for at, each in enumerate(operands) if each.file is File.SCALAR and len(each.rows) == 4)
    resource, scalar = operands[place], operands[place + 1]
    vector = operands[place - 1]
    fields = instruction.fields
    offset = number(instruction.offset) + _operand_value(step, scalar)
    rows = vector.rows if vector.file is File.VECTOR else ()
    stride = step.words.value(step.row(resource.rows[1]))
    if "idxen" in fields:
        stride = step.words.remainder(step.words.quotient(stride, 1 << 16), 1 << 14)
        offset = offset + step.words.value(step.row(rows[0])) * stride
        rows = rows[1:]
    if "offen" in fields:
        offset = offset + step.words.value(step.row(rows[0]))
    return resource_base(step, resource), offset, step.words.value(step.row(resource.rows[2]))


def _operand_value(step: WordStep, operand: Operand) -> Polynomial:
    if operand.file is File.LITERAL:
        return number(operand.literal)
    return step.words.value(step.row(operand.rows[0])) if operand.rows else ZERO


def _vector_operands(step: WordStep) -> list[Operand]:
    instruction = step.operation.instruction
    return [parse_operand(text, instruction) for text in instruction.operands]


def _vector_address(step: WordStep) -> Address:
    instruction, access = step.operation.instruction, step.operation.access
    operands = _vector_operands(step)
    after_target = instruction.returns or (access is not None and access.asynchronous and instruction.to_lds)
    vector = operands[1 if after_target else 0]
    scalar = next((each for each in operands if each.file is File.SCALAR and len(each.rows) == 2), None)
    words: list[HeldWord] = [step.row(row) for row in vector.rows]
    if scalar is not None:
        low, high = (step.row(row) for row in scalar.rows)
        offset = step.words.value(words[0]) if words else ZERO
        return step.words.join(low, high) + number(instruction.offset), offset, None
    return step.words.join(words[0], words[1]) + number(instruction.offset), ZERO, None
