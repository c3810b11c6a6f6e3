"""The accesses of global memory that a kernel makes, each with its address as a formula.

Its operations are followed in the order of the control flow; what a load reads has the name of what it reads from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from rota.errors import IsaError
from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.kernel_facts import Argument, KernelFacts
from rota.isa.disassembly import Instruction
from rota.isa.opcodes import IsaUnit, MemSpace, MemVerb
from rota.isa.registers import SCALAR
from rota.isa.wave.operand import File, Operand, parse_operand
from rota.prove.footprint.flow import EXEC_ROW, BlockEntries, KernelFlow, LaunchWords, State
from rota.prove.footprint.lanes import ON_LANES, ON_MASKS, compare_operands, compares, save_exec
from rota.prove.footprint.numbers import ON_NUMBERS, ON_WORDS
from rota.prove.footprint.polynomial import ZERO, Atom, Bounds, Polynomial, bounds_of_bits, describe, number, of_atom
from rota.prove.footprint.step import Action, WordStep, forget
from rota.prove.footprint.words import ANY_WORD, TRUE, HeldWord, Predicate, Words, both, negated
from rota.prove.operation import (
    EXEC_BITS,
    Operation,
    OperationKind,
    UnknownOperationError,
    mark_spills,
    read_operation,
    rows_of,
)
from rota.prove.slicing import derive_successors
from rota.targets.architecture import Architecture, ResourceLayout
from rota.targets.registry import architecture_named


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """One access: `size` bytes at `base` plus `offset`.

    `pointer` is what the address is counted from. `base` is computed in 64 bits. `offset` is a number of 32 bits where
    the instruction takes one, as buffer resources and scalar bases do, else 0. It is made by lanes for which `active`
    holds; `known` holds on every way to it. Of a raw buffer, words of which not all bytes are among the first `records`
    aren't accessed; None if the resource says nothing of that kind.
    """

    operation: Operation
    verb: str
    size: int
    pointer: str
    base: Polynomial
    offset: Polynomial
    active: Predicate
    known: frozenset[Predicate]
    records: Polynomial | None = None

    @property
    def is_argument(self) -> bool:
        """True for a load of the kernel's own arguments, or of the launch's packet."""
        return any(each.op in {"kernarg", "packet"} for each in self.base.atoms())

    @property
    def formula(self) -> str:
        return describe(self.base + self.offset)


def list_cases(access: Footprint, words: Words, most: int = 3) -> Iterator[Footprint]:
    """The access; where its offset is a choice, one access for each of the two, where its condition holds."""
    factors = {key[0]: factor for key, factor in access.offset.terms if len(key) == 1 and key[0].op == "select"}
    choice = next(iter(factors), None)
    condition = None if choice is None or not most else choice.args[0]
    if choice is None or not isinstance(condition, Predicate):
        yield access
        return
    rest = access.offset - of_atom(choice).times(factors[choice])
    arms = [each for each in choice.args if isinstance(each, HeldWord)]
    for arm, holds in zip(arms, (condition, negated(condition)), strict=True):
        offset = rest + words.value(arm).times(factors[choice])
        yield from list_cases(replace(access, offset=offset, active=both(access.active, holds)), words, most - 1)


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
    for step, read in follow(words, flow, facts, architecture):
        if isinstance(read, Footprint):
            found.append(read)
        elif read is not None:
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


Followed = Iterator[tuple[WordStep, "Footprint | str | None"]]


def follow(words: Words, flow: KernelFlow, facts: KernelFacts, architecture: Architecture) -> Followed:
    """Each operation with the state before it, which changes when the next one is asked for, and its access, if any.

    A loop is first taken to lose lanes and never to get them back; where that is wrong, all is followed again.
    """
    if any(each.writes & EXEC_BITS for each in flow.operations):
        before = -1
        while len(flow.widens) > before:
            before = len(flow.widens)
            for _ in _follow_once(Words(), flow, facts, architecture):
                pass
    yield from _follow_once(words, flow, facts, architecture)


def _follow_once(words: Words, flow: KernelFlow, facts: KernelFacts, architecture: Architecture) -> Followed:
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
        for operation in flow.operations_of(block):
            step = make(state, operation)
            read = _read_access(step, flow, architecture) if operation.is_global else None
            yield step, read
            take_step(step, read if isinstance(read, Footprint) else None)
        ends[at] = state
        if (test := make(state, flow.operations[block.last]).branch_test()) is not None:
            flow.tests[at] = test
    meeting.close(ends)


def _read_access(step: WordStep, flow: KernelFlow, architecture: Architecture) -> Footprint | str:
    operation, access = step.operation, step.operation.access
    if access is None or operation.tensor:
        return "a tensor copy"
    if access.buffer and architecture.resource != ResourceLayout():
        return "a buffer resource of this machine"
    if "scale_offset" in operation.instruction.fields:
        return "a scaled offset"
    try:
        if access.space is MemSpace.SCALAR:
            base, offset = _scalar_address(step)
        elif access.buffer:
            base, offset = _buffer_address(step)
        else:
            base, offset = _vector_address(step, signed=architecture.signed_lane_offsets)
    except (IsaError, LookupError, ValueError) as error:
        return f"its operands: {error}"
    verb = "read" if access.verb is MemVerb.LOAD else "write" if access.verb is MemVerb.STORE else "atomic"
    size = access.size if access.space is not MemSpace.SCALAR else 4 * operation.data.bit_count()
    # The scalar unit doesn't ask for active lanes.
    active = TRUE if access.space is MemSpace.SCALAR else step.state.exec
    return Footprint(
        operation=operation, verb=verb, size=size, pointer=find_pointer(step.words, flow, base), base=base,
        offset=offset, active=active, known=flow.known_at(step.at), records=_find_records(step),
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


Address = tuple[Polynomial, Polynomial]


def _scalar_address(step: WordStep) -> Address:
    operands = step.operation.operands
    offset = number(step.operation.instruction.offset)
    if len(operands) > 2:
        offset = offset + _operand_value(step, operands[2])
    if step.operation.access is not None and step.operation.access.buffer:
        return resource_base(step, operands[1]), offset
    return step.wide(1), offset


def _buffer_address(step: WordStep) -> Address:
    instruction = step.operation.instruction
    operands = _vector_operands(step)
    place = next(at for at, each in enumerate(operands) if each.file is File.SCALAR and len(each.rows) == 4)
    resource, scalar, vector = operands[place], operands[place + 1], operands[place - 1]
    fields = instruction.fields
    offset = number(instruction.offset) + _operand_value(step, scalar)
    rows = vector.rows if vector.file is File.VECTOR else ()
    if "idxen" in fields:
        word = step.words.value(step.row(resource.rows[1]))
        stride = step.words.remainder(step.words.quotient(word, 1 << 16), 1 << 14)
        offset = offset + step.words.value(step.row(rows[0])) * stride
        rows = rows[1:]
    if "offen" in fields:
        offset = offset + step.words.value(step.row(rows[0]))
    return resource_base(step, resource), offset


def _find_records(step: WordStep) -> Polynomial | None:
    """The bytes of a raw buffer resource: without stride, swizzle and index, and without the lane's number."""
    access, instruction = step.operation.access, step.operation.instruction
    if access is None or not access.buffer or access.space is MemSpace.SCALAR or "idxen" in instruction.fields:
        return None
    resource = next(each for each in _vector_operands(step) if each.file is File.SCALAR and len(each.rows) == 4)
    _, high, records, last = map(step.row, resource.rows)
    flags = last.constant
    plain = step.words.value(high).bounds().high < 1 << 16 and flags is not None and not flags & _ADDS_LANE
    return step.words.value(records) if plain else None


_ADDS_LANE = 1 << 23  # of a resource's last word: the lane's number is added to the index


def _operand_value(step: WordStep, operand: Operand) -> Polynomial:
    if operand.file is File.LITERAL:
        return number(operand.literal)
    return step.words.value(step.row(operand.rows[0])) if operand.rows else ZERO


def _vector_operands(step: WordStep) -> list[Operand]:
    instruction = step.operation.instruction
    return [parse_operand(text, instruction) for text in instruction.operands]


def _vector_address(step: WordStep, *, signed: bool) -> Address:
    instruction, access = step.operation.instruction, step.operation.access
    operands = _vector_operands(step)
    after_target = instruction.returns or (access is not None and access.asynchronous and instruction.to_lds)
    vector = operands[1 if after_target else 0]
    scalar = next((each for each in operands if each.file is File.SCALAR and len(each.rows) == 2), None)
    words: list[HeldWord] = [step.row(row) for row in vector.rows]
    if scalar is not None:
        low, high = (step.row(row) for row in scalar.rows)
        read = step.words.signed_value if signed else step.words.value
        return step.words.join(low, high) + number(instruction.offset), read(words[0]) if words else ZERO
    return step.words.join(words[0], words[1]) + number(instruction.offset), ZERO


def resource_base(step: WordStep, operand: Operand) -> Polynomial:
    """The address that a buffer resource begins at: 48 bits, of which the second word holds 16."""
    low, high = (step.row(row) for row in operand.rows[:2])
    whole = step.words.drop_multiples(step.words.join(low, high), 1 << 48)
    kept = step.words.remainder(step.words.value(high), 1 << 16).atom
    inside = kept.args[0] if kept is not None and kept.op in {"field", "high"} else None
    if isinstance(inside, Polynomial) and not low.part and step.words.congruent(low.whole, inside):
        return inside
    return whole


def root_of(base: Polynomial) -> str:
    """The pointer that an address is counted from, by name."""
    single = [factors[0] for factors, factor in base.terms if len(factors) == 1 and factor == 1]
    return next((each.text for each in single if each.op in _ROOTS), UNNAMED)


UNNAMED = "memory"
_ROOTS = frozenset({"argument", "kernarg", "packet", "word of arguments", "unknown"})


# What an instruction does to the words that registers hold. One that isn't listed leaves unknown words.

_ACTIONS = {**ON_NUMBERS, **ON_LANES}


def take_step(step: WordStep, load: Footprint | None) -> None:
    """Change the state by one operation, which may read global memory."""
    operation, state = step.operation, step.state
    before = state.exec
    if operation.kind in {OperationKind.SMEM, OperationKind.VMEM, OperationKind.LDS, OperationKind.EXCHANGE}:
        _load(step, load)
    elif operation.writes:
        action = _find_action(step)
        forget(step) if action is None else action(step)
    if operation.writes >> EXEC_ROW & 1 and state.exec is before and not _names_exec(operation):
        state.exec = Predicate("unknown", (operation.number, "exec"))


def _names_exec(operation: Operation) -> bool:
    return any(EXEC_ROW in each.rows for each in operation.operands[:1]) or operation.spec.words[-1:] == ("saveexec",)


def _find_action(step: WordStep) -> Action | None:
    operation, spec = step.operation, step.operation.spec
    if not step.is_plain or spec.unit is IsaUnit.MATRIX or not operation.operands:
        return None
    if compares(step):
        return compare_operands
    if spec.name in _ACTIONS or spec.unit is not IsaUnit.SALU:
        return _ACTIONS.get(spec.name)
    return _find_scalar_action(step)


def _find_scalar_action(step: WordStep) -> Action | None:
    spec = step.operation.spec
    if spec.words[-1:] == ("saveexec",):
        return save_exec
    if spec.root in ON_WORDS and spec.type == "b32" and not _is_about_lanes(step):
        return ON_WORDS[spec.root]
    return ON_MASKS.get(spec.root) if spec.is_wide or step.mask_rows == 1 else None


def _is_about_lanes(step: WordStep) -> bool:
    """True if an instruction on 32 bits combines masks, as waves of 32 lanes have them."""
    return step.mask_rows == 1 and any(
        step.holds_mask(each) for each in step.operation.operands if each.file is not File.LITERAL
    )


# Loads. A word is named by the pointer that it is loaded from.

_BYTES = frozenset({1, 2})


def _load(step: WordStep, load: Footprint | None) -> None:
    operation, access = step.operation, step.operation.access
    if operation.verb == "time" or access is None:
        _forget_data(step, "time")
        return
    if operation.kind is OperationKind.SMEM and operation.verb == "load" and not access.buffer and load is not None:
        _load_scalar(step, load.base + load.offset)
        return
    source = "LDS" if access.space is MemSpace.LDS else f"{UNNAMED if load is None else load.pointer}[...]"
    is_small = access.size in _BYTES and not access.signed and not access.half and operation.data.bit_count() == 1
    _forget_data(step, source, bounds_of_bits(8 * access.size) if is_small else ANY_WORD)


def _forget_data(step: WordStep, source: str, bounds: Bounds = ANY_WORD) -> None:
    for place, row in enumerate(rows_of(step.operation.data or step.operation.writes)):
        word = step.words.unknown(source, step.at, place, bounds=bounds, by_lane=row < SCALAR)
        step.put(row, word)


def _load_scalar(step: WordStep, address: Polynomial) -> None:
    place = (address - step.launch.kernarg).constant
    for part, row in enumerate(rows_of(step.operation.data)):
        if place is not None and place >= 0 and place % 4 == 0:
            step.put(row, step.launch.argument(place + 4 * part))
        else:
            name = _name_loaded(address, part)
            # Of the packet, workgroups share the words whose place is constant.
            op = "launch" if root_of(address) == "packet" and "..." not in name else "unknown"
            step.put(row, HeldWord(step.words.atoms.make(op, (name, step.at, part), name, ANY_WORD)))


def _name_loaded(address: Polynomial, part: int) -> str:
    """A word in memory by its pointer, and by its place if that is constant."""
    root = root_of(address)
    rest = [term for term in address.terms if term[0] and not (len(term[0]) == 1 and term[0][0].text == root)]
    place = address.offset + 4 * part
    return f"{root}[...]" if rest else f"{root}[{place:#x}]"
