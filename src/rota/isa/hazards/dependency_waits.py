"""Waits between vector units and memory instructions, where a scheduling mode leaves them to software.

In mode 2 hardware holds back neither a memory instruction whose registers a vector unit still writes or reads, nor
one of any kind that overwrites what a memory instruction still has to read. `s_wait_alu` does: va_vdst lets so many
vector instructions go on that haven't written their results, vm_vsrc so many memory instructions that haven't read
their registers (LLVM pulls 170319, 201619, 203292). Each unit finishes in the order of issue, and no two of them in any
order, so that a wait for n covers what has n younger ones of its own unit. A wait for a memory instruction itself
covers what it reads, too.

The check follows all paths, whether or not a wave can take them, and asks nothing of the proof.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rota.errors import Finding
from rota.isa.disassembly import Instruction
from rota.isa.opcodes import IsaFlow, IsaUnit, MemSpace, Trait, wait_counts
from rota.isa.registers import row_name, vector_rows
from rota.program.machine import Confidence
from rota.targets.architecture import SOURCES, Architecture, Traffic

WRITES, READS = "writes", "reads"  # what an instruction still does with a register
_MODE = re.compile(r"hwreg\(HW_REG_WAVE_SCHED_MODE, *0, *2\)")
_ANY_MODE = re.compile(r"HW_REG_WAVE_SCHED_MODE")
_WAIT = re.compile(r"depctr_(?P<name>va_vdst|vm_vsrc)\((?P<count>\d+)\)")
_FIELDS = {"va_vdst": (12, 0xF), "vm_vsrc": (2, 0x7)}  # of a wait that is written as a number


@dataclass(frozen=True, slots=True)
class _Key:
    """A register that a unit still uses; `queue` is what the counter of a memory instruction calls it."""

    row: int
    unit: str
    does: str
    queue: Traffic | None = None


@dataclass(slots=True)
class _Age:
    """How many younger instructions the unit has, and the counter; `number` is the instruction."""

    unit: int
    queue: int
    number: int


_State = dict[_Key, _Age]


@dataclass(slots=True)
class _Block:
    first: int
    last: int
    leads: tuple[int, ...]
    modes: frozenset[int] = frozenset()
    state: _State = field(default_factory=dict)
    seen: bool = False


def sets_known_mode(instruction: Instruction) -> bool:
    """True if it sets the scheduling mode to one that is known: hardware waits, or `s_wait_alu` does."""
    return _MODE.search(instruction.text) is not None and _value(instruction) in {0, 2}


def may_need_waits(instructions: Sequence[Instruction]) -> bool:
    """True if some instruction may select a mode in which hardware doesn't wait."""
    modes = (each for each in instructions if Trait.SETS_MODE in each.spec.traits and _ANY_MODE.search(each.text))
    return any(_value(each) != 0 for each in modes)


def _value(instruction: Instruction) -> int | None:
    try:
        return int(instruction.operands[-1], 0)
    except ValueError:
        return None


def check_dependency_waits(instructions: Sequence[Instruction], architecture: Architecture) -> tuple[Finding, ...]:
    """An I114 for each instruction that a wait has to come before, and on some path doesn't; no call is followed."""
    if not may_need_waits(instructions):
        return ()
    return tuple(_Check(instructions, architecture).run())


class _Check:
    def __init__(self, instructions: Sequence[Instruction], architecture: Architecture) -> None:
        self._instructions, self._architecture = instructions, architecture
        self._found: dict[tuple[int, int, str], Finding] = {}

    def run(self) -> Iterator[Finding]:
        blocks = {each.first: each for each in self._split()}
        start = blocks[0]
        start.modes, start.seen, work = frozenset({0}), True, [0]
        while work:
            block = blocks[work.pop()]
            state, modes = self._follow(block, report=False)
            work += [to for to in block.leads if _join(blocks[to], state, modes)]
        for block in blocks.values():
            if block.seen:
                self._follow(block, report=True)
        return iter(found for _, found in sorted(self._found.items()))

    def _split(self) -> Iterator[_Block]:
        count = len(self._instructions)
        heads = {0, *(each.target for each in self._instructions if each.target is not None)}
        heads |= {number + 1 for number, each in enumerate(self._instructions) if each.spec.flow is not IsaFlow.NEXT}
        places = sorted(head for head in heads if head < count)
        for first, last in zip(places, [*places[1:], count], strict=True):
            final = self._instructions[last - 1]
            leads = [] if final.target is None else [final.target]
            leads += [last] if final.spec.flow.falls_through and last < count else []
            yield _Block(first, last, tuple(leads))

    def _follow(self, block: _Block, *, report: bool) -> tuple[_State, frozenset[int]]:
        state = {key: _Age(age.unit, age.queue, age.number) for key, age in block.state.items()}
        modes = block.modes
        for number in range(block.first, block.last):
            each = self._instructions[number]
            if Trait.SETS_MODE in each.spec.traits and _MODE.search(each.text):
                value = _value(each)
                modes = frozenset({0, 2} if value is None else {value})
            elif each.mnemonic == "s_wait_idle":
                state.clear()
            elif each.mnemonic == "s_wait_alu":
                for name, count in _read_wait(each).items():
                    for waited in _UNITS_OF[name]:
                        _cover(state, waited, count)
            elif each.spec.flow is IsaFlow.WAIT:
                self._cover_counted(state, each)
            elif unit := _unit_of(each):
                if report and 2 in modes:
                    self._report(state, number, unit)
                _issue(state, number, each, unit)
        return state, modes

    def _cover_counted(self, state: _State, wait: Instruction) -> None:
        """A memory instruction that its counter no longer counts has read its registers."""
        counts = wait_counts(wait.spec, wait.text, self._architecture)
        for key, age in list(state.items()):
            if key.queue is not None:
                queue = self._architecture.queue_of(key.queue)
                most = counts.get(queue.counter)
                if most is not None and (most == 0 or (key.queue in queue.in_order and age.queue >= most)):
                    del state[key]

    def _report(self, state: _State, number: int, unit: str) -> None:
        each = self._instructions[number]
        registers = each.registers
        reads, writes = vector_rows(registers.reads), vector_rows(registers.writes)
        by_vector = unit in _VECTOR_UNITS
        for key, age in state.items():
            if by_vector and key.unit in _VECTOR_UNITS:
                continue  # hardware orders these
            if key.row not in writes and not (key.does == WRITES and key.row in reads):
                continue
            found = (number, age.number, key.does)
            if found not in self._found:
                self._found[found] = self._make(each, key, age)

    def _make(self, then: Instruction, key: _Key, age: _Age) -> Finding:
        first, name = self._instructions[age.number], row_name(key.row, then.text)
        counter = _counter_of(key.unit)
        count = age.unit if key.unit not in _UNORDERED else 0
        verb = "overwrites" if key.row in then.registers.writes else "reads"
        message = f"{then.opcode} {verb} {name} while {first.opcode} still {key.does} it, in scheduling mode 2"
        evidence = (
            ("rule", f"{counter}: {verb} what {key.does}"),
            ("source", SOURCES[Confidence.COMPILER_MODEL]),
            ("row", "LLVM, expert scheduling mode of SIInsertWaitcnts: pulls 170319, 201619, 203292"),
            ("missing wait", f"{counter}({count}) before it"),
            ("fix", f"s_wait_alu depctr_{counter}({count}) before it"),
        )
        concerns = (then.concern(), first.concern("the other one"))
        return Finding("I114", message, concerns=concerns, evidence=evidence)


# Vector units finish apart from each other; nothing is said of how double precision does within itself.
_CORE, _MATRIX, _SLOW, _DOUBLE = "vector", "matrix", "transcendental", "double"
_FENCE = 8  # registers of a product
_LDS, _FLAT, _BUFFER = "LDS", "flat", "buffer"
_VECTOR_UNITS, _UNORDERED = frozenset({_CORE, _MATRIX, _SLOW, _DOUBLE}), frozenset({_DOUBLE})
_UNITS_OF = {"va_vdst": _VECTOR_UNITS, "vm_vsrc": frozenset({_LDS, _FLAT, _BUFFER})}


def _unit_of(instruction: Instruction) -> str:
    """The unit that it goes to, or nothing if va_vdst and vm_vsrc don't count it."""
    spec, registers = instruction.spec, instruction.registers
    if spec.unit.computes_lanes:
        if spec.name == "v_nop":
            return ""
        if spec.unit is IsaUnit.MATRIX:
            return _MATRIX
        wide = "f64" in spec.types or (spec.words[0] in {"mul", "mad"} and any("64" in each for each in spec.types))
        return _SLOW if Trait.TRANSCENDENTAL in spec.traits else _DOUBLE if wide else _CORE
    access = spec.access
    if access is None or not (vector_rows(registers.reads) or vector_rows(registers.writes)):
        return ""
    return _LDS if access.space is MemSpace.LDS else _BUFFER if access.buffer else _FLAT


def _counter_of(unit: str) -> str:
    return "va_vdst" if unit in _VECTOR_UNITS else "vm_vsrc"


def _issue(state: _State, number: int, instruction: Instruction, unit: str) -> None:
    registers, traffic = instruction.registers, instruction.traffic
    by_vector = unit in _VECTOR_UNITS
    is_counted = by_vector or bool(vector_rows(registers.reads))  # vm_vsrc counts what has registers to read
    fences = unit == _MATRIX and len(vector_rows(registers.writes)) >= _FENCE
    for key, age in list(state.items()):
        # Vector instructions read in the order of issue, and a large product ends after all that came before it.
        after = (is_counted and key.unit == unit) or (
            by_vector and key.unit in _VECTOR_UNITS and (fences or key.does == READS)
        )
        age.unit += after
        age.queue += key.queue is not None and key.queue is traffic
        if age.unit >= _FIELDS[_counter_of(key.unit)][1] and key.unit not in _UNORDERED:
            del state[key]  # the unit takes no more before it has ended
    if by_vector:
        for row in vector_rows(registers.reads):
            for other in _VECTOR_UNITS - {unit}:  # hardware has waited for what another unit writes there
                if (made := state.get(_Key(row, other, WRITES))) is not None:
                    _cover(state, other, made.unit)
        for row in vector_rows(registers.writes):
            for other in _VECTOR_UNITS:  # hardware orders them: what comes last ends last
                state.pop(_Key(row, other, WRITES), None)
                state.pop(_Key(row, other, READS), None)
            state[_Key(row, unit, WRITES)] = _Age(0, 0, number)
    queue = None if by_vector or instruction.is_flat else traffic
    for row in vector_rows(registers.reads):
        state[_Key(row, unit, READS, queue)] = _Age(0, 0, number)


def _read_wait(instruction: Instruction) -> dict[str, int]:
    """What an s_wait_alu leaves in flight; a field of all ones waits for nothing."""
    found = {each["name"]: int(each["count"]) for each in _WAIT.finditer(instruction.text)}
    number = _value(instruction)
    if number is not None:
        found = {name: number >> first & mask for name, (first, mask) in _FIELDS.items()}
    return {name: count for name, count in found.items() if count < _FIELDS[name][1]}


def _cover(state: _State, unit: str, count: int) -> None:
    """Drop what has so many younger instructions of its unit, for they may be all that hasn't ended."""
    for key, age in list(state.items()):
        if key.unit == unit and (count == 0 or (unit not in _UNORDERED and age.unit >= count)):
            del state[key]


def _join(block: _Block, state: _State, modes: frozenset[int]) -> bool:
    """Join what leads into a block; True if more may be in use there now."""
    changed = not block.seen or not modes <= block.modes
    block.seen, block.modes = True, block.modes | modes
    for key, age in state.items():
        old = block.state.get(key, age)
        if key not in block.state or age.unit < old.unit or age.queue < old.queue:
            least = min(age.unit, old.unit), min(age.queue, old.queue), min(age.number, old.number)
            block.state[key], changed = _Age(*least), True
    return changed
