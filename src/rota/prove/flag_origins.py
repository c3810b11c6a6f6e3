"""Where values of a kernel come from: which argument a pointer is, which flag decides a branch, and for whom.

Marks are propagated along the control flow, through registers and, for values of flags, through words of LDS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic, NamedTuple, TypeVar

from rota.isa.binary.kernel_facts import KernelFacts
from rota.isa.opcodes import IsaUnit, MemVerb
from rota.isa.registers import SCALAR, rows_in
from rota.isa.wave.operand import File, Operand
from rota.prove.operation import EXEC_BITS, Operation, OperationKind, rows_of
from rota.prove.slicing import derive_successors, find_meeting_points, split_blocks

# Walks over the control flow.

S = TypeVar("S")


class WalkRules(NamedTuple, Generic[S]):
    """What a walk does with its states: `step` changes one, `join` gives a new one for two paths."""

    start: S
    copy: Callable[[S], S]
    step: Callable[[Operation, S], None]
    join: Callable[[S, S], S]


@dataclass(frozen=True, kw_only=True)
class FlowGraph:
    facts: KernelFacts
    operations: tuple[Operation, ...]

    @cached_property
    def successors(self) -> list[list[int]]:
        return derive_successors(self.operations)

    @cached_property
    def meeting_points(self) -> list[int]:
        return find_meeting_points(self.successors)

    @cached_property
    def blocks(self) -> dict[int, int]:
        """Where stretches without branches begin, and where they end."""
        return {each.first: each.last + 1 for each in split_blocks(self.successors)}

    @cached_property
    def one_wave(self) -> bool:
        return self.facts.max_workgroup <= _LANES

    def follow(self, rules: WalkRules[S], see: Callable[[Operation, S], None]) -> None:
        """Runs to a fixed point, then shows each operation with the state before it."""
        states, work = {0: rules.start}, [0]
        while work:
            start = work.pop()
            state = rules.copy(states[start])
            for each in self.operations[start : self.blocks[start]]:
                rules.step(each, state)
            for following in self.successors[self.blocks[start] - 1]:
                known = states.get(following)
                joined = rules.copy(state) if known is None else rules.join(known, state)
                if joined != known:
                    states[following] = joined
                    work.append(following)
        for start, found in sorted(states.items()):
            state = rules.copy(found)
            for each in self.operations[start : self.blocks[start]]:
                see(each, state)
                rules.step(each, state)

    def region(self, branch: int) -> frozenset[int]:
        """The operations that a branch decides about: on the ways from it to the place where all of them lead."""
        end, found, work = self.meeting_points[branch], set[int](), [*self.successors[branch]]
        while work:
            number = work.pop()
            if number != end and number not in found:
                found.add(number)
                work += self.successors[number]
        return frozenset(found)

    def reached_from(self, number: int) -> frozenset[int]:
        found, work = set[int](), [*self.successors[number]]
        while work:
            at = work.pop()
            if at not in found:
                found.add(at)
                work += self.successors[at]
        return frozenset(found)


# Accesses of global memory.


def is_atomic(operation: Operation) -> bool:
    return operation.access is not None and operation.access.verb is MemVerb.ATOMIC


def is_wide(operation: Operation) -> bool:
    """True if the whole device sees it: an atomic, or an access that says so."""
    wide = "glc" if operation.kind is OperationKind.SMEM else "sc1"
    return is_atomic(operation) or wide in operation.instruction.modifiers


def _address_rows(operation: Operation) -> Iterator[int]:
    """The registers that an address is made of: all operands but the data."""
    operands, access = [*operation.instruction.operands], operation.access
    if access is None:
        return
    first = access.buffer or operation.kind is OperationKind.SMEM
    returns = operation.instruction.returns
    if not operation.instruction.to_lds:
        if returns or first:
            operands = operands[1:]
        if access.verb is not MemVerb.LOAD and not first:
            operands = operands[:1] + operands[2:]
    for text in operands:
        yield from rows_in(text)


_NEAR, _FAR = 64, 256  # operations of a loop that polls one word, or several
_WORDS = 8  # bytes of a flag
_COMPARES = "cmpswap"  # stores a value that another one was read for
_LANES, _LANE_BITS = 64, 6


def _asks_again(load: Operation, body: Sequence[Operation]) -> bool:
    """True if a loop reads one word in each round, and accesses no other memory: then only others can end it."""
    written = 0
    for each in body:
        written |= each.writes
        if each is not load and each.access is not None and not is_atomic(load):
            return False
    return not any(written >> row & 1 for row in _address_rows(load))


def _find_poll(kernel: FlowGraph, load: Operation) -> range | None:
    """The nearest loop around a load that reads one word again and again, or words that the whole device sees."""
    words = is_wide(load) and not is_atomic(load)
    reach = _FAR if words else _NEAR
    for at in range(load.number, min(load.number + reach, len(kernel.operations))):
        target = kernel.operations[at].instruction.target
        if kernel.operations[at].kind is OperationKind.BRANCH and target is not None and target <= load.number:
            loop, body = range(target, at + 1), kernel.operations[target : at + 1]
            if len(loop) > reach:
                return None
            return loop if words or _asks_again(load, body) else None
    return None


# Where values come from: of which argument a pointer is, which flag was read, whether it tells work items apart.

_THREAD, SINGLE, _KERNARG, _LANE = 1, 2, 4, 8  # differs by work item; picks one; points to the arguments; by lane
_FIRST_BIT = 4
_ANYWHERE = -1  # of LDS; a known place is below
_LANE_COUNTS = frozenset({"mbcnt", "bcnt1", "bcnt0", "ff1", "ff0"})
_EXEC_ROW = (EXEC_BITS & -EXEC_BITS).bit_length() - 1
_NO_OPERANDS = 3 * (Operand(text="", file=File.NONE),)
_EQUALITIES = frozenset({"eq", "ne", "lg"})
_WIDENING = frozenset({"or", "mov", "cselect", "orn2"})


@dataclass(slots=True)
class KnownMarks:
    """Marks of registers and of words of LDS, and registers whose number is known."""

    marks: dict[int, int] = field(default_factory=dict)
    numbers: dict[int, int] = field(default_factory=dict)

    def of(self, rows: int) -> int:
        found = 0
        for row in rows_of(rows):
            found |= self.marks.get(row, 0)
        return found

    def copy(self) -> KnownMarks:
        return KnownMarks(dict(self.marks), dict(self.numbers))

    def join(self, other: KnownMarks) -> KnownMarks:
        marks = dict(self.marks)
        for row, each in other.marks.items():
            marks[row] = marks.get(row, 0) | each
        others = other.numbers
        numbers = {key: each for key, each in self.numbers.items() if key in others and others[key] == each}
        return KnownMarks(marks, numbers)


def _may_be_flag(access: Operation) -> bool:
    """True for atomics that return, and for loads of a word that the whole device sees."""
    size = 0 if access.access is None else access.access.size
    return access.instruction.returns and (is_atomic(access) or (is_wide(access) and size <= _WORDS))


class FlagOrigins:
    """Marks of every value, and what they say of flags: `pointers` of each access, branches that a flag decides."""

    def __init__(self, kernel: FlowGraph) -> None:
        self._kernel = kernel
        facts = kernel.facts
        pointers = [each for each in facts.arguments if each.kind == "global_buffer"]
        self._arguments = {
            each.offset + word: 1 << _FIRST_BIT + place for place, each in enumerate(pointers) for word in (0, 4)
        }
        self.polls = {
            each.number: loop
            for each in kernel.operations
            if each.is_global and each.instruction.returns and (loop := _find_poll(kernel, each)) is not None
        }
        # Compilers put a copy of a loop's first round before it.
        self.peeled = {
            each.number
            for each in kernel.operations
            if each.is_global and each.kind is OperationKind.VMEM and each.instruction.returns and not is_atomic(each)
            if each.access is not None and each.access.size <= _WORDS
            if any(0 < loop.start - each.number <= _NEAR for loop in self.polls.values())
        } - self.polls.keys()
        returning = (each.number for each in kernel.operations if each.is_global and _may_be_flag(each))
        candidates = sorted({*self.polls, *self.peeled, *returning})
        first = _FIRST_BIT + len(pointers)
        self._all_pointers = (1 << first) - (1 << _FIRST_BIT)
        self._flags = {number: 1 << first + place for place, number in enumerate(candidates)}
        self._all_flags = (1 << first + len(candidates)) - (1 << first)
        self.pointers: dict[int, int] = {}
        self.by_lane: dict[int, bool] = {}  # of accesses, whether work items have addresses of their own
        self.guards: dict[int, int] = {}  # of operations, what EXEC depends on
        self.decided: dict[int, int] = {}  # branches and changes of EXEC, by what decides them
        self._indices = self._fed_back = 0
        self._follow(facts)

    def _follow(self, facts: KernelFacts) -> None:
        start, row = KnownMarks(), SCALAR
        start.marks.update(dict.fromkeys(range(3), _THREAD | _LANE))
        for name, count in facts.user_sgprs:
            for word in range(count):
                if name == "kernarg_segment_ptr":
                    start.marks[row + word] = _KERNARG
                elif name == "kernarg_preload":
                    place = 4 * (facts.descriptor.preload_offset + word)
                    start.marks[row + word] = self._arguments.get(place, 0)
            row += count
        rules = WalkRules(start=start, copy=KnownMarks.copy, step=self._step, join=KnownMarks.join)
        self._kernel.follow(rules, self._see)

    def is_index(self, number: int) -> bool:
        return bool(self._flags.get(number, 0) & self._indices)

    def is_value(self, number: int) -> bool:
        """True if it is an index, or makes what a compare-and-swap stores: then it is data, and no flag."""
        return bool(self._flags.get(number, 0) & (self._indices | self._fed_back))

    def deciders(self, number: int) -> Iterator[int]:
        """The branches and changes of EXEC that a flag decides."""
        bit = self._flags.get(number, 0)
        return (at for at, marks in self.decided.items() if marks & bit)

    def _see(self, operation: Operation, known: KnownMarks) -> None:
        number = operation.number
        if operation.is_global:
            marks = 0
            for row in _address_rows(operation):
                marks |= known.marks.get(row, 0)
            self.pointers[number] = marks & self._all_pointers
            self.by_lane[number] = bool(marks & (_THREAD | _LANE))
            self._indices |= marks & self._all_flags
            if operation.access is not None and operation.access.atomic == _COMPARES:
                self._fed_back |= known.of(operation.reads & ~EXEC_BITS) & self._all_flags
            self.guards[number] = known.marks.get(_EXEC_ROW, 0)
        elif operation.kind is OperationKind.LDS:
            self._indices |= known.of(operation.address) & self._all_flags
        elif operation.kind is OperationKind.BRANCH:
            self.decided[number] = known.of(operation.reads)
        elif operation.writes & EXEC_BITS:
            self.decided[number] = known.of(operation.reads & ~EXEC_BITS)

    def _step(self, operation: Operation, known: KnownMarks) -> None:
        if operation.kind is OperationKind.LDS:
            self._step_lds(operation, known)
        elif operation.kind is OperationKind.SMEM:
            self._load_scalars(operation, known)
        elif operation.kind in {OperationKind.VALUE, OperationKind.EXCHANGE, OperationKind.QUIET}:
            if operation.writes:
                self._compute(operation, known)
        else:
            _set(known, operation.writes, self._flags.get(operation.number, 0))

    def _compute(self, operation: Operation, known: KnownMarks) -> None:
        spec, exec_marks = operation.spec, known.marks.get(_EXEC_ROW, 0)
        word = spec.words[0] if spec.words else ""
        marks = known.of(operation.reads & ~EXEC_BITS)
        if word != "mov":
            marks &= ~_KERNARG
        if word in _LANE_COUNTS or spec.unit is IsaUnit.MATRIX:
            marks = _LANE if word in _LANE_COUNTS else 0
        if _keeps_lane_alone(operation, known):
            marks &= ~_THREAD
        if marks & _THREAD and not _EQUALITIES.isdisjoint(spec.words):
            marks |= SINGLE
        saves = spec.words[-1:] == ("saveexec",)
        number = _number_in(operation)
        if operation.writes & EXEC_BITS:
            kept = 0 if word in _WIDENING else exec_marks
            _set(known, operation.writes & ~EXEC_BITS, exec_marks if saves else marks)
            _set(known, EXEC_BITS, marks | kept)
        else:
            copies = word == "mov" and spec.unit is IsaUnit.SALU and operation.reads & EXEC_BITS
            keeps = known.of(operation.writes) if operation.keeps_target else 0
            _set(known, operation.writes, marks | keeps | (exec_marks if copies else 0))
        if number is not None:
            for row in rows_of(operation.writes):
                known.numbers[row] = number

    def _step_lds(self, operation: Operation, known: KnownMarks) -> None:
        """A flag's value goes through LDS by a place that both sides name, or by one that neither is known to name."""
        rows = [*rows_of(operation.address)]
        start = known.numbers.get(rows[0]) if len(rows) == 1 else None
        places = [_ANYWHERE if start is None else -2 - start - offset for offset, _ in operation.extents]
        if operation.verb == "read":
            found = 0
            for place in places:
                found |= known.marks.get(place, 0)
            _set(known, operation.writes, found)
            return
        marks = known.of(operation.reads & ~EXEC_BITS & ~operation.address) & self._all_flags
        for place in places:
            known.marks[place] = marks | (known.marks.get(place, 0) if place == _ANYWHERE else 0)
        _set(known, operation.writes, 0)

    def _load_scalars(self, operation: Operation, known: KnownMarks) -> None:
        data, base, offset = (*operation.operands, *_NO_OPERANDS)[:3]
        is_argument = bool(base.rows) and bool(known.marks.get(base.rows[0], 0) & _KERNARG)
        _set(known, operation.writes, 0 if is_argument else self._flags.get(operation.number, 0))
        if operation.verb == "load" and is_argument and not offset.rows:
            for place, row in enumerate(data.rows):
                known.marks[row] = self._arguments.get(offset.literal + operation.instruction.offset + 4 * place, 0)


def _keeps_lane_alone(operation: Operation, known: KnownMarks) -> bool:
    """True if what is left of a work item's number is at most its lane, which every wave has."""
    numbers = [
        known.numbers.get(each.rows[0], _LANES) if each.rows else each.literal for each in operation.operands[1:]
    ]
    if operation.spec.words == ("and",):
        return any(0 <= each < _LANES for each in numbers)
    return operation.spec.words == ("bfe",) and numbers[1:2] == [0] and numbers[2] <= _LANE_BITS


def _set(known: KnownMarks, rows: int, marks: int) -> None:
    for row in rows_of(rows):
        known.marks[row] = marks
        known.numbers.pop(row, None)


def _number_in(operation: Operation) -> int | None:
    """The number that a move writes."""
    spec = operation.spec
    if spec.words == ("mov",) and spec.type == "b32" and len(operation.operands) == 2:
        source = operation.operands[1]
        return source.literal if source.file is File.LITERAL else None
    return None
