"""A code object with a loop written anew: in another order in its place, or cut, and beside the code that was there.

In its place no byte outside of the loop changes.

A loop that is cut has a part of its trips ahead of the rest, so that an order may mix both. Each trip is cut in two: a
head, on which the branch that closes the loop depends, and the rest.  The head of the first trip is executed before the
loop, then each round executes the rest of one trip and the head of the next one, and the rest of the last trip follows
the loop.  Nothing is executed that wasn't, and nothing more often: the branch after the first head leaves at once if
there is one trip only.

The loop that was cut stands after the code of the object, where its segment may grow up to the next one, and has a few
words of room for `s_nop`.  The place of the old loop holds a branch to it, and the last rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from rota.improve.loop_block import NOP, LoopBlock, depends, make_nop, may_be_repeated, refuse, words_of
from rota.isa.binary.code_object import CodeObject
from rota.isa.binary.elf import replace_words
from rota.isa.binary.grown_code import Room, append_words, find_room
from rota.isa.binary.toolchain import read_object
from rota.isa.disassembly import Instruction
from rota.isa.hazards.wait_states import Early, SpacingWalk
from rota.isa.opcodes import IsaFlow
from rota.prove.operation import SCC_BIT, Operation, OperationKind, read_operation

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


_BRANCH = 0xBF820000
_INVERSE = 1 << 16  # the bit by which a branch differs from the one with the opposite condition
_SPARE = 48  # words in the loop, for s_nop
_HEAVY = frozenset({OperationKind.LDS, OperationKind.VMEM, OperationKind.SMEM, OperationKind.BARRIER})
_MOST_CUTS = 8
_MOST_LAYOUTS = 32  # one after the other, each with more s_nop
Numbers = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """The head and the rest of a trip, by their numbers in an order that its dependences allow."""

    head: Numbers
    rest: Numbers


def list_cuts(instructions: Sequence[Instruction], block: LoopBlock) -> tuple[Cut, ...]:
    """Where a loop may be cut, heads from short to long; none if the block isn't the whole loop.

    The first one has no head: that moves the loop to where it has room.
    """
    if not _is_whole(instructions, block):
        return ()
    closures = _Closures(instructions, block)
    if closures.control is None:
        return (Cut(head=(), rest=block.items),)
    heavy = [number for number in block.items if block.operations[number].kind in _HEAVY]
    loads = frozenset(number for number in heavy if block.operations[number].kind is OperationKind.VMEM)
    seeds = [loads, *(frozenset(heavy[: place + 1]) for place in range(len(heavy)))]
    heads = dict.fromkeys(closures.close(closures.control | seed) for seed in seeds)
    items = frozenset(block.items)
    fit = sorted((each for each in heads if any(number in items - each for number in heavy)), key=len)
    step = max(len(fit) / _MOST_CUTS, 1)
    chosen = dict.fromkeys(fit[int(step * place)] for place in range(min(len(fit), _MOST_CUTS)))
    return (
        Cut(head=(), rest=block.items),
        *(
            Cut(head=tuple(sorted(each)), rest=tuple(number for number in block.items if number not in each))
            for each in chosen
        ),
    )


def _is_whole(instructions: Sequence[Instruction], block: LoopBlock) -> bool:
    """True if the block and a conditional branch back to its first instruction are all there is, with one way in."""
    closing = instructions[block.last]
    targets = [each.target for each in instructions if each.target is not None]
    return (
        closing.target == block.first
        and closing.spec.flow is IsaFlow.BRANCH
        and not any(block.first < each <= block.last for each in targets)
        and block.last + 1 < len(instructions)
    )


class _Closures:
    """Sets of instructions that may be a head: with each one all that have to stay before it.

    SCC is written by instructions whose SCC nobody reads.  What reads it stays with what wrote it, and nothing else is
    asked of the order of those two with the other writers: a head and a rest keep the order that they had.
    """

    def __init__(self, instructions: Sequence[Instruction], block: LoopBlock) -> None:
        operations = block.operations
        free = {number: _without_scc(operations[number]) for number in block.items}
        self._needs: dict[int, set[int]] = {
            number: {
                each for each in block.before[number]
                if depends(free[each], free[number]) or not depends(operations[each], operations[number])
            }
            for number in block.items
        }  # fmt: skip
        closing = read_operation(instructions[block.last], block.last, block.architecture)
        writers = [number for number in block.items if operations[number].writes & closing.reads]
        self.control = frozenset(writers[-1:]) if writers else None
        for number, earlier in _pair_scc(block):
            if earlier is None:  # of the trip before
                self.control = None
            else:
                self._needs[number].add(earlier)
                self._needs[earlier].add(number)

    def close(self, seed: frozenset[int]) -> frozenset[int]:
        found, work = set(seed), list(seed)
        while work:
            more = self._needs[work.pop()] - found
            found |= more
            work += more
        return frozenset(found)


def _without_scc(operation: Operation) -> Operation:
    return replace(operation, reads=operation.reads & ~SCC_BIT, writes=operation.writes & ~SCC_BIT)


def _pair_scc(block: LoopBlock) -> Iterator[tuple[int, int | None]]:
    """What reads SCC, and what wrote it."""
    writer: int | None = None
    for number in block.items:
        operation = block.operations[number]
        if operation.reads & SCC_BIT:
            yield number, writer
        if operation.writes & SCC_BIT:
            writer = number


def rotate(code: CodeObject, instructions: Sequence[Instruction], block: LoopBlock, cut: Cut) -> CodeObject | None:
    """The object with the loop cut; None if there is no room for it."""
    waits = block.count_waits((*cut.head, *cut.rest))
    head, rest = (list(_spell(instructions, block, part, waits)) for part in (cut.head, cut.rest))
    layout = _Layout(instructions, block, head, rest)
    layout.keep_distances()
    room = find_room(code.hsaco, instructions[block.first].address or 0)
    return None if room is None else layout.write(code, room)


class _Layout:
    """Where the parts stand: in the place of the loop a branch and the last rest, after the code the rest of all.

    Without a head, rounds are trips, and nothing follows them.
    """

    def __init__(
        self, instructions: Sequence[Instruction], block: LoopBlock, head: list[Instruction], rest: list[Instruction]
    ) -> None:
        self._instructions, self._block = instructions, block
        self._head, self._round, self._rest = head, [*rest, *head], rest if head else []
        self._closing = instructions[block.last]

    def keep_distances(self) -> None:
        """Put s_nop where the distances between instructions of two parts ask for them."""
        for _ in range(_MOST_LAYOUTS):
            listing, owners = self._list()
            early = SpacingWalk(listing, self._block.architecture).early(sorted(owners))
            if not early:
                return
            for each in reversed([*pick_apart(early)]):  # places before it stay
                part, place = owners[each.then]
                part.insert(place, make_nop(part[place], min(each.short, MOST_STATES) - 1))

    def _list(self) -> tuple[list[Instruction], dict[int, tuple[list[Instruction], int]]]:
        """The kernel as it will be executed, and the part and the place that each new number has."""
        first, last = self._block.first, self._block.last
        more = 1 + len(self._rest) - (last + 1 - first)  # the numbers that what follows the loop moves by
        made = [self._point(each, last, more) for each in self._instructions[:first]]
        owners: dict[int, tuple[list[Instruction], int]] = {}

        def add(part: list[Instruction]) -> None:
            for place, each in enumerate(part):
                owners[len(made)] = (part, place)
                made.append(each)

        jump = replace(make_nop(self._closing, 0), opcode="s_branch", text="s_branch")
        rest, after = first + 1, first + 1 + len(self._rest)
        start = len(self._instructions) + more
        made.append(replace(jump, target=start))
        add(self._rest)
        made += [self._point(each, last, more) for each in self._instructions[last + 1 :]]
        add(self._head)
        if self._head:
            made.append(replace(self._closing, target=rest))
        begin = len(made)
        add(self._round)
        made += [replace(self._closing, target=begin), replace(jump, target=rest if self._head else after)]
        return made, owners

    @staticmethod
    def _point(each: Instruction, last: int, more: int) -> Instruction:
        return each if each.target is None or each.target <= last else replace(each, target=each.target + more)

    def write(self, code: CodeObject, room: Room) -> CodeObject | None:
        start, nop = self._instructions[self._block.first], make_nop(self._closing, 0).encoding
        begin, end = start.address or 0, (self._closing.address or 0) + 4
        last = end - 4 * words_of(self._rest)  # where the last rest begins
        spare = room.words - words_of(self._head) - words_of(self._round) - 3
        if last <= begin or spare < 0:
            return None
        made = _words(self._head)
        if self._head:
            made.append(_jump(room.address + 4 * len(made), last, self._closing.encoding[0] ^ _INVERSE))
        loop = room.address + 4 * len(made)
        made += [*_words(self._round), *nop * min(_SPARE, spare)]
        made.append(_jump(room.address + 4 * len(made), loop, self._closing.encoding[0]))
        made.append(_jump(room.address + 4 * len(made), last, _BRANCH))
        place = [_jump(begin, room.address, _BRANCH), *nop * ((last - begin) // 4 - 1), *_words(self._rest)]
        return read_object(replace_words(append_words(code.hsaco, room, made), begin, place))


def _spell(
    instructions: Sequence[Instruction], block: LoopBlock, part: Numbers, waits: dict[int, dict[str, int]]
) -> Iterator[Instruction]:
    """The instructions of a part, each after the s_nop that it had before it."""
    for number in part:
        if number > block.first and instructions[number - 1].opcode == NOP:
            yield instructions[number - 1]
        if (found := block.spell(number, waits)) is not None:
            yield found


def _words(instructions: Sequence[Instruction]) -> list[int]:
    return list(chain.from_iterable(each.encoding for each in instructions))


def _jump(at: int, target: int, word: int) -> int:
    return word & ~0xFFFF | (target - at - 4) // 4 & 0xFFFF
