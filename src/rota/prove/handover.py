"""Hand-overs between workgroups through global memory: which pieces of the protocol a kernel has, and which it lacks.

A *flag* is a word that one workgroup sets and another one reads to learn that data is there.  It is set by an atomic or
by a store that the whole device sees, the *release*; it is read by a loop that polls it, or by an atomic whose result
decides who goes on, the *acquire*.  Data are what the kernel stores before a release and loads after an acquire,
through one pointer of its arguments.  `rota.targets.memory_model` says what has to be between.

Two walks over the control flow follow, from each store to each release and from each acquire to each load, the best and
the worst that paths have done.  A piece that every path lacks is *required*; one that some path has, or whose flag or
data can't be told by its pointer, is *undecided*.  That a flag is ever set, or that who waits goes on, isn't asked.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic, NamedTuple, TypeVar

from rota.errors import Finding, IsaError, Severity
from rota.isa.binary.kernel_facts import KernelFacts
from rota.isa.disassembly import Instruction
from rota.isa.opcodes import CacheWork, IsaUnit, MemVerb
from rota.isa.registers import rows_in
from rota.isa.wave.operand import File
from rota.prove.causes import LEVEL, UNDECIDED, EvidenceLevel
from rota.prove.operation import EXEC_BITS, Operation, OperationKind, UnknownOperationError, read_operation, rows_of
from rota.prove.slicing import derive_successors, find_meeting_points
from rota.targets.architecture import Architecture
from rota.targets.memory_model import HandOverPiece as Piece
from rota.targets.registry import architecture_named


class HandOverKind(enum.Enum):
    RELEASE = "sets a flag"
    POLL = "polls a flag"
    COUNTER = "decides by an atomic's result"
    QUEUE = "takes an atomic's result as an index"


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOver:
    """One end of a hand-over, at its flag: the pieces that it has on every path, those that it lacks, and why."""

    kind: HandOverKind
    flag: Instruction
    pieces: tuple[Piece, ...] = ()
    missing: tuple[Piece, ...] = ()
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOverReport:
    """What a kernel hands over; `unknown` says what kept the analysis from seeing all of it."""

    kernel: str
    hand_overs: tuple[HandOver, ...] = ()
    unknown: tuple[Finding, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        return (*(finding for each in self.hand_overs for finding in each.findings), *self.unknown)


def find_hand_overs(facts: KernelFacts, instructions: Sequence[Instruction]) -> HandOverReport:
    """Find the flags of a kernel, and what is missing between them and the data."""
    architecture = architecture_named(facts.arch)
    if architecture is None or not architecture.memory_model:
        message = f"no memory model is known of {facts.arch}"
        return HandOverReport(kernel=facts.name, unknown=(Finding("I401", message, severity=Severity.ERROR),))
    operations, unknown = _read_operations(instructions, architecture)
    if any(each.kind is OperationKind.QUIET and each.spec.jumps for each in operations):  # it goes nobody knows where
        return HandOverReport(kernel=facts.name, unknown=unknown)
    kernel = _Kernel(facts=facts, operations=tuple(operations))
    return HandOverReport(kernel=facts.name, hand_overs=tuple(_Judge(kernel).judge()), unknown=unknown)


def _read_operations(
    instructions: Sequence[Instruction], architecture: Architecture
) -> tuple[list[Operation], tuple[Finding, ...]]:
    """The operations; of an instruction that isn't known, its registers alone."""
    operations, unknown = [], dict[str, Finding]()
    for number, each in enumerate(instructions):
        try:
            operations.append(read_operation(each, number, architecture))
        except UnknownOperationError:
            message = f"the proof doesn't know {each.opcode}"
            finding = Finding("I401", message, concerns=(each.concern(),), severity=Severity.ERROR)
            unknown.setdefault(each.opcode, finding)
            try:
                reads, writes, *_ = each.registers
            except (IsaError, LookupError, ValueError):
                reads = writes = frozenset()
            rows = (sum(1 << row for row in part) for part in (reads, writes))
            read, written = rows
            kind = OperationKind.QUIET
            stand_in = Operation(
                number=number, instruction=each, name=each.opcode, kind=kind, reads=read, writes=written
            )
            operations.append(stand_in)
    return operations, tuple(unknown.values())


# Walks over the control flow.

S = TypeVar("S")


class _Rules(NamedTuple, Generic[S]):
    """What a walk does with its states: `step` changes one, `join` gives a new one for two paths."""

    start: S
    copy: Callable[[S], S]
    step: Callable[[Operation, S], None]
    join: Callable[[S, S], S]


@dataclass(frozen=True, kw_only=True)
class _Kernel:
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
        starts = {0}
        for number, following in enumerate(self.successors):
            if following != [number + 1]:
                starts.update(following)
                starts.add(number + 1)
        marks = sorted(each for each in starts if each < len(self.operations))
        return dict(zip(marks, [*marks[1:], len(self.operations)], strict=True))

    @cached_property
    def one_wave(self) -> bool:
        return self.facts.max_workgroup <= 64

    def follow(self, rules: _Rules[S], see: Callable[[Operation, S], None]) -> None:
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


def _is_global(operation: Operation) -> bool:
    access = operation.access
    kinds = {OperationKind.VMEM, OperationKind.SMEM}
    return operation.kind in kinds and access is not None and not access.private and operation.verb != "time"


def _is_atomic(operation: Operation) -> bool:
    return operation.access is not None and operation.access.verb is MemVerb.ATOMIC


def _is_wide(operation: Operation) -> bool:
    """True if the whole device sees it: an atomic, or an access that says so."""
    wide = "glc" if operation.kind is OperationKind.SMEM else "sc1"
    return _is_atomic(operation) or wide in operation.instruction.modifiers


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


_NEAR = 64  # operations of a loop that polls


def _find_poll(kernel: _Kernel, load: Operation) -> range | None:
    """The nearest loop around a load that doesn't change its address; it reads one word again and again."""
    for at in range(load.number, min(load.number + _NEAR, len(kernel.operations))):
        target = kernel.operations[at].instruction.target
        if kernel.operations[at].kind is OperationKind.BRANCH and target is not None and target <= load.number:
            body = kernel.operations[target : at + 1]
            written = 0
            for each in body:
                written |= each.writes
            is_near = at - target < _NEAR
            return (
                range(target, at + 1)
                if is_near and not any(written >> row & 1 for row in _address_rows(load))
                else None
            )
    return None


# Where values come from: of which argument a pointer is, which flag was read, whether it tells work items apart.

_THREAD, _SINGLE, _KERNARG = 1, 2, 4  # differs by work item; picks one of them; points to the arguments
_FIRST_BIT = 3
_ANYWHERE = -1  # of LDS; a known place is below
_LANE_COUNTS = frozenset({"mbcnt", "bcnt1", "bcnt0", "ff1", "ff0"})
_EXEC_ROW = (EXEC_BITS & -EXEC_BITS).bit_length() - 1
_EQUALITIES = frozenset({"eq", "ne", "lg"})
_WIDENING = frozenset({"or", "mov", "cselect", "orn2"})


@dataclass(slots=True)
class _Known:
    """Marks of registers and of words of LDS, and registers whose number is known."""

    marks: dict[int, int] = field(default_factory=dict)
    numbers: dict[int, int] = field(default_factory=dict)

    def of(self, rows: int) -> int:
        found = 0
        for row in rows_of(rows):
            found |= self.marks.get(row, 0)
        return found

    def copy(self) -> _Known:
        return _Known(dict(self.marks), dict(self.numbers))

    def join(self, other: _Known) -> _Known:
        marks = dict(self.marks)
        for row, each in other.marks.items():
            marks[row] = marks.get(row, 0) | each
        return _Known(marks, dict(self.numbers.items() & other.numbers.items()))


class _Origins:
    """Marks of every value, and what they say of flags: `pointers` of each access, branches that a flag decides."""

    def __init__(self, kernel: _Kernel) -> None:
        self._kernel = kernel
        facts = kernel.facts
        pointers = [each for each in facts.arguments if each.kind == "global_buffer"]
        self._arguments = {
            each.offset + word: 1 << _FIRST_BIT + place for place, each in enumerate(pointers) for word in (0, 4)
        }
        self.polls = {
            each.number: loop
            for each in kernel.operations
            if _is_global(each)
            and each.access is not None
            and each.data
            and (loop := _find_poll(kernel, each)) is not None
        }
        returning = (each.number for each in kernel.operations if _is_global(each) and _is_atomic(each) and each.data)
        candidates = sorted({*self.polls, *returning})
        first = _FIRST_BIT + len(pointers)
        self._all_pointers = (1 << first) - (1 << _FIRST_BIT)
        self._flags = {number: 1 << first + place for place, number in enumerate(candidates)}
        self._all_flags = (1 << first + len(candidates)) - (1 << first)
        self.pointers: dict[int, int] = {}
        self.guards: dict[int, int] = {}  # of operations, what EXEC depends on
        self.decided: dict[int, int] = {}  # branches and changes of EXEC, by what decides them
        self._indices = 0
        self._follow(facts)

    def _follow(self, facts: KernelFacts) -> None:
        start, row = _Known(), 1024
        start.marks.update(dict.fromkeys(range(3), _THREAD))
        for name, count in facts.user_sgprs:
            for word in range(count):
                if name == "kernarg_segment_ptr":
                    start.marks[row + word] = _KERNARG
                elif name == "kernarg_preload":
                    place = 4 * (facts.descriptor.preload_offset + word)
                    start.marks[row + word] = self._arguments.get(place, 0)
            row += count
        rules = _Rules(start=start, copy=_Known.copy, step=self._step, join=_Known.join)
        self._kernel.follow(rules, self._see)

    def is_index(self, number: int) -> bool:
        return bool(self._flags.get(number, 0) & self._indices)

    def deciders(self, number: int) -> Iterator[int]:
        """The branches and changes of EXEC that a flag decides."""
        bit = self._flags.get(number, 0)
        return (at for at, marks in self.decided.items() if marks & bit)

    def _see(self, operation: Operation, known: _Known) -> None:
        number = operation.number
        if _is_global(operation):
            marks = 0
            for row in _address_rows(operation):
                marks |= known.marks.get(row, 0)
            self.pointers[number] = marks & self._all_pointers
            self._indices |= marks & self._all_flags
            self.guards[number] = known.marks.get(_EXEC_ROW, 0)
        elif operation.kind is OperationKind.LDS:
            self._indices |= known.of(operation.address) & self._all_flags
        elif operation.kind is OperationKind.BRANCH:
            self.decided[number] = known.of(operation.reads)
        elif operation.writes & EXEC_BITS:
            self.decided[number] = known.of(operation.reads & ~EXEC_BITS)

    def _step(self, operation: Operation, known: _Known) -> None:
        if operation.kind is OperationKind.LDS:
            self._step_lds(operation, known)
        elif operation.kind is OperationKind.SMEM:
            self._load_scalars(operation, known)
        elif operation.kind in {OperationKind.VALUE, OperationKind.EXCHANGE, OperationKind.QUIET}:
            if operation.writes:
                self._compute(operation, known)
        else:
            _set(known, operation.writes | operation.data, self._flags.get(operation.number, 0))

    def _compute(self, operation: Operation, known: _Known) -> None:
        spec, exec_marks = operation.spec, known.marks.get(_EXEC_ROW, 0)
        word = spec.words[0] if spec.words else ""
        marks = known.of(operation.reads & ~EXEC_BITS)
        if word != "mov":
            marks &= ~_KERNARG
        if word in _LANE_COUNTS or spec.unit is IsaUnit.MATRIX:
            marks = 0
        if marks & _THREAD and not _EQUALITIES.isdisjoint(spec.words):
            marks |= _SINGLE
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

    def _step_lds(self, operation: Operation, known: _Known) -> None:
        """A flag's value goes through LDS by a place that both sides name, or by one that neither is known to name."""
        rows = [*rows_of(operation.address)]
        start = known.numbers.get(rows[0]) if len(rows) == 1 else None
        places = [_ANYWHERE if start is None else -2 - start - offset for offset, _ in operation.extents]
        if operation.verb == "read":
            found = 0
            for place in places:
                found |= known.marks.get(place, 0)
            _set(known, operation.data, found)
            return
        marks = known.of(operation.reads & ~EXEC_BITS & ~operation.address) & self._all_flags
        for place in places:
            known.marks[place] = marks | (known.marks.get(place, 0) if place == _ANYWHERE else 0)
        _set(known, operation.data, 0)

    def _load_scalars(self, operation: Operation, known: _Known) -> None:
        flag = self._flags.get(operation.number, 0)
        _set(known, operation.writes | operation.data, flag)
        if operation.verb != "load" or flag or len(operation.operands) != 3:
            return
        data, base, offset = operation.operands
        if not offset.rows and base.rows and known.marks.get(base.rows[0], 0) & _KERNARG:
            for place, row in enumerate(data.rows):
                known.marks[row] = self._arguments.get(offset.literal + operation.instruction.offset + 4 * place, 0)


def _set(known: _Known, rows: int, marks: int) -> None:
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


# What happens to stores before a release: how far each class of them is.

_DONE, _WRITING, _WRITING_EARLY, _DRAINED, _IN_FLIGHT, _UNWAITED, _LOST_WRITING, _LOST = range(8)
_AFTER_WRITE_BACK = {_IN_FLIGHT: _WRITING_EARLY, _DRAINED: _WRITING, _UNWAITED: _WRITING}
_AFTER_WAIT = {_WRITING: _DONE, _WRITING_EARLY: _DONE, _IN_FLIGHT: _DRAINED}
_AT_BARRIER = {_WRITING: _UNWAITED, _WRITING_EARLY: _LOST_WRITING, _IN_FLIGHT: _LOST}  # of other waves, nobody waits
_LACKS = {
    _DONE: frozenset[Piece](),
    _WRITING: frozenset({Piece.WRITE_BACK_WAIT}),
    _WRITING_EARLY: frozenset({Piece.WRITE_BACK_WAIT, Piece.DATA_WAIT}),
    _DRAINED: frozenset({Piece.WRITE_BACK}),
    _IN_FLIGHT: frozenset({Piece.WRITE_BACK, Piece.DATA_WAIT}),
    _UNWAITED: frozenset({Piece.WRITE_BACK_WAIT}),
    _LOST_WRITING: frozenset({Piece.WRITE_BACK_WAIT, Piece.DATA_WAIT}),
    _LOST: frozenset({Piece.WRITE_BACK, Piece.DATA_WAIT}),
}


class _Progress(NamedTuple):
    """The best and the worst that paths have done to a store: for its wave, and for others as of the last barrier."""

    best: int = _IN_FLIGHT
    worst: int = _IN_FLIGHT
    others: tuple[int, int] = (_LOST, _LOST)
    unmet: tuple[bool, bool] = (True, True)  # no barrier since: on every path, on some path
    narrow: bool = False

    def join(self, other: _Progress) -> _Progress:
        return _Progress(
            min(self.best, other.best),
            max(self.worst, other.worst),
            (min(self.others[0], other.others[0]), max(self.others[1], other.others[1])),
            (self.unmet[0] and other.unmet[0], self.unmet[1] or other.unmet[1]),
            self.narrow or other.narrow,
        )

    def moved(self, steps: Mapping[int, int]) -> _Progress:
        best, worst, *others = (steps.get(each, each) for each in (self.best, self.worst, *self.others))
        return self._replace(best=best, worst=worst, others=(others[0], others[1]))

    def met(self) -> _Progress:
        others = tuple(_AT_BARRIER.get(each, each) for each in (self.best, self.worst))
        return self._replace(others=(others[0], others[1]), unmet=(False, False))


_Stores = dict[int, _Progress]  # by the number of the store
_Reads = dict[int, "_View"]  # by the number of the flag's load


def _step_stores(operation: Operation, state: _Stores) -> None:
    if _is_global(operation) and operation.access is not None and operation.access.verb is not MemVerb.LOAD:
        state[operation.number] = _Progress()
    elif operation.spec.cache is CacheWork.WRITE_BACK:
        wide = "sc1" in operation.instruction.modifiers
        for number, each in state.items():
            state[number] = each.moved(_AFTER_WRITE_BACK) if wide else each._replace(narrow=True)
    elif operation.kind is OperationKind.WAIT and ("vmcnt", 0) in operation.waits:
        for number, each in state.items():
            state[number] = each.moved(_AFTER_WAIT)
    elif operation.kind is OperationKind.BARRIER:
        for number, each in state.items():
            state[number] = each.met()


# What happens after an acquire: whether its wait and an invalidate have come.

_FRESH, _WAITED, _ISSUED = range(3)


class _View(NamedTuple):
    best: int = _ISSUED
    worst: int = _ISSUED
    unmet: tuple[bool, bool] = (True, True)
    early: bool = False  # an invalidate came before the wait
    narrow: bool = False
    younger: int = 0  # vector memory ops since, at least

    def join(self, other: _View) -> _View:
        return _View(
            min(self.best, other.best),
            max(self.worst, other.worst),
            (self.unmet[0] and other.unmet[0], self.unmet[1] or other.unmet[1]),
            self.early or other.early,
            self.narrow or other.narrow,
            min(self.younger, other.younger),
        )

    def invalidated(self, *, wide: bool) -> _View:
        if not wide:
            return self._replace(narrow=True)
        best, worst = (_FRESH if each == _WAITED else each for each in (self.best, self.worst))
        return self._replace(best=best, worst=worst, early=self.early or self.worst == _ISSUED)

    def waited(self, waits: tuple[tuple[str, int], ...]) -> _View:
        if any(most == 0 or (counter == "vmcnt" and most <= self.younger) for counter, most in waits):
            return self._replace(best=min(self.best, _WAITED), worst=min(self.worst, _WAITED))
        return self


def _step_reads(acquires: frozenset[int], operation: Operation, state: _Reads) -> None:
    for number, each in state.items():
        if operation.spec.cache is CacheWork.INVALIDATE:
            state[number] = each.invalidated(wide="sc1" in operation.instruction.modifiers)
        elif operation.kind is OperationKind.WAIT:
            state[number] = each.waited(operation.waits)
        elif operation.kind is OperationKind.BARRIER:
            state[number] = each._replace(unmet=(False, False))
        elif operation.kind is OperationKind.VMEM:
            state[number] = each._replace(younger=each.younger + 1)
    if operation.number in acquires:
        state[operation.number] = _View()


def _join_progress(state: _Stores, other: _Stores) -> _Stores:
    return {**state, **{at: each.join(state[at]) if at in state else each for at, each in other.items()}}


def _join_views(state: _Reads, other: _Reads) -> _Reads:
    return {**state, **{at: each.join(state[at]) if at in state else each for at, each in other.items()}}


# The judgement.


class _Lack(NamedTuple):
    piece: Piece
    other: int  # the access of data
    doubt: str = ""  # why it is undecided


_SOME_PATH = "some path may have it"
_UNKNOWN_POINTER = "which argument an address is made of"
_SET_ELSEWHERE = "who stores the data"


class _Judge:
    def __init__(self, kernel: _Kernel) -> None:
        self._kernel, self._origins = kernel, _Origins(kernel)
        self._accesses = [each for each in kernel.operations if _is_global(each)]
        self._acquires = dict(self._find_acquires())
        self._stores = [each for each in self._accesses if each.access and each.access.verb is not MemVerb.LOAD]
        self._single = [at for at, marks in self._origins.decided.items() if marks & _SINGLE and self._splits(at)]

    def judge(self) -> Iterator[HandOver]:
        for each in self._accesses:
            if self._origins.is_index(each.number) and _is_atomic(each):
                yield HandOver(kind=HandOverKind.QUEUE, flag=each.instruction)
        if not self._acquires:
            return
        data = {number: self._find_loads(number) for number in self._acquires}
        found: dict[int, list[_Lack]] = {}
        self._judge_reads(data, found)
        releases = self._find_releases()
        self._judge_stores(releases, data, found)
        for number in sorted({*self._acquires, *releases}):
            yield self._hand_over(number, found.get(number, []), releases=number in releases)

    def _splits(self, number: int) -> bool:
        return self._kernel.operations[number].kind is OperationKind.BRANCH

    def _find_acquires(self) -> Iterator[tuple[int, HandOverKind]]:
        for each in self._accesses:
            deciders = {*self._origins.deciders(each.number)}
            loop = self._origins.polls.get(each.number, range(0))
            if self._origins.is_index(each.number):
                continue
            if not deciders.isdisjoint(loop):
                yield each.number, HandOverKind.POLL
            elif deciders and _is_atomic(each):
                yield each.number, HandOverKind.COUNTER

    def _pointers(self, number: int) -> int:
        return self._origins.pointers.get(number, 0)

    def _find_loads(self, acquire: int) -> list[Operation]:
        """The loads of data after an acquire; where a counter decides, those that it decides about."""
        reached = self._kernel.reached_from(acquire)
        if self._acquires[acquire] is HandOverKind.COUNTER:
            regions = (self._kernel.region(at) for at in self._origins.deciders(acquire) if self._splits(at))
            reached &= frozenset().union(*regions)
        else:
            reached -= frozenset(self._origins.polls[acquire])
        return [
            each
            for each in self._accesses
            if each.number in reached and each.number not in self._acquires and self._may_be_data(each)
        ]

    def _may_be_data(self, access: Operation) -> bool:
        """True for loads, but those of arguments and of what the scalar unit reads where nobody stores."""
        if access.access is None or access.access.verb is not MemVerb.LOAD:
            return False
        return access.kind is not OperationKind.SMEM or bool(self._pointers(access.number) & self._stored())

    def _stored(self) -> int:
        stored = 0
        for each in self._stores:
            if each.number not in self._acquires:
                stored |= self._pointers(each.number)
        return stored

    def _guards(self, number: int) -> list[frozenset[int]] | None:
        """The ways on which one work item does it for all, or one wave does; None if nothing says so."""
        if self._kernel.one_wave:
            return None
        ways = [way for way in map(self._kernel.region, self._single) if number in way]
        return ways if ways or self._origins.guards.get(number, 0) & _SINGLE else None

    # Acquires.

    def _judge_reads(self, data: Mapping[int, Sequence[Operation]], found: dict[int, list[_Lack]]) -> None:
        acquires, loads = frozenset(self._acquires), dict[int, list[int]]()
        for acquire, after in data.items():
            for each in after:
                loads.setdefault(each.number, []).append(acquire)

        def see(operation: Operation, state: _Reads) -> None:
            for acquire in loads.get(operation.number, ()):
                if acquire in state:
                    found.setdefault(acquire, []).extend(self._judge_load(acquire, operation, state[acquire]))

        rules = _Rules[_Reads]({}, dict, lambda operation, state: _step_reads(acquires, operation, state), _join_views)
        self._kernel.follow(rules, see)

    def _judge_load(self, acquire: int, load: Operation, view: _View) -> Iterator[_Lack]:
        doubt = self._doubt_load(acquire, load)
        if doubt is None:
            return
        if view.worst != _FRESH and not _is_wide(load):
            piece = Piece.INVALIDATE_SCOPE if view.narrow else Piece.INVALIDATE
            piece = Piece.WAIT_BEFORE_INVALIDATE if view.early else piece
            yield _Lack(piece, load.number, doubt or ("" if view.best != _FRESH else _SOME_PATH))
        guards = self._guards(acquire)
        if guards is not None and view.unmet[1] and not self._is_guarded(load.number, guards):
            yield _Lack(Piece.BARRIER_AFTER, load.number, doubt or ("" if view.unmet[0] else _SOME_PATH))
        if not _is_wide(self._kernel.operations[acquire]):
            yield _Lack(Piece.LOAD_SCOPE, load.number, doubt)

    def _is_guarded(self, number: int, guards: Sequence[frozenset[int]]) -> bool:
        if not guards:
            return bool(self._origins.guards.get(number, 0) & _SINGLE)
        return any(number in way for way in guards)

    def _doubt_load(self, acquire: int, load: Operation) -> str | None:
        """Why a load may read what is handed over, or may not; None if it doesn't."""
        pointers = self._pointers(load.number)
        if not pointers:
            return _UNKNOWN_POINTER
        if pointers & self._stored():
            return ""
        flag = self._pointers(acquire)
        is_set_here = any(flag & self._pointers(each.number) for each in self._stores)
        return None if is_set_here else _SET_ELSEWHERE

    # Releases.

    def _find_releases(self) -> dict[int, tuple[int, ...]]:
        """Stores that set a flag, each with the acquires that read it."""
        found: dict[int, tuple[int, ...]] = {}
        for wide in (True, False):
            for acquire, kind in self._acquires.items():
                flag, polls = self._pointers(acquire), kind is HandOverKind.POLL
                setters = [
                    each for each in self._stores if self._pointers(each.number) & flag or each.number == acquire
                ]
                if polls:
                    setters = [each for each in setters if self._acquires.get(each.number) is not HandOverKind.POLL]
                is_set = any(acquire in each for each in found.values())
                if not wide and (is_set or not polls or self._reads_data_by(acquire, flag)):
                    continue  # a plain store is a flag only if nothing else sets it, and nothing else is there
                for each in setters:
                    if _is_wide(each) == wide:
                        found[each.number] = (*found.get(each.number, ()), acquire)
        return found

    def _reads_data_by(self, acquire: int, pointers: int) -> bool:
        return any(self._pointers(each.number) & pointers for each in self._find_loads(acquire))

    def _judge_stores(
        self,
        releases: Mapping[int, tuple[int, ...]],
        data: Mapping[int, Sequence[Operation]],
        found: dict[int, list[_Lack]],
    ) -> None:
        def see(operation: Operation, state: _Stores) -> None:
            acquires = releases.get(operation.number, ())
            wanted, unknown = 0, False
            for load in (load for each in acquires for load in data[each]):
                wanted |= self._pointers(load.number)
                unknown |= not self._pointers(load.number)
            for number, progress in state.items() if acquires else ():
                pointers = self._pointers(number)
                if number in releases or not (pointers & wanted or unknown or not pointers):
                    continue
                doubt = "" if pointers & wanted else _UNKNOWN_POINTER
                lacks = self._judge_store(operation, number, progress)
                found.setdefault(operation.number, []).extend(
                    each._replace(doubt=doubt or each.doubt) for each in lacks
                )

        self._kernel.follow(_Rules[_Stores]({}, dict, _step_stores, _join_progress), see)

    def _judge_store(self, release: Operation, number: int, progress: _Progress) -> Iterator[_Lack]:
        store = self._kernel.operations[number]
        passes = _is_wide(store) and store.kind is not OperationKind.SMEM
        sides = [(progress.best, progress.worst)]
        guards = self._guards(release.number)
        if guards is not None and not self._is_guarded(number, guards):
            if progress.unmet[1]:
                yield _Lack(Piece.BARRIER_BEFORE, number, "" if progress.unmet[0] else _SOME_PATH)
            else:
                sides.append(progress.others)
        for best, worst in sides:
            certain, possible = (_lacks_at(each, passes=passes, narrow=progress.narrow) for each in (best, worst))
            for piece in sorted(possible, key=lambda each: each.value):
                yield _Lack(piece, number, "" if piece in certain else _SOME_PATH)
        if not _is_wide(release):
            yield _Lack(Piece.STORE_SCOPE, number)

    # Results.

    def _hand_over(self, number: int, lacks: Sequence[_Lack], *, releases: bool) -> HandOver:
        flag = self._kernel.operations[number].instruction
        chosen: dict[Piece, _Lack] = {}
        for each in sorted(lacks, key=lambda lack: bool(lack.doubt)):
            chosen.setdefault(each.piece, each)
        acquires = number in self._acquires
        sides = [each for each in Piece if (releases if each.is_of_release else acquires) and each in _PIECES]
        return HandOver(
            kind=self._acquires.get(number, HandOverKind.RELEASE),
            flag=flag,
            pieces=tuple(each for each in sides if each not in chosen),
            missing=tuple(chosen),
            findings=tuple(self._report(flag, each) for each in chosen.values()),
        )

    def _report(self, flag: Instruction, lack: _Lack) -> Finding:
        level = EvidenceLevel.UNDECIDED if lack.doubt else EvidenceLevel.REQUIRED
        doubt = ((UNDECIDED, lack.doubt),) if lack.doubt else ()
        other = self._kernel.operations[lack.other].instruction
        return Finding(
            "I305",
            f"{flag.opcode} is a flag between workgroups, and the hand-over lacks {lack.piece.value}",
            severity=Severity.WARNING if lack.doubt else Severity.ERROR,
            concerns=(flag.concern(), other.concern("the data")),
            evidence=((LEVEL, level.value), ("missing", lack.piece.value), *doubt),
        )


_PIECES = frozenset({
    Piece.DATA_WAIT, Piece.WRITE_BACK, Piece.WRITE_BACK_WAIT, Piece.STORE_SCOPE, Piece.LOAD_SCOPE, Piece.INVALIDATE,
})  # fmt: skip
"""What every hand-over of plain data has to have, whoever does it."""


def _lacks_at(status: int, *, passes: bool, narrow: bool) -> frozenset[Piece]:
    """What a store that has come so far lacks; one that passes the caches needs no write-back."""
    lacks = _LACKS[status]
    if passes:
        return frozenset({Piece.DATA_WAIT}) if Piece.DATA_WAIT in lacks else frozenset()
    if narrow and Piece.WRITE_BACK in lacks:
        lacks = lacks - {Piece.WRITE_BACK} | {Piece.WRITE_BACK_SCOPE}
    return lacks
