"""A code object with another order of instructions in one of its loops: no byte outside of the loop changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain

from rota.improve.loop_block import LoopBlock, make_nop, may_be_repeated, refuse, words_of
from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.elf import replace_words
from rota.isa.binary.toolchain import read_object
from rota.isa.disassembly import Instruction
from rota.isa.hazards.wait_states import Early, SpacingWalk
from rota.isa.opcodes import IsaFlow
from rota.prove.operation import Operation, OperationKind, read_operation

_REPEATED = frozenset({OperationKind.VMEM, OperationKind.SMEM})
_MOST_ROUNDS = 64
MOST_STATES = 16  # of one s_nop


class Arrangement:
    """The instructions of a kernel with its block in another order, and s_nop before some of them."""

    def __init__(self, instructions: Sequence[Instruction], block: LoopBlock, order: Sequence[int]) -> None:
        self._instructions, self._block = instructions, block
        waits = block.count_waits(order)
        self._items = [(number, found) for number in order if (found := block.spell(number, waits)) is not None]
        self._states = self._part_clauses()
        for _ in range(_MOST_ROUNDS):
            if not self._add_states():
                return
        raise refuse("the kernel", "the distances of the new order aren't met by s_nop", instructions[block.first])

    @cached_property
    def _short(self) -> frozenset[tuple[int, int]]:
        """Pairs of the block that are too close as it is."""
        walk = SpacingWalk(self._instructions, self._block.architecture)
        return frozenset((each.first, each.then) for each in walk.early(range(self._block.first, self._block.last)))

    def _part_clauses(self) -> dict[int, int]:
        """An s_nop before each memory instruction that those right before it keep from being executed again."""
        block, found = self._block, dict[int, int]()
        run: list[Operation] = []
        before = reversed(self._instructions[max(block.first - MOST_STATES, 0) : block.first])
        for each in before:
            operation = read_operation(each, 0, block.architecture)
            if operation.kind not in _REPEATED:
                break
            run.insert(0, operation)
        for number, _ in self._items:
            operation = block.operations[number]
            run = [each for each in run if each.kind is operation.kind and operation.kind in _REPEATED]
            if not may_be_repeated(run, operation):
                found[number], run = 1, []
            run.append(operation)
        return found

    def _add_states(self) -> bool:
        listing, numbers = self._list()
        walk = SpacingWalk(listing, self._block.architecture)
        first = self._block.first
        block = range(first, first + len(numbers))
        found = walk.early(range(first, min(block.stop + MOST_STATES, len(listing))))
        early = [each for each in found if self._is_new(each, block, numbers)]
        if not early:
            return False
        for each in pick_apart(early):
            number = numbers[min(each.then - first, len(numbers) - 1)]
            self._states[number] = self._states.get(number, 0) + each.short
        return True

    def _is_new(self, each: Early, block: range, numbers: Sequence[int]) -> bool:
        """False for two outside of the block, and for two that were too close before."""
        inside = each.first in block, each.then in block
        if not all(inside):
            return any(inside)
        return (numbers[each.first - block.start], numbers[each.then - block.start]) not in self._short

    def _list(self) -> tuple[list[Instruction], list[int]]:
        """The whole kernel, and by place of the block the instruction that it is, or stands before."""
        made: list[Instruction] = []
        numbers: list[int] = []
        for number, each in self._items:
            for states in _split(self._states.get(number, 0)):
                made.append(make_nop(each, states - 1))
                numbers.append(number)
            made.append(replace(each, address=None))
            numbers.append(number)
        block, more = self._block, len(made) - (self._block.last - self._block.first)
        rest = (*self._instructions[: block.first], *made, *self._instructions[block.last :])
        moved = (
            each if each.target is None or each.target < block.last else replace(each, target=each.target + more)
            for each in rest
        )
        return list(moved), numbers

    def encode(self) -> tuple[int, ...]:
        """The words of the block and of branches after it; raises I610 if they need more room than they have."""
        block = self._block
        made = self._list()[0][block.first :]
        count = next(place for place, each in enumerate(made) if each.address is not None)
        words = list(chain.from_iterable(each.encoding for each in made[:count]))
        spare = words_of(self._instructions[block.first : block.last]) - len(words)
        start = self._instructions[block.first]
        if spare < 0:
            raise refuse("the kernel", f"the new order needs {-spare} words more than the loop has", start)
        closing, then = (self._instructions[min(block.last + each, len(self._instructions) - 1)] for each in (0, 1))
        nops = make_nop(start, 0).encoding * spare
        if closing.target is None or closing.target > block.first:
            return (*words, *nops)
        moved = [closing.encoding[0]]  # what is left follows the loop, and a branch that leaves it
        if then.spec.flow is IsaFlow.JUMP and not any(each.target == block.last + 1 for each in self._instructions):
            moved.append(then.encoding[0])
        return (*words, *(word & ~0xFFFF | (word + spare) & 0xFFFF for word in moved), *nops)


def pick_apart(early: Iterable[Early]) -> Iterator[Early]:
    """Those to mend in one round: s_nop before one of them may be enough for those right after it."""
    last = -MOST_STATES
    for each in sorted(early, key=lambda each: (each.then, -each.short)):
        if each.then - last >= MOST_STATES:
            last = each.then
            yield each


def _split(states: int) -> list[int]:
    return [MOST_STATES] * (states // MOST_STATES) + [states % MOST_STATES] * (states % MOST_STATES > 0)


def patch(code: CodeObject, words: Mapping[int, Sequence[int]]) -> CodeObject:
    """The object with other words at some addresses, read again."""
    contents = code.hsaco
    for address, each in words.items():
        contents = replace_words(contents, address, each)
    return read_object(contents)
