"""Looks for an order of a loop's block that the cycle model predicts to be faster, and for waits that may be weaker.

First orders come from lists: of what may be issued next, the one with the longest way to the end of the block, by the
latencies of the device, with memory instructions at several distances.  Then one instruction at a time, memory, wait
or barrier, is moved as far as its dependences let it, and stays where the model predicts fewer clocks.  Nothing is
drawn: the same loop has the same order each time.

A wait may leave more in flight: each count is raised as far as the proof allows, one after the other. The proof doesn't
judge what other workgroups see.  So a wait keeps its counts if a store to global memory, an atomic or an instruction of
caches may have been issued before it, and in kernels that hand data over by flags.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from rota.cycles.predict import predict
from rota.improve.loop_block import LoopBlock, make_nop, respell_wait
from rota.isa.binary.kernel_facts import KernelFacts
from rota.isa.disassembly import Instruction
from rota.lift.lifted_loop import LiftedLoop, OperationPlaces, derive_ops, is_matrix
from rota.program.entry import Entry
from rota.program.kinds import Phase
from rota.program.lowered import LoweredProgram
from rota.program.machine import Machine
from rota.prove.hand_overs import find_hand_overs
from rota.prove.operation import Operation, OperationKind, read_operation
from rota.prove.slicing import derive_successors, find_reached
from rota.targets.architecture import Architecture
from rota.targets.device import device_of, rates_of

Order = tuple[int, ...]
_LATENCY = {OperationKind.LDS: 32, OperationKind.EXCHANGE: 32, OperationKind.VMEM: 128, OperationKind.SMEM: 64}
_DISTANCES = (0, 1, 2, 3, 4, 6, 8)  # instructions between two of memory
_SCALES = (0, 1, 4)  # of latencies
_HEAVY = frozenset({*_LATENCY, OperationKind.WAIT, OperationKind.BARRIER})
_STEPS = (1.0, 0.5, 0.25, 0.1)  # shares of the way that an instruction may move
_ISSUE = 4  # clocks
LEAST_GAIN = 0.5  # clocks, below which an order counts as no better


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundOrder:
    """An order and its predicted clocks."""

    order: Order
    clocks: float


class ScoredLoop:
    """The lifted loop in any order of its block, as the cycle model predicts it."""

    def __init__(self, lifted: LiftedLoop, block: LoopBlock) -> None:
        self._program, self._block = lifted.program, block
        self.tried = 0
        self._known: dict[Order, float] = {}
        chain = lifted.loops[0].chain
        self._chain = [each.number for each in chain]
        entries = iter(lifted.program.kernel)
        self._entries: list[dict[int, tuple[Entry, ...]]] = []
        for _ in range(lifted.program.tiles_per_trip):
            made = {}
            for each in chain:
                count = sum(1 for _ in derive_ops(each, OperationPlaces(), lifted.program.machine, None))
                made[each.number] = tuple(next(entries) for _ in range(count))
            self._entries.append(made)

    @property
    def machine(self) -> Machine:
        return self._program.machine

    def _arrange(self, order: Order) -> LoweredProgram:
        """The program with the block in this order, without s_nop."""
        kernel: list[Entry] = []
        for copy, made in enumerate(self._entries):
            for number in self._chain:
                if number == self._block.first:
                    kernel += self._arrange_block(order, copy, made)
                elif not self._block.first <= number < self._block.last:
                    kernel += made[number]
        return replace(self._program, kernel=tuple(kernel))

    def _arrange_block(self, order: Order, copy: int, made: dict[int, tuple[Entry, ...]]) -> Iterator[Entry]:
        block, waits = self._block, self._block.count_waits(order)
        for number in order:
            if number in waits:
                wait = block.spell(number, waits)
                yield from () if wait is None else self._make(wait, copy)
            else:
                yield from made.get(number, ())  # what counts the trips has none

    def _make(self, instruction: Instruction, copy: int) -> Iterator[Entry]:
        operation = read_operation(instruction, 0, self._block.architecture)
        which = copy if self._program.tiles_per_trip > 1 else None
        for op, effect in derive_ops(operation, OperationPlaces(), self._program.machine, which):
            yield Entry(op=op, effect=effect, time_slot=0, phase=Phase.KERNEL)

    def predict(self, order: Order) -> float:
        if order not in self._known:
            self.tried += 1
            self._known[order] = predict(self._arrange(order), band=False).cycles
        return self._known[order]


def sketch(loop: ScoredLoop, block: LoopBlock) -> float:
    """The fewest clocks of a few orders: what to expect of a search."""
    lists = _Lists(block, loop.machine)
    orders = (
        lists.make(scale, far, ahead=ahead) for scale in _SCALES[1:] for far in _DISTANCES[1:4:2] for ahead in (0, 1)
    )
    return min(loop.predict(order) for order in dict.fromkeys((block.items, *orders)))


def find_orders(loop: ScoredLoop, block: LoopBlock, most: int) -> tuple[FoundOrder, ...]:
    """Orders with fewer predicted clocks, the best one first, after predicting at most `most`."""
    lists = _Lists(block, loop.machine)
    made = (lists.make(scale, far, ahead=ahead) for ahead in (0, 1) for scale in _SCALES for far in _DISTANCES)
    starts = dict.fromkeys((block.items, *made))
    scored = sorted((loop.predict(order), place, order) for place, order in enumerate(starts))
    found = [FoundOrder(order=order, clocks=clocks) for clocks, _, order in scored]
    better = list(_move_each(loop, block, found[0], most))
    return (*reversed(better), *found)


class _Lists:
    """Orders of a block by the longest ways to its end."""

    def __init__(self, block: LoopBlock, machine: Machine) -> None:
        rates = rates_of(device_of(machine))
        self._block = block
        self._busy = {  # clocks of the matrix unit
            number: _ISSUE * rates.mfma_passes[each.name].value
            for number, each in block.operations.items() if is_matrix(each) and each.name in rates.mfma_passes
        }  # fmt: skip
        self._after: defaultdict[int, list[int]] = defaultdict(list)
        for number in block.items:
            for each in block.before[number]:
                self._after[each].append(number)
        self._next = {number: self._list_users(place, number) for place, number in enumerate(block.items)}

    def _list_users(self, place: int, number: int) -> list[int]:
        """What uses the result of a memory instruction in the next trip."""
        operation = self._block.operations[number]
        if not self._is_memory(number):
            return []
        if operation.to_lds:
            return [each for each in self._block.items if self._block.operations[each].kind is OperationKind.LDS]
        made = operation.writes | operation.data * (not operation.holds_data)
        later = self._block.items[place + 1 :]
        if any(self._block.operations[each].reads & made for each in later):
            return []
        return [each for each in self._block.items[:place] if self._block.operations[each].reads & made]

    def _lasts(self, number: int, scale: int) -> int:
        """Clocks until what depends on an instruction may follow."""
        operation = self._block.operations[number]
        return self._busy.get(number, _ISSUE + scale * _LATENCY.get(operation.kind, 0))

    def make(self, scale: int, far: int, *, ahead: int) -> Order:
        """With latencies by `scale`, and at least `far` other instructions between two of memory, if there are any.

        Ways go on through `ahead` more trips.
        """
        ways: dict[int, int] = {}
        for trip in range(1 + ahead):
            then = dict(ways)
            for number in reversed(self._block.items):
                rest = max((ways[each] for each in self._after[number]), default=0)
                if trip:
                    rest = max(rest, max((then[each] for each in self._next[number]), default=0))
                ways[number] = rest + self._lasts(number, scale)
        missing = {number: len(self._block.before[number]) for number in self._block.items}
        ready = {number: 0 for number, count in missing.items() if not count}
        order: dict[int, int] = {}  # with the place of each
        now = unit = quiet = 0
        while ready:
            number = min(ready, key=lambda each: self._rank(each, max(ready[each], now), unit, far - quiet, ways))
            now = max(now, ready.pop(number), unit if number in self._busy else 0) + _ISSUE
            unit = now + self._busy[number] - _ISSUE if number in self._busy else unit
            quiet = 0 if self._is_memory(number) else quiet + 1
            order[number] = len(order)
            for each in self._after[number]:
                missing[each] -= 1
                if not missing[each]:
                    last = max(self._block.before[each], key=order.__getitem__)
                    ready[each] = now - _ISSUE + self._lasts(last, scale)
        return tuple(order)

    def _rank(self, number: int, start: int, unit: int, left: int, ways: dict[int, int]) -> tuple[bool, int, int, int]:
        if number in self._busy:
            start = max(start, unit)
        return (left > 0 and self._is_memory(number), start, -ways[number], number)

    def _is_memory(self, number: int) -> bool:
        return self._block.operations[number].kind in _LATENCY


def _move_each(loop: ScoredLoop, block: LoopBlock, best: FoundOrder, most: int) -> Iterator[FoundOrder]:
    """Move one instruction after the other while that helps: each order that is better than those before."""
    heavy = [number for number in block.items if block.operations[number].kind in _HEAVY]
    moved = True
    while moved and loop.tried < most:
        moved = False
        for number in heavy:
            for order in _list_moves(block, best.order, number):
                if loop.tried >= most:
                    return
                if (clocks := loop.predict(order)) < best.clocks - LEAST_GAIN:
                    best, moved = FoundOrder(order=order, clocks=clocks), True
                    yield best


def _list_moves(block: LoopBlock, order: Order, number: int) -> Iterator[Order]:
    """The order with one instruction farther up or down, as far as those that it depends on let it."""
    place, before = order.index(number), block.before[number]
    first, last = place, place
    while first and order[first - 1] not in before:
        first -= 1
    while last + 1 < len(order) and number not in block.before[order[last + 1]]:
        last += 1
    rest = order[:place] + order[place + 1 :]
    places = [place + round(share * (end - place)) for end in (first, last) for share in _STEPS]
    for each in dict.fromkeys(each for each in places if each != place):
        yield (*rest[:each], number, *rest[each:])


_MOST_JUDGED, _FEWEST = 20_000, 12  # instructions in all, and kernels
_PUBLISHES = frozenset({"store", "atomic", "cache"})


def find_weaker_waits(
    facts: KernelFacts, instructions: Sequence[Instruction], numbers: Sequence[int], architecture: Architecture,
    is_proved: Callable[[Sequence[Instruction]], bool],
) -> dict[int, Instruction | None]:  # fmt: skip
    """By number, the waits that may be weaker, or None for those that may go; `is_proved` judges all together.

    Of long kernels only the first ones are tried.
    """
    left = max(_MOST_JUDGED // len(instructions), _FEWEST)
    operations = [read_operation(each, number, architecture) for number, each in enumerate(instructions)]
    report = find_hand_overs(facts, instructions)
    if report.hand_overs or report.unknown:
        return {}
    after = _find_after(operations)
    found: dict[int, Instruction | None] = {}
    now = list(instructions)
    for number in numbers:
        if operations[number].kind is not OperationKind.WAIT or number in after:
            continue
        counts = dict(operations[number].waits)
        for counter in tuple(counts):
            for count in _list_counts(counts[counter], architecture.no_wait(counter)):
                weaker = respell_wait(operations[number], counts | {counter: count}, architecture)
                tried = [*now]
                tried[number] = weaker or make_nop(instructions[number], 0)
                left -= 1
                if left < 0 or not is_proved(tried):
                    break
                now, counts[counter], found[number] = tried, count, weaker
    return found


def _list_counts(count: int, most: int) -> Iterator[int]:
    """The next one, then in growing steps up to none at all."""
    step = 1
    while count < most:
        count = min(count + step, most)
        yield count
        step *= 4


def _find_after(operations: Sequence[Operation]) -> set[int]:
    """The instructions that may follow one that publishes something."""
    publish = [each.number for each in operations if each.verb in _PUBLISHES and each.kind is not OperationKind.LDS]
    return find_reached(derive_successors(operations), publish)
