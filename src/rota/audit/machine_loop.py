"""A kernel's loop in machine code: takes its instructions, gives the `MachineEvent`s of prologue, loop and epilogue.

Events are what a schedule speaks of: DMAs, LDS reads and writes, matrix instructions, waits, barriers, priorities.
Address arithmetic and s_nop are none, nor are accesses of global memory that a schedule has no ops for, as the store of
the results.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from rota.audit.scalar_sums import ScalarSums, constant
from rota.emit.text.marks import FIRST_MARK, LAST_MARK
from rota.errors import Finding, IsaError
from rota.isa.code.disassembly import Instruction
from rota.isa.code.flow import falls_through
from rota.program.kinds import OpKind
from rota.program.phase import Phase

_WAIT = re.compile(r"(vmcnt|lgkmcnt)\((\d+)\)")
_SCALAR_LOADS = ("s_load", "s_buffer_load")
_TRANSPOSED = re.compile(r"ds_read_\w*_tr_")
_KINDS = {
    "ds_read": OpKind.LDS_READ,
    "ds_write": OpKind.LDS_WRITE,
    "v_mfma": OpKind.MMA,
    "s_waitcnt": OpKind.WAIT,
    "s_barrier": OpKind.BARRIER,
    "s_setprio": OpKind.PRIORITY,
}
_GLOBAL = re.compile(r"(?:buffer|global|flat)_(load|store|atomic)")
_GLOBAL_KINDS = {"load": OpKind.GLOBAL_LOAD, "store": OpKind.GLOBAL_STORE, "atomic": OpKind.ATOMIC}


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineEvent:
    """One event, and the number of its instruction.

    A wait has the counts it names, a DMA the constant part of its LDS address and the register that it is added to, a
    priority its level.  A branch may skip what is `conditional`.
    `serves_scalars` is a wait at which scalar loads were under way: they need it.
    """

    kind: OpKind
    number: int
    instruction: Instruction
    waits: tuple[tuple[str, int], ...] = ()
    lds: int | None = None
    lds_base: str = ""
    level: int = 0
    conditional: bool = False
    serves_scalars: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineLoop:
    """The events of each phase, and all instructions with the span that is the loop.

    `marked` are the schedule's, where a whole kernel marks them: the loop is judged as it is if they are reached.
    """

    prologue: tuple[MachineEvent, ...]
    kernel: tuple[MachineEvent, ...]
    epilogue: tuple[MachineEvent, ...]
    instructions: tuple[Instruction, ...]
    first: int
    last: int
    marked: range = range(0)

    def phase(self, phase: Phase) -> tuple[MachineEvent, ...]:
        """The events of one phase."""
        return {Phase.PROLOGUE: self.prologue, Phase.KERNEL: self.kernel, Phase.EPILOGUE: self.epilogue}[phase]


def read_machine_loop(
    instructions: Sequence[Instruction], valu: Collection[str] = (), kinds: Collection[OpKind] = ()
) -> MachineLoop:
    """The only loop of the kernel; of a whole kernel, which marks where its schedule stands, the only one there.

    `valu` are opcodes that count as events, where a schedule has vector ops; `kinds` are those of the schedule's ops,
    without which an access of global memory is none of its events.
    """
    marked = _marked(instructions)
    back = [
        (instruction.target, number)
        for number, instruction in enumerate(instructions)
        if number in marked and instruction.target is not None and instruction.target <= number
    ]
    loops = [(first, last) for first, last in back if last in reached(instructions, first)]
    if len(loops) != 1:
        raise IsaError(
            Finding(
                code="I201",
                message=f"the machine code has {len(loops)} loops; a schedule is one",
                evidence=tuple(("loop", f"instructions {first} to {last}") for first, last in loops),
            )
        )
    ((first, last),) = loops
    events = tuple(
        event for event in _events(instructions, valu, kinds, range(first, last + 1), marked) if event.number in marked
    )
    return MachineLoop(
        prologue=tuple(event for event in events if event.number < first),
        kernel=tuple(event for event in events if first <= event.number <= last),
        epilogue=tuple(event for event in events if event.number > last),
        instructions=tuple(instructions),
        first=first,
        last=last,
        marked=marked if len(marked) < len(instructions) else range(0),
    )


def _marked(instructions: Sequence[Instruction]) -> range:
    """The schedule's instructions: all, or those between its marks, which no branch may enter or leave."""
    first, last = (
        [number for number, each in enumerate(instructions) if _sets_mark(each, mark)]
        for mark in (FIRST_MARK, LAST_MARK)
    )
    if not first and not last:
        return range(len(instructions))
    marked = range(first[0], last[0] + 1) if len(first) == len(last) == 1 else range(0)
    crossing = [
        (number, each.target)
        for number, each in enumerate(instructions)
        if each.target is not None and (number in marked) != (each.target in marked) and each.target != marked.start
    ]
    if not marked or crossing:
        raise IsaError(
            Finding(
                code="I201",
                message="the marks around the schedule don't enclose a piece of the machine code",
                evidence=(
                    ("first marks", ", ".join(map(str, first)) or "none"),
                    ("last marks", ", ".join(map(str, last)) or "none"),
                    *(("branch", f"instruction {number} to {target}") for number, target in crossing),
                ),
            )
        )
    return marked


def _sets_mark(instruction: Instruction, mark: int) -> bool:
    return (
        instruction.opcode == "s_mov_b32"
        and instruction.operands[:1] == ("m0",)
        and constant(instruction.operands[-1]) == mark
    )


def reached(instructions: Sequence[Instruction], first: int) -> set[int]:
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
        if falls_through(each.opcode):
            waiting.append(number + 1)
    return found


def _events(
    instructions: Sequence[Instruction],
    valu: Collection[str],
    kinds: Collection[OpKind],
    loop: range,
    marked: range,
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
    sums = ScalarSums()
    for number, each in enumerate(instructions):
        scalars = scalars or each.opcode.startswith(_SCALAR_LOADS)
        if each.operands[:1] == ("m0",):
            m0, base = None, ""
            if each.opcode.startswith("s_add"):
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
            waits = tuple((name, int(count)) for name, count in _WAIT.findall(each.text))
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
    opcode = instruction.opcode
    if "lds" in instruction.modifiers or "_load_lds_" in opcode:
        return OpKind.DMA
    if opcode in valu:
        return OpKind.VALU
    if _TRANSPOSED.match(opcode):
        return OpKind.LDS_READ_TRANSPOSED
    if match := _GLOBAL.match(opcode):
        kind = _GLOBAL_KINDS[match[1]]
        return kind if kind in kinds else None
    return next((kind for prefix, kind in _KINDS.items() if opcode.startswith(prefix)), None)
