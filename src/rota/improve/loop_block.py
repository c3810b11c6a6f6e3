"""The straight part of a main loop, and which of its instructions have to stay before which.

An instruction may change places with another one if neither writes a register that the other one reads or writes, and
if both don't access memory in a way that depends on their order.  Memory instructions that one counter counts stay in
their order, so each keeps its place in the counter's queue, and so do those before and after the loop.  A wait leaves
as many in flight as were issued after the last one that it covered: its count follows from where it stands.

What uses a result stays after the first wait that covers it.  `s_nop` has no place of its own: it is put where the
distances of the new order ask for it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rota.errors import IsaError
from rota.isa.disassembly import Instruction
from rota.isa.opcodes import MemSpace, Trait
from rota.lift.lifted_loop import is_matrix
from rota.prove.operation import Operation, OperationKind, mark_counted, read_operation
from rota.targets.architecture import Architecture

NOP, PRIORITY = "s_nop", "s_setprio"
_LEAST = 8  # instructions of a block that is worth a search
_ORDERED = frozenset({OperationKind.WAIT, OperationKind.BARRIER, OperationKind.SIGNAL})  # among themselves
_MEMORY = frozenset({OperationKind.LDS, OperationKind.VMEM, OperationKind.SMEM, OperationKind.EXCHANGE})
_MOVABLE = _MEMORY | {OperationKind.VALUE, OperationKind.WAIT, OperationKind.BARRIER}


def refuse(name: str, why: str, at: Instruction | None = None) -> IsaError:
    concerns = () if at is None else (at.concern(),)
    return IsaError.of("I610", f"{name} has no better order: {why}", concerns=concerns, evidence=(("reason", why),))


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopBlock:
    """Instructions `first` to `last`, that exclusive, which run one after the other; a branch to the first may follow.

    `before` says, for each instruction by its number, which ones of the block have to stay before it.  `issued` counts
    by counter how many of its memory instructions the block issues before each instruction.
    """

    first: int
    last: int
    operations: Mapping[int, Operation]
    before: Mapping[int, frozenset[int]]
    issued: Mapping[int, Mapping[str, int]]
    architecture: Architecture
    unordered: frozenset[str] = field(default=frozenset())  # counters of which some come back in any order

    @property
    def items(self) -> tuple[int, ...]:
        """All but s_nop, in their order."""
        return tuple(number for number in range(self.first, self.last) if self.operations[number].name != NOP)

    def count_waits(self, order: Sequence[int]) -> dict[int, dict[str, int]]:
        """What each wait leaves in flight in another order, so that it covers what it did."""
        found: dict[int, dict[str, int]] = {}
        issued = dict.fromkeys((queue.counter for queue in self.architecture.queues), 0)
        for number in order:
            operation = self.operations[number]
            if operation.kind is OperationKind.WAIT:
                found[number] = {
                    counter: 0 if counter in self.unordered else count + issued[counter] - self.issued[number][counter]
                    for counter, count in operation.waits
                }
            for counter in operation.counted_by.counters:
                issued[counter] += 1
        return found

    def spell(self, number: int, waits: Mapping[int, Mapping[str, int]]) -> Instruction | None:
        """An instruction of an order with these counts of waits; None for a wait that covers nothing any more."""
        operation = self.operations[number]
        return respell_wait(operation, waits[number], self.architecture) if number in waits else operation.instruction

    def renumber(self, order: Sequence[int], other: LoopBlock) -> tuple[int, ...]:
        """The order by the numbers that the same block has elsewhere."""
        numbers = dict(zip(self.items, other.items, strict=True))
        return tuple(numbers[each] for each in order)


def read_block(
    name: str, instructions: Sequence[Instruction], chain: Sequence[Operation], arch: Architecture
) -> LoopBlock:
    """The longest straight part of a loop; raises I610 if none can be moved."""
    numbers = range(min(each.number for each in chain), max(each.number for each in chain) + 1)
    targets = {each.target for each in instructions if each.target is not None}
    runs: list[range] = []
    for number in numbers:
        fits = _is_movable(read_operation(instructions[number], number, arch))
        if fits and runs and runs[-1].stop == number and number not in targets:
            runs[-1] = range(runs[-1].start, number + 1)
        elif fits:
            runs.append(range(number, number + 1))
    best = max(runs, key=len, default=range(0))
    after = best.stop
    while after < len(instructions) and after not in targets and _closes(instructions, after, arch):
        after += 1  # what counts the trips
    best = range(best.start, after)
    if len(best) < _LEAST:
        raise refuse(name, "its loop has no straight part of 8 instructions", chain[0].instruction)
    return _Reader(name, instructions, best, arch).read()


def _closes(instructions: Sequence[Instruction], number: int, arch: Architecture) -> bool:
    operation = read_operation(instructions[number], number, arch)
    return operation.kind is OperationKind.VALUE and _is_movable(operation) and not operation.is_vector


def _is_movable(operation: Operation) -> bool:
    if operation.name in {NOP, PRIORITY}:
        return True
    if operation.unmodelled and operation.kind is not OperationKind.VALUE:  # of values, only the registers matter here
        return False
    return operation.kind in _MOVABLE and not operation.indexed and Trait.SETS_MODE not in operation.spec.traits


class _Reader:
    def __init__(self, name: str, instructions: Sequence[Instruction], block: range, arch: Architecture) -> None:
        self._name, self._block, self._arch = name, block, arch
        every = [read_operation(each, number, arch) for number, each in enumerate(instructions)]
        self._every = mark_counted(every, arch)
        self._operations = {number: self._every[number] for number in block}
        self._issued: dict[int, dict[str, int]] = {}

    def read(self) -> LoopBlock:
        counters = [queue.counter for queue in self._arch.queues]
        issued = dict.fromkeys(counters, 0)
        for number, each in self._operations.items():
            self._issued[number] = dict(issued)
            for counter in each.counted_by.counters:
                issued[counter] += 1
        unordered = frozenset(
            counter for each in self._operations.values() for counter in each.counted_by.counters
            if not each.counted_by.in_order or each.counted_by.among
        )  # fmt: skip
        for each in self._operations.values():
            held = [counter for counter, count in each.waits if counter in unordered and count]
            if held:
                raise refuse(self._name, f"a wait for some of {held[0]}, which return in any order", each.instruction)
        items = [number for number in self._block if self._operations[number].name != NOP]
        before: dict[int, set[int]] = {number: set() for number in items}
        for place, later in enumerate(items):
            for earlier in items[:place]:
                if depends(self._operations[earlier], self._operations[later]):
                    before[later].add(earlier)
        for earlier, later in self._keep_covered(items):
            before[later].add(earlier)
        return LoopBlock(
            first=self._block.start, last=self._block.stop, operations=self._operations,
            before={number: frozenset(some) for number, some in before.items()}, issued=self._issued,
            architecture=self._arch, unordered=unordered,
        )  # fmt: skip

    def _keep_covered(self, items: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Pairs of which the first one stays before: what a wait covers, the wait, and what needs it."""
        for counter in (queue.counter for queue in self._arch.queues):
            queue = [number for number in items if counter in self._operations[number].counted_by.counters]
            outside = [each for each in self._every if each.number not in self._operations
                       and counter in each.counted_by.counters]  # fmt: skip
            covered: int | None = None  # the last place of the queue that waits before cover
            for number in items:
                count = dict(self._operations[number].waits).get(counter)
                if count is None:
                    continue
                last = self._issued[number][counter] - 1 - count
                yield from ((each, number) for each in queue[: max(last + 1, 0)])
                fresh = list(self._find_fresh(queue, covered, last))
                if covered is None or covered < -1:  # some may have been issued before the loop
                    fresh += outside
                covered = last if covered is None else max(covered, last)
                yield from ((number, each) for each in items if each > number and self._needs(each, fresh))

    def _find_fresh(self, queue: Sequence[int], covered: int | None, last: int) -> Iterator[Operation]:
        """What a wait covers that none before it did; places below 0 are those of trips before."""
        for place, number in enumerate(queue):
            trips = (place - last - 1) // len(queue) + 1 if place > last else 0  # the latest one that is covered
            if covered is None or place - trips * len(queue) > covered:
                yield self._operations[number]

    def _needs(self, number: int, fresh: Sequence[Operation]) -> bool:
        then = self._operations[number]
        for each in fresh:
            if (each.writes | each.data) & (then.reads | then.writes) or (each.holds_data and each.reads & then.writes):
                return True
            if (each.to_lds or each.copies) and then.kind in {OperationKind.LDS, OperationKind.VMEM}:
                return True
        return False


def depends(first: Operation, then: Operation) -> bool:
    """True if two instructions can't change places."""
    if first.writes & (then.reads | then.writes) or first.reads & then.writes:
        return True
    kinds = {first.kind, then.kind}
    if kinds <= _ORDERED:
        return True
    if OperationKind.BARRIER in kinds and kinds & _MEMORY:
        return True
    if PRIORITY in {first.name, then.name}:
        return is_matrix(first) or is_matrix(then) or bool(kinds & _ORDERED) or first.name == then.name
    if first.kind in _MEMORY and then.kind in _MEMORY:
        return _meet_in_memory(first, then)
    return False


def _meet_in_memory(first: Operation, then: Operation) -> bool:
    if set(first.counted_by.counters) & set(then.counted_by.counters):
        return True
    both = (first, then)
    if any(each.flat or each.access is None or each.verb in {"atomic", "cache"} for each in both):
        return True
    lds = [each.kind is OperationKind.LDS or bool(each.to_lds or each.copies) for each in both]
    writes = [each.verb not in {"read", "load"} or bool(each.to_lds or each.copies) for each in both]
    shared = all(lds) or all(each.access is not None and each.access.space is not MemSpace.LDS for each in both)
    return shared and any(writes)


def may_be_repeated(run: Sequence[Operation], then: Operation) -> bool:
    """True if a memory instruction may follow others at once.

    Where a page is missing (XNACK), all of them are executed again: none may write what one of them reads, itself
    included, and LLVM has no store among them (GCNHazardRecognizer, checkSoftClauseHazards).
    """
    if run and (then.verb not in {"load", "read"} or then.to_lds or then.copies):
        return False
    every = (*run, then)
    return not run or not any((one.writes | one.data) & other.reads for one in every for other in every)


def respell_wait(operation: Operation, counts: Mapping[str, int], arch: Architecture) -> Instruction | None:
    """A wait with other counts; None if it covers nothing any more."""
    kept = {name: min(count, arch.no_wait(name)) for name, count in counts.items()}
    kept = {name: count for name, count in kept.items() if count < arch.no_wait(name)}
    if not kept:
        return None
    text = "s_waitcnt " + " ".join(f"{name}({kept[name]})" for name in ("vmcnt", "lgkmcnt") if name in kept)
    vm, lgkm = kept.get("vmcnt", 63), kept.get("lgkmcnt", 15)
    word = 0xBF8C0000 | vm & 0xF | 0x70 | lgkm << 8 | (vm >> 4) << 14
    return replace(operation.instruction, opcode="s_waitcnt", operands=tuple(text.split(" ")[1:]), text=text,
                   encoding=(word,), address=None)  # fmt: skip


def make_nop(like: Instruction, states: int) -> Instruction:
    """An s_nop of so many wait states beyond the first."""
    return replace(like, opcode=NOP, operands=(str(states),), modifiers=(), text=f"{NOP} {states}", target=None,
                   encoding=(0xBF800000 | states,), address=None)  # fmt: skip


def words_of(instructions: Sequence[Instruction]) -> int:
    return sum(len(each.encoding) for each in instructions)


def count_moved(order: Sequence[int]) -> int:
    """The fewest instructions that have to be moved to come from the order of their numbers to this one."""
    ends: list[int] = []  # the least last number of ascending runs of each length
    for number in order:
        place = bisect_left(ends, number)
        ends[place : place + 1] = [number]
    return len(order) - len(ends)
