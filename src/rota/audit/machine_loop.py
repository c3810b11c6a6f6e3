"""A kernel's loop in machine code, as the events of its prologue, loop and epilogue.

Events are what a schedule speaks of: DMAs, LDS reads and writes, matrix instructions, waits, barriers, priorities.
Address arithmetic and s_nop are none, nor are accesses of global memory that a schedule has no ops for, such as the
store of the results.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rota.emit.gemm.gemm_binding import GemmBinding
from rota.emit.gemm.gemm_tile import BoundInstruction
from rota.emit.text import FIRST_MARK, LAST_MARK, is_alone
from rota.errors import Concern, Finding, IsaError
from rota.isa.disassembly import Instruction
from rota.isa.opcodes import IsaUnit, written_counts
from rota.isa.registers import NAMED, parse_range, rows_in
from rota.program.entry import Entry
from rota.program.kinds import SYNC_INSTRUCTIONS, OpKind, Phase, Unit
from rota.program.lowered import Lowerable

_LIKE = {OpKind.TRANSCENDENTAL: OpKind.VALU}  # in machine code both are opcodes that the author names


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedEvent:
    """One event of an entry; for a GEMM whose addresses are known, with what it is bound to."""

    kind: OpKind
    entry: Entry
    bound: BoundInstruction | None = None
    alone: bool = False  # not executed by every role
    opcode: str = ""  # where nothing is bound but the instruction is known


Expected = Mapping[Phase, tuple[ExpectedEvent, ...]]


def expect_gemm(planned: Lowerable, binding: GemmBinding) -> Expected:
    """The events of an emitted GEMM, every instruction with its coordinates."""
    return _expect_events(
        planned,
        lambda entry: [
            ExpectedEvent(kind=entry.op.kind, entry=entry, bound=bound) for bound in binding.instructions(entry)
        ],
    )


def expect_counts(planned: Lowerable) -> Expected:
    """The events of a skeleton whose functions issue what is declared: as many instructions as each op has."""

    def opcodes(entry: Entry) -> list[str]:
        if entry.op.work is None:
            message = f"{entry.op} doesn't say how many instructions it is, so none can be told to be its own"
            raise IsaError.of("I201", message, concerns=(entry.concern(),))
        return [""] * entry.op.work.instructions

    return expect_opcodes(planned, opcodes)


def expect_opcodes(planned: Lowerable, opcodes: Callable[[Entry], Sequence[str]]) -> Expected:
    """The events of source whose instructions are known one by one."""

    def events(entry: Entry) -> Iterator[ExpectedEvent]:
        for opcode in opcodes(entry):
            yield ExpectedEvent(kind=_LIKE.get(entry.op.kind, entry.op.kind), entry=entry, opcode=opcode)

    return _expect_events(planned, events)


def _expect_events(planned: Lowerable, data: Callable[[Entry], Iterable[ExpectedEvent]]) -> Expected:
    program = planned.lowered

    def events(entry: Entry) -> Iterator[ExpectedEvent]:
        if not entry.op.is_framework:
            yield from data(entry)
        elif entry.op.kind in SYNC_INSTRUCTIONS:
            yield ExpectedEvent(kind=entry.op.kind, entry=entry, alone=is_alone(program, entry))

    return {phase: tuple(event for entry in program.phase(phase) for event in events(entry)) for phase in Phase}


_SUMS = frozenset({"s_mov_b32", "s_add_i32", "s_add_u32", "s_or_b32", "v_or_b32", "v_add_u32"})
"""Copies and sums; an OR with a constant adds it where the compiler knows that no bits meet."""


class RegisterSums:
    """Follows copies and sums with constants, in the order of the text."""

    def __init__(self) -> None:
        self._defined: Counter[str] = Counter()
        self._sums: dict[str, tuple[str, int]] = {}

    def of(self, register: str) -> tuple[str, int]:
        """What it is counted from, at which definition of that, and how far."""
        return self._sums.get(register, (f"{register} of {self._defined[register]}", 0))

    def step(self, each: Instruction) -> None:
        written = find_written_scalars(each)
        if each.spec.unit.computes_lanes and each.operands:
            written = parse_registers(each.operands[0], "vas")
        found = self._sum(each) if len(written) == 1 and each.mnemonic in _SUMS else None
        for register in written:
            self._defined[register] += 1
            self._sums.pop(register, None)
            if found is not None:
                self._sums[register] = found

    def _sum(self, each: Instruction) -> tuple[str, int] | None:
        numbers = [constant(operand) for operand in each.operands[1:]]
        sources = [operand for operand in each.operands[1:] if parse_registers(operand, "vas")]
        if len(sources) != 1 or numbers.count(None) != 1:
            return None
        base, before = self.of(sources[0])
        return base, before + sum(number or 0 for number in numbers)


def find_written_scalars(each: Instruction) -> list[str]:
    return (
        parse_registers(each.operands[0], "s")
        if each.operands and rows_in(each.operands[0]) & each.registers.writes
        else []
    )


def constant(operand: str) -> int | None:
    try:
        return int(operand, 0)
    except ValueError:
        return None


def parse_registers(operand: str, files: str = "va") -> list[str]:
    """The registers that an operand names, one after the other, in the vector files or those given; else none."""
    found = parse_range(operand)
    if found is None or found.file not in files or operand in NAMED:
        return []
    return [f"{found.file}{number}" for number in range(found.first, found.first + found.size)]


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineEvent:
    """One event, and the number of its instruction."""

    kind: OpKind
    number: int
    instruction: Instruction
    waits: tuple[tuple[str, int], ...] = ()  # the counts that it names
    lds: int | None = None  # the constant part of a DMA's LDS address
    lds_base: str = ""  # the register that this is added to
    level: int = 0  # of a priority
    conditional: bool = False  # a branch may skip it
    serves_scalars: bool = False  # scalar loads in flight need this wait

    def concern(self, role: str = "in machine code") -> Concern:
        return Concern(label=self.instruction.text, index=self.number, role=role)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineLoop:
    """The events of each phase, and all instructions with the span that is the loop."""

    prologue: tuple[MachineEvent, ...]
    kernel: tuple[MachineEvent, ...]
    epilogue: tuple[MachineEvent, ...]
    instructions: tuple[Instruction, ...]
    first: int
    last: int
    marked: range = range(0)  # the schedule's, in a whole kernel; the loop is judged as if they are reached

    def phase(self, phase: Phase) -> tuple[MachineEvent, ...]:
        return {Phase.PROLOGUE: self.prologue, Phase.KERNEL: self.kernel, Phase.EPILOGUE: self.epilogue}[phase]


def read_machine_loop(
    instructions: Sequence[Instruction], valu: Collection[str] = (), kinds: Collection[OpKind] = ()
) -> MachineLoop:
    """The only loop of the kernel; of a whole kernel, which marks where its schedule is, the only one there.

    `valu` are opcodes that count as events, where a schedule has vector ops; `kinds` are those of the schedule's ops,
    without which an access of global memory is none of its events.
    """
    marked = _find_marks(instructions)
    back = [
        (instruction.target, number)
        for number, instruction in enumerate(instructions)
        if number in marked and instruction.target is not None and instruction.target <= number
    ]
    loops = [(first, last) for first, last in back if last in find_reached(instructions, first)]
    if len(loops) != 1:
        raise IsaError.of(
            "I201",
            f"the machine code has {len(loops)} loops; a schedule is one",
            evidence=tuple(("loop", f"instructions {first} to {last}") for first, last in loops),
        )
    ((first, last),) = loops
    every = _events(instructions, valu, kinds, range(first, last + 1), marked)
    events = [event for event in every if event.number in marked]
    return MachineLoop(
        prologue=tuple(event for event in events if event.number < first),
        kernel=tuple(event for event in events if first <= event.number <= last),
        epilogue=tuple(event for event in events if event.number > last),
        instructions=tuple(instructions),
        first=first,
        last=last,
        marked=marked if len(marked) < len(instructions) else range(0),
    )


def _find_marks(instructions: Sequence[Instruction]) -> range:
    """The schedule's instructions: all, or those between its marks, which no branch may enter or leave."""
    moves = [
        (n, each) for n, each in enumerate(instructions) if each.opcode == "s_mov_b32" and "m0" in each.operands[:1]
    ]
    first, last = ([n for n, each in moves if constant(each.operands[-1]) == mark] for mark in (FIRST_MARK, LAST_MARK))
    if not first and not last:
        return range(len(instructions))
    marked = range(first[0], last[0] + 1) if len(first) == len(last) == 1 else range(0)
    crossing = [
        (number, each.target)
        for number, each in enumerate(instructions)
        if each.target is not None and (number in marked) != (each.target in marked) and each.target != marked.start
    ]
    if not marked or crossing:
        raise IsaError.of(
            "I201",
            "the marks around the schedule don't enclose a piece of the machine code",
            evidence=(
                ("first marks", ", ".join(map(str, first)) or "none"),
                ("last marks", ", ".join(map(str, last)) or "none"),
                *(("branch", f"instruction {number} to {target}") for number, target in crossing),
            ),
        )
    return marked


def find_reached(instructions: Sequence[Instruction], first: int) -> set[int]:
    """The numbers of all instructions that can come after that one: a branch back need not close a loop."""
    found: set[int] = set()
    waiting = [first]
    while waiting:
        number = waiting.pop()
        if number in found or number >= len(instructions):
            continue
        found.add(number)
        each = instructions[number]
        if each.target is not None:
            waiting.append(each.target)
        if each.spec.flow.falls_through:
            waiting.append(number + 1)
    return found


def _events(
    instructions: Sequence[Instruction], valu: Collection[str], kinds: Collection[OpKind], loop: range, marked: range
) -> Iterator[MachineEvent]:
    """A wait that a branch may skip promises nothing, and is none."""
    skipped = {
        number
        for start, branch in enumerate(instructions)
        if branch.target is not None and branch.target > start and start in marked
        for number in range(start + 1, branch.target)
        if number not in loop or start in loop or branch.target in loop  # zero trips skip the loop as a whole
    }
    scalars, m0, base = False, None, ""
    sums = RegisterSums()
    for number, each in enumerate(instructions):
        scalars = scalars or (each.spec.unit is IsaUnit.SMEM and each.returns)
        if each.operands[:1] == ("m0",):
            m0, base = None, ""
            if each.spec.root == "add":
                m0, base = constant(each.operands[-1]), each.operands[1]
            elif each.opcode == "s_mov_b32" and constant(each.operands[1]) is None:
                base, m0 = sums.of(each.operands[1])
        sums.step(each)
        kind = _kind(each, valu, kinds)
        if kind is None or (kind is OpKind.WAIT and number in skipped):
            continue
        waits: tuple[tuple[str, int], ...] = ()
        serves = False
        if kind is OpKind.WAIT:
            waits = tuple(written_counts(each.spec, each.text).items())
            serves = scalars and ("lgkmcnt", 0) in waits
            scalars = scalars and not serves
        yield MachineEvent(
            kind=kind,
            number=number,
            instruction=each,
            waits=waits,
            lds=m0 if kind is OpKind.DMA else None,
            lds_base=base if kind is OpKind.DMA else "",
            level=int(each.operands[0]) if kind is OpKind.PRIORITY else 0,
            conditional=number in skipped,
            serves_scalars=serves,
        )


def _kind(instruction: Instruction, valu: Collection[str], kinds: Collection[OpKind]) -> OpKind | None:
    """An access of global memory or a vector instruction is an event only where the schedule has such ops."""
    if instruction.opcode in valu:
        return OpKind.VALU
    kind = instruction.op_kind
    if kind is None or kind.unit is Unit.VALU or (kind.unit is Unit.DMA and kind not in {OpKind.DMA, *kinds}):
        return None
    return kind


def wrong_operand(planned: ExpectedEvent, found: MachineEvent, what: str, due: object, have: object) -> Finding:
    """I203: an instruction works on something else than its op."""
    return Finding(
        "I203",
        f"{planned.entry.op} works on another {what} than the schedule says",
        concerns=(planned.entry.concern(), found.concern()),
        evidence=(("due", str(due)), ("found", str(have))),
    )
