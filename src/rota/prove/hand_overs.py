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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeVar

from rota.errors import Finding, IsaError, Severity
from rota.isa.binary.kernel_facts import KernelFacts
from rota.isa.disassembly import Instruction
from rota.isa.opcodes import CacheWork, MemVerb
from rota.prove.causes import LEVEL, UNDECIDED, EvidenceLevel
from rota.prove.flag_origins import SINGLE, FlagOrigins, FlowGraph, WalkRules, is_atomic, is_wide
from rota.prove.operation import Operation, OperationKind, UnknownOperationError, read_operation
from rota.targets.architecture import Architecture
from rota.targets.memory_model import HandOverPiece as Piece
from rota.targets.registry import architecture_named


class HandOverKind(enum.Enum):
    RELEASE = "sets a flag"
    POLL = "polls a flag"
    TEST = "tests a flag, and polls something else"
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
    kernel = FlowGraph(facts=facts, operations=tuple(operations))
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
            read, written = (sum(1 << row for row in part) for part in (reads, writes))
            make = partial(Operation, number=number, instruction=each, name=each.opcode, kind=OperationKind.QUIET)
            operations.append(make(reads=read, writes=written))
    return operations, tuple(unknown.values())


# What happens to stores before a release: how far each class of them is.

_DONE, _MAYBE, _WRITING, _WRITING_EARLY, _DRAINED, _IN_FLIGHT, _UNWAITED, _MAYBE_WRITING, _LOST_WRITING, _LOST = range(
    10
)
_AFTER_WRITE_BACK = {
    _IN_FLIGHT: _WRITING_EARLY, _DRAINED: _WRITING, _UNWAITED: _WRITING, _LOST: _MAYBE_WRITING,
    _LOST_WRITING: _MAYBE_WRITING,
}  # fmt: skip
_AFTER_WAIT = {_WRITING: _DONE, _WRITING_EARLY: _DONE, _IN_FLIGHT: _DRAINED, _MAYBE_WRITING: _MAYBE}
_AFTER_COUNT = {_WRITING_EARLY: _WRITING, _IN_FLIGHT: _DRAINED}  # a wait that counts; write-backs it may not count
_NO_WAIT = 1 << 30
_NEVER = -_NO_WAIT  # as few younger ones: flat ops return in no order, and only a wait for 0 covers them
_AT_BARRIER = {_WRITING: _UNWAITED, _WRITING_EARLY: _LOST_WRITING, _IN_FLIGHT: _LOST}  # of other waves, nobody waits
_LACKS = {
    _DONE: frozenset[Piece](),
    _MAYBE: frozenset({Piece.DATA_WAIT}),
    _WRITING: frozenset({Piece.WRITE_BACK_WAIT}),
    _WRITING_EARLY: frozenset({Piece.WRITE_BACK_WAIT, Piece.DATA_WAIT}),
    _DRAINED: frozenset({Piece.WRITE_BACK}),
    _IN_FLIGHT: frozenset({Piece.WRITE_BACK, Piece.DATA_WAIT}),
    _UNWAITED: frozenset({Piece.WRITE_BACK_WAIT}),
    _MAYBE_WRITING: frozenset({Piece.WRITE_BACK_WAIT, Piece.DATA_WAIT}),
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
    younger: int = 0  # vector memory ops since, at least

    def join(self, other: _Progress) -> _Progress:
        return _Progress(
            min(self.best, other.best),
            max(self.worst, other.worst),
            (min(self.others[0], other.others[0]), max(self.others[1], other.others[1])),
            (self.unmet[0] and other.unmet[0], self.unmet[1] or other.unmet[1]),
            self.narrow or other.narrow,
            min(self.younger, other.younger),
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
    for number, each in state.items():
        state[number] = _step_store(operation, each)
    if operation.is_global and operation.access is not None and operation.access.verb is not MemVerb.LOAD:
        state[operation.number] = _Progress(younger=_NEVER if operation.flat else 0)


def _step_store(operation: Operation, progress: _Progress) -> _Progress:
    if operation.kind is OperationKind.VMEM and not operation.flat:
        return progress._replace(younger=progress.younger + 1)
    if operation.spec.cache is CacheWork.WRITE_BACK:
        wide = "sc1" in operation.instruction.modifiers
        return progress.moved(_AFTER_WRITE_BACK) if wide else progress._replace(narrow=True)
    if operation.kind is OperationKind.WAIT:
        most = dict(operation.waits).get("vmcnt", _NO_WAIT)
        if most == 0:
            return progress.moved(_AFTER_WAIT)
        return progress.moved(_AFTER_COUNT) if most <= progress.younger else progress
    return progress.met() if operation.kind is OperationKind.BARRIER else progress


# What happens after an acquire: whether its wait and an invalidate have come.

_FRESH, _WAITED, _ISSUED = range(3)


class _View(NamedTuple):
    best: int = _ISSUED
    worst: int = _ISSUED
    unmet: tuple[bool, bool] = (True, True)
    early: bool = False  # an invalidate came before the wait
    narrow: bool = False
    younger: int = 0  # vector memory ops since, at least
    counter: str = "vmcnt"

    def join(self, other: _View) -> _View:
        return _View(
            min(self.best, other.best),
            max(self.worst, other.worst),
            (self.unmet[0] and other.unmet[0], self.unmet[1] or other.unmet[1]),
            self.early or other.early,
            self.narrow or other.narrow,
            min(self.younger, other.younger),
            self.counter,
        )

    def invalidated(self, *, wide: bool) -> _View:
        if not wide:
            return self._replace(narrow=True)
        best, worst = (_FRESH if each == _WAITED else each for each in (self.best, self.worst))
        return self._replace(best=best, worst=worst, early=self.early or self.worst == _ISSUED)

    def waited(self, waits: tuple[tuple[str, int], ...]) -> _View:
        if any(counter == self.counter and (most == 0 or most <= self.younger) for counter, most in waits):
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
        elif operation.kind is OperationKind.VMEM and not operation.flat and each.counter == "vmcnt":
            state[number] = each._replace(younger=each.younger + 1)
    if operation.number in acquires:
        scalar = operation.kind is OperationKind.SMEM
        younger = _NEVER if scalar or operation.flat else 0
        state[operation.number] = _View(counter="lgkmcnt" if scalar else "vmcnt", younger=younger)


P = TypeVar("P", _Progress, _View)


def _join(state: dict[int, P], other: dict[int, P]) -> dict[int, P]:
    return {**state, **{at: each.join(state[at]) if at in state else each for at, each in other.items()}}


# The judgement.


class _Lack(NamedTuple):
    piece: Piece
    other: int  # the access of data
    doubt: str = ""  # why it is undecided


_SOME_PATH = "some path may have it"
_UNKNOWN_POINTER = "which argument an address is made of"
_SET_ELSEWHERE = "who stores the data"
_WHICH_STORE = "which store sets the flag"
_OTHERS_STORES = "whether a write-back waits for stores of other waves"


class _Judge:
    def __init__(self, kernel: FlowGraph) -> None:
        self._kernel, self._origins = kernel, FlagOrigins(kernel)
        self._accesses = [each for each in kernel.operations if each.is_global]
        self._acquires = dict(self._find_acquires())
        self._stores = [each for each in self._accesses if each.access and each.access.verb is not MemVerb.LOAD]
        self._judged: set[tuple[int, bool]] = set()  # flags with data, as a release or not
        self._unsure: set[int] = set()  # plain stores where others set a flag, too
        self._data = {number: self._find_loads(number) for number in self._acquires}
        self._single = [at for at, marks in self._origins.decided.items() if marks & SINGLE and self._splits(at)]

    def judge(self) -> Iterator[HandOver]:
        for each in self._accesses:
            if self._origins.is_index(each.number) and is_atomic(each):
                yield HandOver(kind=HandOverKind.QUEUE, flag=each.instruction)
        if not self._acquires:
            return
        found: dict[int, list[_Lack]] = {}
        self._judge_reads(found)
        releases = self._find_releases()
        self._judge_stores(releases, found)
        for number in sorted({*self._acquires, *releases}):
            yield self._hand_over(number, found.get(number, []))

    def _splits(self, number: int) -> bool:
        return self._kernel.operations[number].kind is OperationKind.BRANCH

    def _find_acquires(self) -> Iterator[tuple[int, HandOverKind]]:
        polled = 0
        deciders = {each.number: {*self._origins.deciders(each.number)} for each in self._accesses}
        asked = [each for each in self._accesses if deciders[each.number] and not self._origins.is_value(each.number)]
        for each in asked:
            if any(self._leaves(at, self._loop(each.number)) for at in deciders[each.number]):
                polled |= self._pointers(each.number)
                yield each.number, HandOverKind.POLL
            elif is_atomic(each):
                yield each.number, HandOverKind.COUNTER
            elif is_wide(each):
                yield each.number, HandOverKind.TEST
        for each in asked:
            if each.number in self._origins.peeled and self._pointers(each.number) & polled:
                yield each.number, HandOverKind.POLL

    def _leaves(self, number: int, loop: range) -> bool:
        """True for a branch out of a loop."""
        return number in loop and self._splits(number) and any(at not in loop for at in self._kernel.successors[number])

    def _loop(self, number: int) -> range:
        return self._origins.polls.get(number, range(0))

    def _pointers(self, number: int) -> int:
        return self._origins.pointers.get(number, 0)

    def _find_loads(self, acquire: int) -> list[Operation]:
        """The loads of data after an acquire; where a counter decides, those that it decides about."""
        reached = self._kernel.reached_from(acquire)
        if self._acquires[acquire] is not HandOverKind.POLL:
            regions = [self._kernel.region(at) for at in self._origins.deciders(acquire) if self._splits(at)]
            reached &= frozenset().union(*regions) if regions else reached
        else:
            reached -= frozenset(self._loop(acquire))
        return [
            each
            for each in self._accesses
            if each.number in reached and each.number not in self._acquires
            if self._may_be_data(each) and not self._origins.is_value(each.number)
        ]

    def _may_be_data(self, access: Operation) -> bool:
        """True for loads and atomics, but those of arguments, and of pointers through which nobody stores."""
        if access.access is None or access.access.verb is MemVerb.STORE:
            return False
        through_pointer = access.kind is OperationKind.SMEM or is_atomic(access)
        return not through_pointer or bool(self._pointers(access.number) & self._stored())

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
        return ways if ways or self._origins.guards.get(number, 0) & SINGLE else None

    # Acquires.

    def _judge_reads(self, found: dict[int, list[_Lack]]) -> None:
        acquires, loads = frozenset(self._acquires), dict[int, list[int]]()
        for acquire, after in self._data.items():
            for each in after:
                loads.setdefault(each.number, []).append(acquire)

        def see(operation: Operation, state: _Reads) -> None:
            for acquire in loads.get(operation.number, ()):
                if acquire in state:
                    found.setdefault(acquire, []).extend(self._judge_load(acquire, operation, state[acquire]))

        rules = WalkRules[_Reads]({}, dict, lambda operation, state: _step_reads(acquires, operation, state), _join)
        self._kernel.follow(rules, see)

    def _judge_load(self, acquire: int, load: Operation, view: _View) -> Iterator[_Lack]:
        doubt = self._doubt_load(acquire, load)
        if doubt is None:
            return
        self._judged.add((acquire, False))
        if view.worst != _FRESH and not is_wide(load):
            piece = Piece.INVALIDATE_SCOPE if view.narrow else Piece.INVALIDATE
            piece = Piece.WAIT_BEFORE_INVALIDATE if view.early else piece
            yield _Lack(piece, load.number, doubt or ("" if view.best != _FRESH else _SOME_PATH))
        guards = self._guards(acquire)
        if guards is not None and view.unmet[1] and not self._is_guarded(load.number, guards):
            yield _Lack(Piece.BARRIER_AFTER, load.number, doubt or ("" if view.unmet[0] else _SOME_PATH))
        if not is_wide(self._kernel.operations[acquire]):
            yield _Lack(Piece.LOAD_SCOPE, load.number, doubt)

    def _is_guarded(self, number: int, guards: Sequence[frozenset[int]]) -> bool:
        if not guards:
            return bool(self._origins.guards.get(number, 0) & SINGLE)
        return any(number in way for way in guards)

    def _doubt_load(self, acquire: int, load: Operation) -> str | None:
        """Why a load may read what is handed over, or may not; None if it doesn't."""
        pointers, flag = self._pointers(load.number), self._pointers(acquire)
        if not pointers:
            return _UNKNOWN_POINTER
        is_set_here = any(flag & self._pointers(each.number) for each in self._stores)
        if pointers & self._stored():
            if not _is_single(pointers, flag):
                return _UNKNOWN_POINTER
            return "" if is_set_here or self._acquires[acquire] is not HandOverKind.TEST else _SET_ELSEWHERE
        return None if is_set_here else _SET_ELSEWHERE

    # Releases.

    def _find_releases(self) -> dict[int, tuple[int, ...]]:
        """Stores that set a flag, each with the acquires that read it."""
        found: dict[int, tuple[int, ...]] = {}
        for wide in (True, False):
            for acquire in (each for each, loads in self._data.items() if loads):
                setters = [each for each in self._stores if self._sets(each.number, acquire)]
                polls = self._acquires[acquire] is HandOverKind.POLL
                if polls:
                    setters = [each for each in setters if self._acquires.get(each.number) is not HandOverKind.POLL]
                if not wide and (not polls or self._reads_data_by(self._pointers(acquire))):
                    continue  # a plain store may be a flag where nothing but flags is
                is_set = any(acquire in each for each in found.values())
                for each in (each for each in setters if is_wide(each) == wide):
                    found[each.number] = (*found.get(each.number, ()), acquire)
                    self._unsure |= {each.number} if is_set and not wide else set()
        return found

    def _sets(self, store: int, acquire: int) -> bool:
        """True if a store is through the flag's pointer; where data are, too, its address is like the flag's."""
        flag = self._pointers(acquire)
        if store == acquire or not self._pointers(store) & flag:
            return store == acquire
        alike = self._origins.by_lane[store] == self._origins.by_lane[acquire]
        return alike or not self._reads_data_by(flag)

    def _reads_data_by(self, pointers: int) -> bool:
        return any(self._pointers(each.number) & pointers for loads in self._data.values() for each in loads)

    def _judge_stores(self, releases: Mapping[int, tuple[int, ...]], found: dict[int, list[_Lack]]) -> None:
        def see(operation: Operation, state: _Stores) -> None:
            loads = [load for each in releases.get(operation.number, ()) for load in self._data[each]]
            for number, progress in state.items() if loads else ():
                doubt = self._doubt_store(operation.number, number, loads)
                if number in releases or doubt is None:
                    continue
                self._judged.add((operation.number, True))
                doubt = doubt or (_WHICH_STORE if operation.number in self._unsure else "")
                lacks = self._judge_store(operation, number, progress)
                found.setdefault(operation.number, []).extend(
                    each._replace(doubt=doubt or each.doubt) for each in lacks
                )

        self._kernel.follow(WalkRules[_Stores]({}, dict, _step_stores, _join), see)

    def _doubt_store(self, release: int, store: int, loads: Sequence[Operation]) -> str | None:
        """Why what was stored may be read, or may not; None if it isn't.  Atomics are in order with atomics."""
        atomic, pointers = is_atomic(self._kernel.operations[store]), self._pointers(store)
        read = [self._pointers(each.number) for each in loads if not (atomic and is_atomic(each))]
        if any(pointers & each and _is_single(pointers, each, self._pointers(release)) for each in read):
            return ""
        may_be = not pointers or any(pointers & each or not each for each in read)
        return _UNKNOWN_POINTER if read and may_be else None

    def _judge_store(self, release: Operation, number: int, progress: _Progress) -> Iterator[_Lack]:
        store = self._kernel.operations[number]
        scalar = store.kind is OperationKind.SMEM  # no source says what publishes it
        passes = is_wide(store) and not scalar
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
                doubt = "" if piece in certain else _SOME_PATH
                yield _Lack(piece, number, _OTHERS_STORES if worst == _MAYBE else doubt)
        if scalar:
            yield _Lack(Piece.WRITE_BACK, number)
        if not is_wide(release):
            yield _Lack(Piece.STORE_SCOPE, number)

    # Results.

    def _hand_over(self, number: int, lacks: Sequence[_Lack]) -> HandOver:
        flag = self._kernel.operations[number].instruction
        chosen: dict[Piece, _Lack] = {}
        for each in sorted(lacks, key=lambda lack: bool(lack.doubt)):
            chosen.setdefault(each.piece, each)
        sides = [each for each in Piece if each in _PIECES and (number, each.is_of_release) in self._judged]
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
            fixes=(_FIXES[lack.piece],),
        )


_PIECES = frozenset({
    Piece.DATA_WAIT, Piece.WRITE_BACK, Piece.WRITE_BACK_WAIT, Piece.STORE_SCOPE, Piece.LOAD_SCOPE, Piece.INVALIDATE,
})  # fmt: skip
"""What every hand-over of plain data has to have, whoever does it."""


def _is_single(*pointers: int) -> bool:
    """True if each of them is one argument, and not one of several."""
    return all(each.bit_count() == 1 for each in pointers)


_RELEASED = "have `buffer_wbl2 sc1`, then `s_waitcnt vmcnt(0)`, between the last store of data and the flag"
_ACQUIRED = "have `buffer_inv sc1` after the wait for the flag's load, and before the loads of data"
_FLAG = "access the flag by an atomic, or with `sc1`"
_FIXES = {
    Piece.DATA_WAIT: "have `s_waitcnt vmcnt(0)` in every wave between its stores of data and the flag, or the barrier",
    Piece.BARRIER_BEFORE: "have a barrier between the waits for the stores of data and the flag",
    Piece.WRITE_BACK: _RELEASED, Piece.WRITE_BACK_SCOPE: _RELEASED, Piece.WRITE_BACK_WAIT: _RELEASED,
    Piece.STORE_SCOPE: _FLAG, Piece.LOAD_SCOPE: _FLAG,
    Piece.INVALIDATE: _ACQUIRED, Piece.INVALIDATE_SCOPE: _ACQUIRED, Piece.WAIT_BEFORE_INVALIDATE: _ACQUIRED,
    Piece.BARRIER_AFTER: "have a barrier between the wait for the flag's load and the accesses of data",
}  # fmt: skip


def _lacks_at(status: int, *, passes: bool, narrow: bool) -> frozenset[Piece]:
    """What a store that has come so far lacks; one that passes the caches needs no write-back."""
    lacks = _LACKS[status]
    if passes:
        return frozenset({Piece.DATA_WAIT}) if Piece.DATA_WAIT in lacks else frozenset()
    if narrow and Piece.WRITE_BACK in lacks:
        lacks = lacks - {Piece.WRITE_BACK} | {Piece.WRITE_BACK_SCOPE}
    return lacks
